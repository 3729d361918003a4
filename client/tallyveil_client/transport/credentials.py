"""Our own certificate, key and CA: read, checked against each other, and explained where a server refuses them.

Not here: the server's certificate (`handshake`).
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from tallyveil.errors import ConfigurationError
from tallyveil.identity import Role, describe_certificate, diagnose, identity_of_certificate
from tallyveil_client.transport.endpoint import Endpoint

_NO_CONNECTION = "no connection was tried"


def read(endpoint: Endpoint) -> tuple[bytes, bytes, bytes]:
    """CA, certificate and private key, known to be such and to belong together.

    Raises:
        ConfigurationError: A file cannot be read, is not what it should be, or states another role than asked for.
    """
    material = _material(endpoint)
    try:
        tls_context(endpoint)
    except ssl.SSLError:
        found = faults(endpoint, datetime.now(UTC)) or ["certificate, key and CA do not fit each other"]
        raise unusable(endpoint, found, _NO_CONNECTION) from None
    if wrong := _wrong_role(material[1], endpoint.role):
        raise unusable(endpoint, wrong, _NO_CONNECTION)
    return material


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """The standard library's client side of the same mutual TLS.

    Raises:
        ssl.SSLError: A file is not what it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cafile=endpoint.ca)
    # A password function, so that an encrypted key is an error instead of a question on the terminal.
    context.load_cert_chain(endpoint.certificate, endpoint.private_key, password=lambda: "")
    return context


def faults(endpoint: Endpoint, now: datetime) -> list[str]:
    """What a server that trusts our own CA would hold against our certificate, one phrase each."""
    ca, certificate, key = _material(endpoint)
    found = diagnose(certificate, ca, now, expected_role=endpoint.role, key_pem=key)
    return found or ([] if endpoint.role else _wrong_role(certificate, None))


def unusable(endpoint: Endpoint, found: list[str], not_done: str) -> ConfigurationError:
    """The error that says so."""
    return ConfigurationError(
        f"our certificate {endpoint.certificate} cannot be used with {endpoint.ca}: {'; '.join(found)}",
        not_done=not_done,
        next_step="correct the files, or have a certificate issued anew; trying again changes nothing",
    )


def who(endpoint: Endpoint) -> str:
    """What our certificate says about us, as a sentence without a full stop."""
    try:
        identity = identity_of_certificate(read_file(endpoint.certificate, "certificate"))
    except ConfigurationError as error:
        return f"Of {endpoint.certificate}: {error.what}"
    return f"Our certificate is for {identity.role} {identity.name}"


def _wrong_role(certificate: bytes, role: Role | None) -> list[str]:
    try:
        facts = describe_certificate(certificate)
        identity = facts.identity() if role else None
    except ConfigurationError as error:
        return [error.what]
    if not facts.for_client:
        return ["the certificate is not one for clients"]
    if identity is not None and identity.role is not role:
        return [f"the certificate is for {identity.role} {identity.name} where one for a {role} is needed"]
    return []


def _material(endpoint: Endpoint) -> tuple[bytes, bytes, bytes]:
    return (
        read_file(endpoint.ca, "CA certificate"),
        read_file(endpoint.certificate, "certificate"),
        read_file(endpoint.private_key, "private key"),
    )


def read_file(path: Path, what: str) -> bytes:
    """The bytes of a key or certificate file, called `what` in messages.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the {what} {path} cannot be read: {error.strerror or type(error).__name__}",
            not_done=_NO_CONNECTION,
            next_step="check the path and its permissions",
        ) from None
