# pyright: standard
"""Who is calling: the identity in the certificate that the TLS handshake verified, never a field of a message.

Not here: what an identity may do (`access` and the handlers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import grpc

from tallyveil.errors import ConfigurationError
from tallyveil.identity import Identity, identity_of_certificate


def caller_of(context: grpc.ServicerContext) -> Identity | None:
    """The one identity among the URI names of the caller's certificate; None where there is no such."""
    # gRPC's own list of alternative names does not tell a URI from a DNS name, hence the certificate itself.
    certificate = certificate_of(context)
    try:
        return identity_of_certificate(certificate) if certificate else None
    except ConfigurationError:
        return None


def certificate_of(context: grpc.ServicerContext) -> bytes:
    """The caller's certificate in PEM, verified by the handshake; empty where there is not exactly one."""
    properties = cast(Mapping[str, Sequence[bytes]], context.auth_context())
    certificates = properties.get("x509_pem_cert", ())
    return certificates[0] if len(certificates) == 1 else b""
