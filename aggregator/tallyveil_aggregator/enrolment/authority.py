"""A small certificate authority: one root that signs the server's certificate and those of its clients.

Not here: files (`tallyveil_aggregator.enrolment.files`), the clock, revocation. The issuing functions take a public
key, so the key may come from a signing request as well as from `generate_key`: the authority never needs the
private half.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tallyveil.errors import ConfigurationError
from tallyveil.identity import CertificateFacts, Identity, describe_certificate
from tallyveil.moments import moment_text

MAX_DAYS = 36_500
"""Longest validity; a certificate ends no later than its root anyway."""

CLOCK_SKEW = timedelta(hours=1)
"""How much a certificate's validity begins in the past, for machines whose clocks are slow."""

_ORGANISATION = "Tallyveil"
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NOT_ISSUED = "no certificate was issued"


@dataclass(frozen=True, repr=False)
class Authority:
    """A root certificate with its private key; its repr shows the subject only."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def from_pem(cls, certificate_pem: bytes, key_pem: bytes) -> Authority:
        """Read what `certificate_to_pem` and `key_to_pem` wrote.

        Raises:
            ConfigurationError: Not a CA's certificate, not an unencrypted EC key, or not a pair.
        """
        if not describe_certificate(certificate_pem).is_authority:
            raise _unusable("the CA's certificate may not sign others")
        try:
            certificate = x509.load_pem_x509_certificate(certificate_pem)
            key = load_pem_private_key(key_pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise _unusable("the CA's certificate or key is not an unencrypted PEM file") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise _unusable("the CA's key is not an elliptic-curve key")
        if certificate.public_key() != key.public_key():
            raise _unusable("the CA's key does not belong to its certificate")
        return cls(certificate, key)

    def __repr__(self) -> str:
        return f"Authority({self.certificate.subject.rfc4514_string()})"


def generate_key() -> ec.EllipticCurvePrivateKey:
    """A fresh ECDSA key on P-256, from the operating system's randomness."""
    return ec.generate_private_key(ec.SECP256R1())


def create_authority(now: datetime, days: int) -> Authority:
    """A new root with a new key.

    Args:
        now: The present moment, aware; validity begins `CLOCK_SKEW` before it.
        days: How long the root is valid, from 1 to `MAX_DAYS`.

    Raises:
        ConfigurationError: `days` is out of range.
    """
    key = generate_key()
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Part of the key's fingerprint in the name, so that messages tell a new root from the one it replaced.
    subject = _name(f"{_ORGANISATION} root {key_id.digest.hex()[:8]}")
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(_end(now, days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(key_id, critical=False)
    )
    return Authority(builder.sign(key, SHA256()), key)


def issue_server(
    authority: Authority, public_key: ec.EllipticCurvePublicKey, names: Sequence[str], now: datetime, days: int
) -> x509.Certificate:
    """A certificate for a server that clients dial by any of `names`.

    Args:
        authority: The root that signs.
        public_key: The server's.
        names: DNS names and IP addresses, at least one; which is which is recognised.
        now: The present moment, aware.
        days: How long it is valid.

    Raises:
        ConfigurationError: A name is neither, `days` is out of range, or the root ends earlier.
    """
    if not names:
        raise ConfigurationError(
            "a server's certificate needs at least one name",
            not_done=_NOT_ISSUED,
            next_step="name what clients dial, for example localhost",
        )
    alternatives = dict.fromkeys(_server_name(name) for name in names)
    return _issue(
        authority,
        public_key,
        _name("aggregator"),
        x509.SubjectAlternativeName(alternatives),
        ExtendedKeyUsageOID.SERVER_AUTH,
        now,
        days,
    )


def issue_client(
    authority: Authority, public_key: ec.EllipticCurvePublicKey, identity: Identity, now: datetime, days: int
) -> x509.Certificate:
    """A certificate for a department, an operator or a consumer.

    Args:
        authority: The root that signs.
        public_key: The holder's.
        identity: Whom it speaks for.
        now: The present moment, aware.
        days: How long it is valid.

    Raises:
        ConfigurationError: `days` is out of range, or the root ends earlier.
    """
    return _issue(
        authority,
        public_key,
        _name(identity.name, unit=identity.role),
        x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity.to_uri())]),
        ExtendedKeyUsageOID.CLIENT_AUTH,
        now,
        days,
    )


def certificate_to_pem(certificate: x509.Certificate) -> bytes:
    """The certificate as a PEM file's bytes."""
    return certificate.public_bytes(Encoding.PEM)


def key_to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The private key as an unencrypted PKCS #8 PEM file's bytes: whoever reads them holds the identity."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _issue(
    authority: Authority,
    public_key: ec.EllipticCurvePublicKey,
    subject: x509.Name,
    names: x509.SubjectAlternativeName,
    purpose: x509.ObjectIdentifier,
    now: datetime,
    days: int,
) -> x509.Certificate:
    root = describe_certificate(authority.certificate.public_bytes(Encoding.DER))
    end = _end(now, days)
    _check_within(root, now, end)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.certificate.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier(bytes.fromhex(root.key_fingerprint), None, None), critical=False)
    )
    return builder.sign(authority.key, SHA256())


def _check_within(root: CertificateFacts, now: datetime, end: datetime) -> None:
    if now < root.not_before:
        raise ConfigurationError(
            f"the CA is not valid until {moment_text(root.not_before)} and it is {moment_text(now)}",
            not_done=_NOT_ISSUED,
            next_step="set this machine's clock",
        )
    if end > root.not_after:
        raise ConfigurationError(
            f"the certificate would end on {moment_text(end)}, after its CA on {moment_text(root.not_after)}",
            not_done=_NOT_ISSUED,
            next_step="ask for fewer days, or make a new CA in another folder and move everybody to it",
        )


def _end(now: datetime, days: int) -> datetime:
    if not 1 <= days <= MAX_DAYS:
        raise ConfigurationError(
            f"a certificate is valid for 1 to {MAX_DAYS} days, not {days}",
            not_done=_NOT_ISSUED,
            next_step="choose a number in that range with --days",
        )
    return now.replace(microsecond=0) + timedelta(days=days)


def _server_name(name: str) -> x509.DNSName | x509.IPAddress:
    address = _address(name)
    if address is not None:
        return x509.IPAddress(address)
    bare = name.lower().removesuffix(".")
    labels = bare.split(".")
    # All digits in the last label would be read as an address by some clients (WHATWG URL, "ends in a number").
    if len(bare) > 253 or not all(_LABEL.fullmatch(label) for label in labels) or labels[-1].isdigit():
        raise ConfigurationError(
            f"{name[:100]!r} is neither a DNS name nor an IP address",
            not_done=_NOT_ISSUED,
            next_step="write the host alone, without port or scheme: stats.example.org or 192.0.2.7",
        )
    return x509.DNSName(bare)


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """The address, in brackets or not; None for one with a zone, which a certificate cannot hold."""
    try:
        return None if "%" in name else ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def _name(common: str, unit: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANISATION)]
    if unit:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    """Signing certificates and revocation lists for a root, signing handshakes for all others."""
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _unusable(what: str) -> ConfigurationError:
    return ConfigurationError(what, not_done=_NOT_ISSUED, next_step="name the folder that tallyveil pki init made")
