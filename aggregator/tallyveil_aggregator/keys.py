"""Reading the key and certificate files that the configuration names.

Not here: making them (`tallyveil_aggregator.enrolment`). No message shows what a file holds.
"""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path

from tallyveil.errors import ConfigurationError
from tallyveil.identity import describe_certificate
from tallyveil.moments import moment_text
from tallyveil.signing import SigningKey, VerifyingKey

_NOT_DONE = "nothing was started or signed"


def read_authority(path: Path) -> VerifyingKey:
    """The survey authority's public key.

    Raises:
        ConfigurationError: The file is missing, unreadable or no such key.
    """
    try:
        return VerifyingKey.from_pem(read_file(path, "the survey authority's public key"))
    except ConfigurationError as error:
        raise _named(error, path, "copy authority.pub as the survey authority published it") from None


def read_release_key(path: Path) -> SigningKey:
    """The key that signs releases.

    Raises:
        ConfigurationError: The file is missing, unreadable or no such key.
    """
    try:
        return SigningKey.from_pem(read_file(path, "the release key"))
    except ConfigurationError as error:
        raise _named(error, path, "restore the key consumers trust; a new one breaks their verification") from None


def read_server_files(certificate: Path, private_key: Path, now: datetime) -> tuple[bytes, bytes]:
    """The server's certificate and private key, known to belong together and to be valid now.

    Raises:
        ConfigurationError: A file is missing, not what it should be, expired, or of another pair.
    """
    pem, key = read_file(certificate, "the server's certificate"), read_file(private_key, "the server's private key")
    facts = describe_certificate(pem)
    if not facts.not_before <= now <= facts.not_after:
        raise ConfigurationError(
            f"the server's certificate {certificate} is valid from {moment_text(facts.not_before)} "
            f"to {moment_text(facts.not_after)} and it is {moment_text(now)}",
            not_done=_NOT_DONE,
            next_step="issue a new one with tallyveil pki server, or set the clock",
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, private_key, password=lambda: "")
    except (ssl.SSLError, OSError):
        raise ConfigurationError(
            f"{certificate} and {private_key} are not a PEM certificate and its unencrypted key",
            not_done=_NOT_DONE,
            next_step="check both paths; tallyveil pki server makes a fitting pair",
        ) from None
    return pem, key


def read_client_ca(path: Path) -> bytes:
    """The certificates of the CA that signs clients' certificates.

    Raises:
        ConfigurationError: The file is missing, unreadable or holds no CA certificate.
    """
    pem = read_file(path, "the clients' CA certificate")
    if not describe_certificate(pem).is_authority:
        raise ConfigurationError(
            f"{path} is not a certificate that may sign others",
            not_done=_NOT_DONE,
            next_step="name the root of the CA: ca.pem where tallyveil pki init made it",
        )
    return pem


def read_file(path: Path, what: str) -> bytes:
    """A file's bytes.

    Args:
        path: Where it is.
        what: What it should be, for messages.

    Raises:
        ConfigurationError: It is missing or unreadable.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{what} cannot be read: {error.strerror or type(error).__name__}",
            not_done=_NOT_DONE,
            next_step="check the path in the configuration and the file's permissions",
        ) from None


def _named(error: ConfigurationError, path: Path, next_step: str) -> ConfigurationError:
    return ConfigurationError(f"{error.what} ({path})", not_done=error.not_done or _NOT_DONE, next_step=next_step)
