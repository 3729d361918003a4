# pyright: standard
"""The server process: everything put together, started, and stopped in order.

Not here: what any of it does.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from tallyveil.cli.logs import Log
from tallyveil.errors import ConfigurationError
from tallyveil.wire.codec import MAX_MESSAGE_BYTES
from tallyveil.wire.v1 import (
    collection_pb2,
    collection_pb2_grpc,
    statistics_pb2,
    statistics_pb2_grpc,
    survey_pb2,
    survey_pb2_grpc,
)
from tallyveil_aggregator import keys
from tallyveil_aggregator.config import PERMITTED_PING_INTERVAL_S, AggregatorConfig, Server
from tallyveil_aggregator.key_files import check_key_files
from tallyveil_aggregator.known_surveys import KnownSurveys
from tallyveil_aggregator.service.collection import Collection
from tallyveil_aggregator.service.places import LimitedReflection, Places
from tallyveil_aggregator.service.readiness import Watch, find_problems
from tallyveil_aggregator.service.servicers import CollectionServicer, StatisticsServicer, SurveyServicer
from tallyveil_aggregator.service.statistics import Statistics
from tallyveil_aggregator.service.streams import Streams
from tallyveil_aggregator.service.surveys import Surveys
from tallyveil_aggregator.store import Store

GRACE_S = 5.0
KEEPALIVE_TIMEOUT_S = 10
REFLECTION_S = 10.0
READ_S = 120.0
"""How long a reader may take over one release."""

_READERS = 16
_REFLECTIONS = 2
_SPARE_THREADS = 8
"""For calls that are answered at once."""

SERVICES = tuple(
    service.full_name
    for module in (collection_pb2, statistics_pb2, survey_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
)


def now_utc() -> datetime:
    """The present moment, by this machine's clock."""
    return datetime.now(UTC)


class AggregatorServer:
    """A server that is ready to start.

    Args:
        config: Where everything is.
        clock: The present moment, aware.

    Raises:
        ConfigurationError: A key or certificate will not do, the store is none, or the address cannot be had.
        StoreUnavailable: The store cannot be opened.
    """

    def __init__(self, config: AggregatorConfig, clock: Callable[[], datetime] = now_utc) -> None:
        check_key_files(config, clock())
        credentials = _credentials(config.server, clock())
        surveys = KnownSurveys(keys.read_authority(config.authority_key))
        self._store = Store.open(config.store)
        streams = Streams(config.server.max_streams)
        pool = ThreadPoolExecutor(config.server.max_streams + _READERS + _REFLECTIONS + _SPARE_THREADS, "grpc")
        self._server = grpc.server(pool, options=_options(config.server))
        self._pool = pool
        self._health = health.HealthServicer()
        collection = CollectionServicer(Collection(self._store, surveys, clock), streams)
        collection_pb2_grpc.add_CollectionServiceServicer_to_server(collection, self._server)
        survey_pb2_grpc.add_SurveyServiceServicer_to_server(SurveyServicer(Surveys(self._store, surveys)), self._server)
        statistics_pb2_grpc.add_StatisticsServiceServicer_to_server(
            StatisticsServicer(Statistics(self._store), Places(_READERS, READ_S)), self._server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        listed = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(  # type: ignore[no-untyped-call]
            LimitedReflection(listed, Places(_REFLECTIONS, REFLECTION_S)), self._server
        )
        self._watch = Watch(
            lambda: find_problems(config, self._store, clock()), self._health, SERVICES, streams.cut_silent
        )
        try:
            self.port = self._server.add_secure_port(config.server.listen, credentials)
        except RuntimeError:
            self.port = 0
        if self.port == 0:
            self._store.close()
            raise ConfigurationError(
                f"cannot listen on {config.server.listen}",
                not_done="the server was not started",
                next_step="see whether another process has the port; correct [server] listen",
            )

    def start(self) -> None:
        """Begin to serve."""
        self._server.start()
        self._watch.start()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Take no new calls, let those under way end within `grace_s`, then let go of everything."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_s).wait()
        self._watch.stop()
        self._pool.shutdown(wait=True)
        self._store.close()


def serve(config: AggregatorConfig, port_file: Path | None) -> None:
    """Serve until the process is asked to end (SIGTERM, SIGINT).

    Args:
        config: Where everything is.
        port_file: Where to write the port that was bound, once calls are answered.
    """
    asked = threading.Event()
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: asked.set())
    server, log = AggregatorServer(config), Log("aggregator.server")
    host = config.server.listen.rpartition(":")[0]
    server.start()
    try:
        log.info("serving", address=f"{host}:{server.port}", port=server.port)
        if port_file is not None:
            _write_port(port_file, server.port)
        asked.wait()
        log.info("stopping")
    finally:
        server.stop()
    log.info("stopped")


def _credentials(server: Server, now: datetime) -> grpc.ServerCredentials:
    certificate, private_key = keys.read_server_files(server.certificate, server.private_key, now)
    client_ca = keys.read_ca(server.client_ca, "the clients' CA certificate")
    return grpc.ssl_server_credentials(
        [(private_key, certificate)], root_certificates=client_ca, require_client_auth=True
    )


def _options(server: Server) -> list[tuple[str, int]]:
    return [
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.keepalive_time_ms", server.keepalive_s * 1000),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_S * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", PERMITTED_PING_INTERVAL_S * 1000),
        ("grpc.so_reuseport", 0),  # otherwise a second server on the port would silently share its calls
    ]


def _write_port(path: Path, port: int) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(f"{port}\n")
        os.replace(draft, path)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror or type(error).__name__}",
            not_done="the server was stopped again",
            next_step="name another place with --port-file",
        ) from None
