"""Who a certificate speaks for, what it states, and what is wrong with it when a connection fails.

Not here: making certificates (the aggregator's enrolment), reading files, connecting. Whether to trust a peer is
decided by the TLS handshake; `diagnose` only explains, after the fact, what the transport will not tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from ipaddress import ip_address
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from tallyveil.errors import ConfigurationError
from tallyveil.moments import moment_text

SCHEME = "tallyveil"
NAME_RULE = "lower-case letters, digits and '-', at most 63, beginning with a letter or digit"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""Of departments, consumers and operators."""

_SHOWN = 100
"""Characters of a foreign text that a message repeats."""

_MALFORMED = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What the parser raises on bytes that are no certificate; these classes share no other base."""

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class Role(StrEnum):
    """What a certificate's holder may do; a holder of two roles has two certificates."""

    DEPARTMENT = "department"
    OPERATOR = "operator"
    CONSUMER = "consumer"


@dataclass(frozen=True)
class Identity:
    """One holder: a role and a name.

    Args:
        role: What the holder is.
        name: Unique within the role; `NAME_RULE` says what it may be.

    Raises:
        ConfigurationError: The name breaks the rule.
    """

    role: Role
    name: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"{_shown(self.name)} cannot be the name of the {self.role}",
                next_step=f"a name is {NAME_RULE}; write for example health or region-7",
            )

    def to_uri(self) -> str:
        """The URI that a certificate carries: ``tallyveil:department:health``."""
        return f"{SCHEME}:{self.role}:{self.name}"


def identity_from_uri(uri: str) -> Identity:
    """Read back what `Identity.to_uri` wrote, and nothing else.

    Raises:
        ConfigurationError: Another scheme, an unknown role, or a name that breaks the rule.
    """
    match uri.split(":"):
        case [scheme, role, name] if scheme == SCHEME and role in tuple(Role):
            return Identity(Role(role), name)
        case _:
            raise ConfigurationError(
                f"{_shown(uri)} is not an identity",
                next_step=f"an identity is {SCHEME}:ROLE:NAME with ROLE one of {', '.join(Role)}",
            )


@dataclass(frozen=True)
class CertificateFacts:
    """What a certificate states about itself; nothing here has been verified.

    Args:
        subject: Whose it is, as a distinguished name. For people only: identity is in `uris`.
        issuer: The issuer's distinguished name.
        dns_names: Host names it may serve.
        ip_addresses: Addresses it may serve, in canonical text.
        uris: URI names, identities among them.
        not_before: First moment of validity, UTC.
        not_after: Last moment of validity, UTC.
        fingerprint: ``sha256:`` and the SHA-256 of the whole certificate.
        key_fingerprint: The key identifier of its own key, hexadecimal.
        issuer_fingerprint: The key identifier of the issuer's key: equal to the CA's `key_fingerprint`. Empty where
            the certificate does not state it.
        serial: Serial number, hexadecimal without leading zeros; unique within the issuer.
        is_authority: Whether it may sign certificates.
        for_server: Whether it may be used by a server.
        for_client: Whether it may be used by a client.
    """

    subject: str
    issuer: str
    dns_names: tuple[str, ...]
    ip_addresses: tuple[str, ...]
    uris: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    fingerprint: str
    key_fingerprint: str
    issuer_fingerprint: str
    serial: str
    is_authority: bool
    for_server: bool
    for_client: bool

    def names_host(self, host: str) -> bool:
        """Whether a client that dialled `host` (a DNS name or an IP address, no port) accepts this certificate."""
        bare = host.removeprefix("[").removesuffix("]")
        try:
            return str(ip_address(bare)) in self.ip_addresses
        except ValueError:
            wanted = bare.removesuffix(".").lower()
        # A wildcard stands for exactly one label, the leftmost (RFC 6125, 6.4.3).
        wildcard = "*." + wanted.partition(".")[2]
        return any(name.lower() in (wanted, wildcard) for name in self.dns_names)

    def identity(self) -> Identity:
        """The one identity among the URIs.

        Raises:
            ConfigurationError: There is none, there are several, or it is malformed.
        """
        # Schemes are case-insensitive; another spelling is ours too, and `identity_from_uri` refuses it.
        ours = [uri for uri in self.uris if uri.lower().startswith(SCHEME + ":")]
        if len(ours) != 1:
            held = f"{len(ours)} {SCHEME}: names" if ours else f"no {SCHEME}: name"
            raise ConfigurationError(
                f"the certificate holds {held}; an identity is exactly one",
                next_step="have a certificate issued for one department, operator or consumer",
            )
        return identity_from_uri(ours[0])


