# pyright: standard
"""A gRPC server with mutual TLS that answers as a test tells it to, truthfully or not.

Not here: the aggregator. What a client does with a server that lies or fails needs one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped, unused-ignore]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped, unused-ignore]
from grpc_status import rpc_status

from certificates import Issued
from tallyveil.wire.codec import MAX_MESSAGE_BYTES
from tallyveil.wire.v1 import statistics_pb2, survey_pb2
from tallyveil.wire.v1.statistics_pb2_grpc import StatisticsServiceServicer, add_StatisticsServiceServicer_to_server
from tallyveil.wire.v1.survey_pb2_grpc import SurveyServiceServicer, add_SurveyServiceServicer_to_server

PART_BYTES = 1_000
"""Small, so that every release comes in several parts."""

Abort = Callable[[grpc.ServicerContext], None]


@dataclass
class StandIn:
    """What the server answers; a test may change it between calls."""

    surveys: list[survey_pb2.SurveySummary] = field(default_factory=list)
    releases: list[statistics_pb2.ReleaseSummary] = field(default_factory=list)
    document: bytes = b""
    before: Abort = lambda context: None
    requests: list[object] = field(default_factory=list)
    port: int = 0


def refuse(
    reason: str, code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION, domain: str = "tallyveil"
) -> Abort:
    """End the call with an ErrorInfo."""

    def abort(context: grpc.ServicerContext) -> None:
        detail = Any()
        detail.Pack(ErrorInfo(domain=domain, reason=reason))
        context.abort_with_status(rpc_status.to_status(Status(code=code.value[0], message=reason, details=[detail])))

    return abort


def end(code: grpc.StatusCode, details: str = "") -> Abort:
    """End the call with a plain status."""
    return lambda context: context.abort(code, details)


@contextmanager
def serving(identity: Issued, *, client_ca: bytes | None = None) -> Generator[StandIn]:
    """Serve on a free port of the loopback address."""
    stand_in = StandIn()
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", 2 * MAX_MESSAGE_BYTES)])
    add_SurveyServiceServicer_to_server(_Surveys(stand_in), server)
    add_StatisticsServiceServicer_to_server(_Statistics(stand_in), server)
    credentials = grpc.ssl_server_credentials(
        [(identity.key, identity.certificate)], client_ca or identity.ca, require_client_auth=True
    )
    stand_in.port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield stand_in
    finally:
        server.stop(None).wait()


class _Surveys(SurveyServiceServicer):
    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    def ListSurveys(
        self, request: survey_pb2.ListSurveysRequest, context: grpc.ServicerContext
    ) -> survey_pb2.ListSurveysResponse:
        self._stand_in.requests.append(request)
        self._stand_in.before(context)
        return survey_pb2.ListSurveysResponse(surveys=self._stand_in.surveys)

    def GetSurvey(
        self, request: survey_pb2.GetSurveyRequest, context: grpc.ServicerContext
    ) -> survey_pb2.GetSurveyResponse:
        self._stand_in.requests.append(request)
        self._stand_in.before(context)
        return survey_pb2.GetSurveyResponse(document=self._stand_in.document)


class _Statistics(StatisticsServiceServicer):
    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    def ListReleases(
        self, request: statistics_pb2.ListReleasesRequest, context: grpc.ServicerContext
    ) -> statistics_pb2.ListReleasesResponse:
        self._stand_in.requests.append(request)
        self._stand_in.before(context)
        return statistics_pb2.ListReleasesResponse(releases=self._stand_in.releases)

    def GetRelease(
        self, request: statistics_pb2.GetReleaseRequest, context: grpc.ServicerContext
    ) -> Iterator[statistics_pb2.GetReleaseResponse]:
        self._stand_in.requests.append(request)
        self._stand_in.before(context)
        document = self._stand_in.document
        for start in range(0, len(document), PART_BYTES):
            yield statistics_pb2.GetReleaseResponse(part=document[start : start + PART_BYTES])
