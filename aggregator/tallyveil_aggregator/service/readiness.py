# pyright: standard
"""Whether the aggregator can do its work, and telling so: the health service says it to machines, the log says why.

Not here: whether the process lives, which any answer shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from datetime import datetime

from grpc_health.v1 import health, health_pb2

from tallyveil.cli.logs import Log
from tallyveil.errors import TallyveilError
from tallyveil_aggregator.config import AggregatorConfig
from tallyveil_aggregator.key_files import find_key_problems
from tallyveil_aggregator.store import Store

CHECK_S = 2.0


def find_problems(config: AggregatorConfig, store: Store, now: datetime) -> dict[str, str]:
    """What is missing or wrong, by name, with one sentence each; empty where everything is there."""
    problems: dict[str, str] = {}
    try:
        store.check()
    except TallyveilError as error:
        problems["store"] = error.what
    return problems | {name: error.what for name, error in find_key_problems(config, now).items()}


class Watch:
    """A thread that looks for problems every `CHECK_S` and sets the health service's answers.

    Args:
        find: The problems of this moment, by name.
        servicer: The health service.
        services: Full names of the services it answers for, beside the server as a whole.
        also: Called each time as well.
    """

    def __init__(
        self,
        find: Callable[[], dict[str, str]],
        servicer: health.HealthServicer,
        services: Collection[str],
        also: Callable[[], None],
    ) -> None:
        self._find = find
        self._servicer = servicer
        self._services = ("", *services)
        self._also = also
        self._log = Log("aggregator.readiness")
        self._stopped = threading.Event()
        self._known: dict[str, str] | None = None
        self._thread = threading.Thread(target=self._run, name="readiness", daemon=True)

    def look(self) -> None:
        """Look once."""
        try:
            problems = self._find()
        except Exception as error:
            self._log.error("readiness check failed", error)
            problems = {"check": "the check itself failed"}
        if problems == self._known:
            return
        for name, reason in problems.items():
            if reason != (self._known or {}).get(name):
                self._log.error("not ready", missing=name, reason=reason)
        if not problems:
            self._log.info("ready")
        self._known = problems
        kinds = health_pb2.HealthCheckResponse
        for service in self._services:
            self._servicer.set(service, kinds.NOT_SERVING if problems else kinds.SERVING)

    def start(self) -> None:
        """Look now, then go on in the background."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(CHECK_S):
            self.look()
            try:
                self._also()
            except Exception as error:  # the next look must come
                self._log.error("housekeeping failed", error)
