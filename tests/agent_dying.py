# pyright: standard
"""An agent process that kills itself at a chosen point: a script for the tests of restarts.

Usage: agent_dying.py POINT N ARGUMENT...: dies at the Nth passage of the point, as by `kill -9`: no handler runs,
nothing is flushed. Points: ``charge`` (before the transaction), ``charged`` (after it), ``send`` (before a message is
given to gRPC), ``answer`` (after an answer was received, before anything is done about it).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from tallyveil.cli import dispatch
from tallyveil_client.agent import upload
from tallyveil_client.agent.store import Store


def main(point: str, fatal: int, arguments: list[str]) -> int:
    """Run the command until the point in question."""
    passed = 0

    def reach(here: str) -> None:
        nonlocal passed
        passed += here == point
        if here == point and passed == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(original: Callable[..., Any], before: str, after: str) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            reach(before)
            result = original(*values)
            reach(after)
            return result

        return call

    stream: Any = upload._Stream
    Store.commit_round = around(Store.commit_round, "charge", "charged")  # type: ignore[method-assign]
    stream.send = around(stream.send, "send", "")
    stream.receive = around(stream.receive, "", "answer")
    return dispatch.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