def identity_of_certificate(certificate: bytes) -> Identity:
    """Whom a certificate speaks for; its signature and dates are the handshake's business.

    Args:
        certificate: PEM (of a chain, the first) or DER.

    Raises:
        ConfigurationError: Not a certificate, or without exactly one well-formed ``tallyveil:`` URI name.
    """
    return describe_certificate(certificate).identity()


def describe_certificate(certificate: bytes) -> CertificateFacts:
    """What a certificate states.

    Args:
        certificate: PEM (of a chain, the first) or DER.

    Raises:
        ConfigurationError: Not a certificate that can be read.
    """
    return _facts(_chain(certificate, "certificate")[0])


def diagnose(
    certificate_pem: bytes,
    ca_pem: bytes,
    now: datetime,
    *,
    dialled_host: str | None = None,
    expected_role: Role | None = None,
    key_pem: bytes | None = None,
) -> list[str]:
    """What would make a peer refuse this certificate, one plain sentence each; empty where nothing is found.

    Args:
        certificate_pem: The certificate, or a chain that begins with it.
        ca_pem: The CA certificates that the peer trusts.
        now: The moment of the connection, aware.
        dialled_host: For a server's certificate: the name or address that the client dialled, without a port.
        expected_role: For a client's certificate: the role that the server asks for.
        key_pem: The private key presented with the certificate.

    Returns:
        Sentences without a full stop. What cannot be read is one of them, never an error.
    """
    try:
        chain = _chain(certificate_pem, "certificate")
        facts = _facts(chain[0])
    except ConfigurationError as error:
        return [error.what]
    found = _wrong_dates("certificate", facts, now)
    try:
        found += _wrong_issuer(chain, facts, _chain(ca_pem, "CA certificate"), now)
    except ConfigurationError as error:
        found.append(error.what)
    if dialled_host is not None:
        found += _wrong_for_server(facts, dialled_host)
    if expected_role is not None:
        found += _wrong_for_client(facts, expected_role)
    if key_pem is not None:
        found += _wrong_key(chain[0], key_pem)
    return found


def _wrong_dates(which: str, facts: CertificateFacts, now: datetime) -> list[str]:
    if now > facts.not_after:
        return [f"the {which} expired on {moment_text(facts.not_after)} and it is {moment_text(now)}"]
    if now < facts.not_before:
        return [
            f"the {which} is not valid until {moment_text(facts.not_before)} and this clock says {moment_text(now)}"
        ]
    return []


def _wrong_issuer(
    chain: list[x509.Certificate], facts: CertificateFacts, trusted: list[x509.Certificate], now: datetime
) -> list[str]:
    ca = _trusted_issuer(chain, trusted)
    if ca is None:
        keys = ", ".join(_facts(one).key_fingerprint for one in trusted)
        return [
            f"the certificate is signed by another CA: by {_shown(facts.issuer)} "
            f"with key {facts.issuer_fingerprint or 'not stated'}, while the CA file holds key {keys}"
        ]
    ca_facts = _facts(ca)
    if not ca_facts.is_authority:
        return ["the CA file holds a certificate that may not sign others"]
    return _wrong_dates("CA certificate", ca_facts, now)


def _trusted_issuer(chain: list[x509.Certificate], trusted: list[x509.Certificate]) -> x509.Certificate | None:
    """The trusted certificate that the chain ends at: each of a chain is signed by the one after it."""
    for position, link in enumerate(chain):
        for ca in trusted:
            if _is_signed_by(link, ca):
                return ca
        if chain[position + 1 :] and not _is_signed_by(link, chain[position + 1]):
            return None
    return None


