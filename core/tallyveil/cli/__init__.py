"""The `tallyveil` command: what it is installed as.

Not here: the subcommands. Each role's package offers its own (see `tallyveil.cli.dispatch`).
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from tallyveil.cli import dispatch, failures


def main() -> NoReturn:
    """Run the command line of this process and exit with its code."""
    # Read when grpc is first imported: its C core would write lines about each failed handshake to standard error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    failures.silence_other_threads()
    sys.exit(dispatch.run(sys.argv[1:]))
