"""Reading the key and certificate files that the configuration names, each of which must be what it is named for.

Not here: making them (`tallyveil_aggregator.enrolment`), all of them together (`tallyveil_aggregator.key_files`).
No message shows what a secret file holds.
"""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path

from tallyveil.errors import ConfigurationError
from tallyveil.identity import CertificateFacts, describe_certificate, diagnose
from tallyveil.moments import moment_text
from tallyveil.signing import SigningKey, VerifyingKey

_NOT_DONE = "nothing was started, signed or changed"


def read_authority(path: Path) -> VerifyingKey:
    """The survey authority's public key.

    Raises:
        ConfigurationError: The file is missing, unreadable or no such key.
    """
    next_step = "copy authority.pub there, as tallyveil pki init made it or the survey authority published it"
    data = read_file(path, "the survey authority's public key", next_step)
    try:
        return VerifyingKey.from_pem(data)
    except ConfigurationError as error:
        raise _named(error, path, next_step) from None


def read_release_key(path: Path) -> SigningKey:
    """The key that signs releases.

    Raises:
        ConfigurationError: The file is missing, unreadable or no such key.
    """
    next_step = "copy release.key there, as tallyveil pki init made it: consumers trust that key and no other"
    data = read_file(path, "the release key", next_step)
    try:
        return SigningKey.from_pem(data)
    except ConfigurationError as error:
        raise _named(error, path, next_step) from None


def check_release_key(release: SigningKey, authority: VerifyingKey) -> None:
    """Check that releases are signed with a key of their own.

    Raises:
        ConfigurationError: It is the survey authority's key, which has no place on the aggregator.
    """
    if release.public.fingerprint == authority.fingerprint:
        raise ConfigurationError(
            "the release key is the survey authority's own key: whoever holds this machine could define surveys",
            not_done=_NOT_DONE,
            next_step="name release.key in [release] private_key, and keep authority.key away from the aggregator",
        )


def read_server_files(certificate: Path, private_key: Path, now: datetime) -> tuple[bytes, bytes]:
    """The server's certificate and private key, known to belong together, to be a server's and to be valid now.

    Raises:
        ConfigurationError: A file is missing, not what it should be, expired, a client's, or of another pair.
    """
    next_step = "copy server.pem and server.key there, as tallyveil pki server made them"
    pem = read_file(certificate, "the server's certificate", next_step)
    key = read_file(private_key, "the server's private key", next_step)
    facts = _described(pem, certificate)
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
    if fault := _unfit_for_server(facts):
        raise ConfigurationError(
            f"{certificate} is not a server's certificate, so every client would refuse it: {fault}",
            not_done=_NOT_DONE,
            next_step="name server.pem and server.key as tallyveil pki server made them",
        )
    return pem, key


def read_ca(path: Path, what: str) -> bytes:
    """The certificates of a CA.

    Args:
        path: Where they are.
        what: Whose they are, for messages: "the clients' CA certificate".

    Raises:
        ConfigurationError: The file is missing, unreadable or holds no CA certificate.
    """
    pem = read_file(path, what, "copy ca.pem there, as tallyveil pki init made it")
    if not _described(pem, path).is_authority:
        raise ConfigurationError(
            f"{path} is not a certificate that may sign others",
            not_done=_NOT_DONE,
            next_step="name the root of the CA: ca.pem where tallyveil pki init made it",
        )
    return pem


def check_server_issuer(certificate: bytes, ca: bytes, ca_path: Path, now: datetime) -> None:
    """Check that clients who trust this CA will trust the server's certificate.

    Raises:
        ConfigurationError: Another CA signed it, or the CA's own certificate is not valid now.
    """
    if problems := diagnose(certificate, ca, now):
        raise ConfigurationError(
            f"clients that trust {ca_path} cannot connect: {'; '.join(problems)}",
            not_done=_NOT_DONE,
            next_step="name the ca.pem of the CA that issued server.pem, or issue server.pem anew with that CA; where "
            "another CA is meant to vouch for the server, name its certificate in [server] server_ca",
        )


def read_file(path: Path, what: str, next_step: str, not_done: str = _NOT_DONE) -> bytes:
    """A file's bytes.

    Args:
        path: Where it is.
        what: What it should be, for messages.
        next_step: What to do where it cannot be read.
        not_done: What has not happened then.

    Raises:
        ConfigurationError: It is missing or unreadable.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{what} {path} cannot be read: {error.strerror or type(error).__name__}",
            not_done=not_done,
            next_step=next_step,
        ) from None


def _unfit_for_server(facts: CertificateFacts) -> str:
    if not facts.for_server:
        try:
            holder = facts.identity()
        except ConfigurationError:
            return "it may not be used by a server"
        return f"it is the certificate of the {holder.role} {holder.name}"
    return "" if facts.dns_names or facts.ip_addresses else "it holds no name or address that clients could dial"


def _described(pem: bytes, path: Path) -> CertificateFacts:
    try:
        return describe_certificate(pem)
    except ConfigurationError as error:
        raise _named(error, path, error.next_step) from None


def _named(error: ConfigurationError, path: Path, next_step: str) -> ConfigurationError:
    return ConfigurationError(f"{error.what} ({path})", not_done=_NOT_DONE, next_step=next_step)
