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
    properties = cast(Mapping[str, Sequence[bytes]], context.auth_context())
    certificates = properties.get("x509_pem_cert", ())
    if len(certificates) != 1:
        return None
    try:
        return identity_of_certificate(certificates[0])
    except ConfigurationError:
        return None
