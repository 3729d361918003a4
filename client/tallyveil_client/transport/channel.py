# pyright: standard
"""Making a channel with mutual TLS, and the one guard around every call on it.

Not here: what a failure means (`failures`, `handshake`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

import grpc

from tallyveil.wire.codec import MAX_MESSAGE_BYTES
from tallyveil_client.transport import credentials, handshake
from tallyveil_client.transport.endpoint import Endpoint
from tallyveil_client.transport.failures import translate

KEEPALIVE_INTERVAL_S = 20
"""Twice the 10 s that a server must permit, calls or none, so that a late clock never earns a GOAWAY."""

KEEPALIVE_TIMEOUT_S = 10

Channel = grpc.Channel


def connect(endpoint: Endpoint) -> Channel:
    """A channel with mutual TLS; its connection is made by the first call. Close it after use.

    Make it after a fork, never before. One handshake is made at once, so that a server without the right
    certificate is told from one that is not there; a server that is not there is left to the first call.

    Raises:
        ConfigurationError: A file is missing, is not what it should be, key and certificate do not belong together,
            our role is not the endpoint's, or the server's certificate is not to be trusted.
    """
    ca, certificate, key = credentials.read(endpoint)
    handshake.check_server(endpoint, datetime.now(UTC))
    options: list[tuple[str, int | str]] = [
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.keepalive_time_ms", KEEPALIVE_INTERVAL_S * 1000),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_S * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    if endpoint.server_name is not None:
        options.append(("grpc.ssl_target_name_override", endpoint.server_name))
    return grpc.secure_channel(endpoint.address, grpc.ssl_channel_credentials(ca, key, certificate), options)


@contextmanager
def calling(endpoint: Endpoint, doing: str) -> Generator[None]:
    """Turn a gRPC error of the calls inside into one of ours.

    Raises:
        TallyveilError: As `translate` says.
    """
    try:
        yield
    except grpc.RpcError as error:
        raise translate(error, endpoint, doing) from None
