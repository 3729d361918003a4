# pyright: standard
"""An aggregator process that kills itself at a commit: a script for the tests of restarts.

Usage: aggregator_dying.py CONFIG PORT_FILE before|after N: dies right before or right after the Nth commit that
changes anything, as by `kill -9`: no handler runs, nothing is flushed, no answer leaves.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from sqlalchemy.engine.default import DefaultDialect

from tallyveil_aggregator.config import load_config
from tallyveil_aggregator.service.server import serve


def main(config: str, port_file: str, moment: str, fatal: str) -> None:
    """Serve until the commit in question."""
    commit: Any = DefaultDialect.do_commit
    seen: dict[int, int] = {}
    commits = 0

    def do_commit(self: DefaultDialect, pooled: Any) -> None:
        nonlocal commits
        connection = pooled.dbapi_connection
        changes = connection.total_changes > seen.get(id(connection), 0)
        commits += changes
        if changes and commits == int(fatal) and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self, pooled)
        seen[id(connection)] = connection.total_changes
        if changes and commits == int(fatal) and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    DefaultDialect.do_commit = do_commit  # type: ignore[method-assign]
    serve(load_config(Path(config)), Path(port_file))


if __name__ == "__main__":
    main(*sys.argv[1:])
