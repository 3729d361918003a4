# pyright: standard
"""A running aggregator and calls to it, for tests: real gRPC over real mutual TLS.

Not here: any test, and the agent's own transport.
"""

from __future__ import annotations

import queue
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import grpc
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped, unused-ignore]
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from aggregator_world import Pki, Upload, World
from tallyveil.batch import SubmissionKey
from tallyveil.choice import sign_choice
from tallyveil.identity import Identity
from tallyveil.wire.codec import Request, Response, decode_response, encode_request
from tallyveil.wire.v1 import collection_pb2 as pb
from tallyveil.wire.v1.collection_pb2_grpc import CollectionServiceStub
from tallyveil_aggregator.service.server import AggregatorServer

TIMEOUT_S = 20
_KEYS: dict[grpc.Channel, bytes | None] = {}
"""The private key behind each channel's certificate."""


@contextmanager
def running(world: World) -> Generator[AggregatorServer]:
    """The world's aggregator, serving."""
    server = AggregatorServer(world.config, world.clock)
    server.start()
    try:
        yield server
    finally:
        server.stop(grace_s=0)


@contextmanager
def channel_of(pki: Pki, port: int, caller: Identity, *options: tuple[str, int | str]) -> Generator[grpc.Channel]:
    """A channel of a caller with its certificate."""
    with channel_with(pki, port, *pki.client(caller), *options) as channel:
        yield channel


@contextmanager
def channel_with(
    pki: Pki, port: int, certificate: bytes | None, key: bytes | None, *options: tuple[str, int | str]
) -> Generator[grpc.Channel]:
    """A channel with any certificate, or none."""
    credentials = grpc.ssl_channel_credentials(pki.root, key, certificate)
    # One connection for each channel: gRPC would share them between channels of equal options.
    every = [("grpc.use_local_subchannel_pool", 1), *options]
    with grpc.secure_channel(f"localhost:{port}", credentials, every) as channel:
        _KEYS[channel] = key
        yield channel
        del _KEYS[channel]


def message_of(channel: grpc.Channel, step: Request) -> pb.SubmitRequest:
    """A step's message; an opening is signed with the key of the channel's certificate."""
    key = _KEYS[channel]
    return encode_request(step, sign_choice(key, step) if key and isinstance(step, SubmissionKey) else b"")


def send(channel: grpc.Channel, steps: Iterable[Request | pb.SubmitRequest]) -> list[Response]:
    """Send steps on one stream, all at once; the answers."""
    messages = [step if isinstance(step, pb.SubmitRequest) else message_of(channel, step) for step in steps]
    responses = CollectionServiceStub(channel).Submit(iter(messages), timeout=TIMEOUT_S)
    return [decode_response(response) for response in responses]


def send_upload(channel: grpc.Channel, upload: Upload) -> list[Response]:
    """Send a whole submission."""
    return send(channel, (upload.key, *upload.batches, upload.manifest))


def reason_of(error: grpc.RpcError) -> str:
    """The reason's code in a failed call's details, or the name of its status."""
    call = cast(grpc.Call, error)
    status = rpc_status.from_call(call)
    for detail in status.details if status is not None else ():
        info = ErrorInfo()
        if detail.Unpack(info) and info.domain == "tallyveil":
            return str(info.reason)
    return call.code().name


def health(channel: grpc.Channel, service: str = "") -> str:
    """What the health service says."""
    request = health_pb2.HealthCheckRequest(service=service)
    stub = cast(Any, health_pb2_grpc.HealthStub(channel))
    status = stub.Check(request, timeout=TIMEOUT_S).status
    return health_pb2.HealthCheckResponse.ServingStatus.Name(status)


class Conversation:
    """A stream that is sent to step by step."""

    def __init__(self, channel: grpc.Channel, timeout_s: float = TIMEOUT_S) -> None:
        self._steps: queue.Queue[Request | None] = queue.Queue()
        self._channel = channel
        self.call = CollectionServiceStub(channel).Submit(self._messages(), timeout=timeout_s)

    def say(self, step: Request) -> Response:
        """Send one step and wait for its answer."""
        self._steps.put(step)
        return decode_response(next(self.call))

    def close(self) -> None:
        """End our side, or the whole call."""
        self._steps.put(None)
        self.call.cancel()

    def _messages(self) -> Iterator[pb.SubmitRequest]:
        while (step := self._steps.get()) is not None:
            yield message_of(self._channel, step)
