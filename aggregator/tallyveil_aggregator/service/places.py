# pyright: standard
"""Places for calls that a slow caller could stretch: so many at a time, each for so long.

Not here: uploads, which may last as long as something is heard (`streams`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
from grpc_reflection.v1alpha import reflection

from tallyveil.cli.logs import Log
from tallyveil.refusal import Refusal
from tallyveil_aggregator.service.refusals import Refused, answering

_LOG = Log("aggregator.places")


class Places:
    """A few places; whoever takes one has a thread of the pool until its call ends, or is cut.

    Args:
        number: Calls at a time.
        seconds: After which a call is cut.
    """

    def __init__(self, number: int, seconds: float) -> None:
        self._free = threading.BoundedSemaphore(number)
        self._seconds = seconds

    def take(self, context: grpc.ServicerContext) -> None:
        """Take a place for this call.

        Raises:
            Refused: None is free.
        """
        if not self._free.acquire(blocking=False):
            raise Refused(Refusal.TOO_BUSY)
        cut = threading.Timer(self._seconds, context.cancel)
        cut.daemon = True

        def leave() -> None:
            cut.cancel()
            self._free.release()

        if context.add_callback(leave):
            cut.start()
        else:
            leave()  # it has ended already


class LimitedReflection(reflection.ReflectionServicer):
    """The reflection service, for a few callers at a time and not for long."""

    def __init__(self, services: tuple[str, ...], places: Places) -> None:
        super().__init__(services)
        self._places = places

    def ServerReflectionInfo(self, request_iterator: Iterable[Any], context: Any) -> Iterator[Any]:
        """As the base class answers."""
        with answering(context, _LOG):
            self._places.take(context)
            yield from super().ServerReflectionInfo(request_iterator, context)
