# pyright: standard
"""How many uploads run at a time: each holds a thread, so there is a limit for all, one for each department, and an
end to silence.

Not here: the thread pool, which has a few threads more, so that refusals, reads and health checks are always answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from tallyveil.cli.logs import Log
from tallyveil.refusal import Refusal
from tallyveil_aggregator.service.refusals import Refused

IDLE_S = 120.0
"""An upload that is silent for longer is cut; its agent resumes it."""

PER_DEPARTMENT = 4
"""More than one, since a cut connection may hold its stream until the keepalive notices."""


@dataclass(eq=False)
class _Stream:
    department: str
    context: grpc.ServicerContext
    heard_at: float


class Streams:
    """The uploads that are under way.

    Args:
        limit: Of all departments together.
        monotonic: A clock that never goes back, in seconds.
    """

    def __init__(self, limit: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._open: set[_Stream] = set()
        self._log = Log("aggregator.streams")

    def enter(self, department: str, context: grpc.ServicerContext) -> Callable[[], None]:
        """Count a stream until it ends.

        Returns:
            What to call whenever something was heard on it.

        Raises:
            Refused: Too many are open.
        """
        stream = _Stream(department, context, self._monotonic())
        with self._lock:
            of_department = sum(1 for other in self._open if other.department == department)
            if len(self._open) >= self._limit or of_department >= PER_DEPARTMENT:
                self._log.warning("submission refused", department=department, code=Refusal.TOO_BUSY.value)
                raise Refused(Refusal.TOO_BUSY)
            self._open.add(stream)
        if not context.add_callback(lambda: self._leave(stream)):
            self._leave(stream)  # it has ended already

        def heard() -> None:
            stream.heard_at = self._monotonic()

        return heard

    def cut_silent(self) -> None:
        """Cut the streams on which nothing was heard for `IDLE_S`."""
        before = self._monotonic() - IDLE_S
        with self._lock:
            silent = [stream for stream in self._open if stream.heard_at < before]
        for stream in silent:
            self._log.info("silent stream cut", department=stream.department)
            stream.context.cancel()

    def _leave(self, stream: _Stream) -> None:
        with self._lock:
            self._open.discard(stream)