def _is_signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, TypeError, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _wrong_for_server(facts: CertificateFacts, dialled_host: str) -> list[str]:
    found: list[str] = []
    if not facts.for_server:
        found.append("the certificate is not one for servers")
    if not facts.names_host(dialled_host):
        held = ", ".join(_shown(name) for name in (*facts.dns_names, *facts.ip_addresses)) or "no name at all"
        found.append(f"{_shown(dialled_host)} was dialled and the certificate holds {held}")
    return found


def _wrong_for_client(facts: CertificateFacts, expected_role: Role) -> list[str]:
    found: list[str] = []
    if not facts.for_client:
        found.append("the certificate is not one for clients")
    try:
        identity = facts.identity()
    except ConfigurationError as error:
        found.append(error.what)
    else:
        if identity.role is not expected_role:
            found.append(
                f"the certificate is for the {identity.role} {identity.name}, but the role {expected_role} is needed"
            )
    return found


def _wrong_key(certificate: x509.Certificate, key_pem: bytes) -> list[str]:
    try:
        key = load_pem_private_key(key_pem, password=None)
    except TypeError:
        return ["the private key is encrypted"]
    except (ValueError, UnsupportedAlgorithm):
        return ["the private key is not a PEM file of a key"]
    spki = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*spki) != certificate.public_key().public_bytes(*spki):
        return ["the private key does not belong to the certificate"]
    return []


def _chain(data: bytes, which: str) -> list[x509.Certificate]:
    """The certificates of a PEM file, at least one, or the one of a DER file."""
    try:
        if b"-----BEGIN" in data:
            return x509.load_pem_x509_certificates(data)
        return [x509.load_der_x509_certificate(data)]
    except _MALFORMED:
        raise _unreadable(which) from None


def _facts(certificate: x509.Certificate) -> CertificateFacts:
    # The parser reads lazily, so malformed parts show only here.
    try:
        return _read_facts(certificate)
    except _MALFORMED:
        raise _unreadable("certificate") from None


def _read_facts(certificate: x509.Certificate) -> CertificateFacts:
    extensions = certificate.extensions
    names = _extension(extensions, x509.SubjectAlternativeName) or x509.SubjectAlternativeName([])
    constraints = _extension(extensions, x509.BasicConstraints)
    purposes = _extension(extensions, x509.ExtendedKeyUsage)
    own = _extension(extensions, x509.SubjectKeyIdentifier)
    own = own or x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())
    issuer = _extension(extensions, x509.AuthorityKeyIdentifier)
    issuer_key = issuer.key_identifier if issuer else None
    if certificate.subject == certificate.issuer:
        issuer_key = issuer_key or own.digest
    return CertificateFacts(
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        dns_names=tuple(names.get_values_for_type(x509.DNSName)),
        ip_addresses=tuple(str(address) for address in names.get_values_for_type(x509.IPAddress)),
        uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        fingerprint="sha256:" + sha256(certificate.public_bytes(Encoding.DER)).hexdigest(),
        key_fingerprint=own.digest.hex(),
        issuer_fingerprint=(issuer_key or b"").hex(),
        serial=f"{certificate.serial_number:x}",
        is_authority=constraints is not None and constraints.ca,
        # A certificate that states no purpose may be used for any (RFC 5280, 4.2.1.12).
        for_server=purposes is None or ExtendedKeyUsageOID.SERVER_AUTH in purposes,
        for_client=purposes is None or ExtendedKeyUsageOID.CLIENT_AUTH in purposes,
    )


def _extension(extensions: x509.Extensions, kind: type[_Extension]) -> _Extension | None:
    try:
        return extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _unreadable(which: str) -> ConfigurationError:
    return ConfigurationError(
        f"the {which} cannot be read: it is not an X.509 certificate in PEM or DER",
        next_step="compare the file with the one that was issued, and copy it again",
    )


def _shown(text: str) -> str:
    """A foreign text as a message may repeat it: quoted, short, without control characters."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
