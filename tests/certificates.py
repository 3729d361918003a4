"""Certificates for tests, the wrong ones too: a small CA that issues whatever it is asked for.

Not here: the CA that Tallyveil offers (`tallyveil pki`), which makes right ones only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate, its key and the CA that signed it, as PEM bytes."""

    ca: bytes
    certificate: bytes
    key: bytes

    def save(self, folder: Path) -> Path:
        """Write the files that a client's credentials folder holds, and return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.pem").write_bytes(self.ca)
        (folder / "certificate.pem").write_bytes(self.certificate)
        (folder / "private.key").write_bytes(self.key)
        (folder / "private.key").chmod(0o600)
        return folder


class TestAuthority:
    """A root that signs anything."""

    __test__ = False

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test root")])
        builder = self._builder(self._name, self._key.public_key(), now - 2000 * DAY, now + 2000 * DAY)
        root = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.pem = root.sign(self._key, SHA256()).public_bytes(Encoding.PEM)

    def server(
        self, names: Sequence[str] = ("localhost", "127.0.0.1"), *, common_name: str = "server", days: int = 30
    ) -> Issued:
        """For a server of these DNS names and addresses; negative `days` make it expired."""
        return self._issue(common_name, [_host(name) for name in names], ExtendedKeyUsageOID.SERVER_AUTH, days)

    def client(self, *uris: str, days: int = 30) -> Issued:
        """For a client with these URI names; negative `days` make it expired."""
        names = [x509.UniformResourceIdentifier(uri) for uri in uris]
        return self._issue("client", names, ExtendedKeyUsageOID.CLIENT_AUTH, days)

    def _issue(
        self, common_name: str, names: Sequence[x509.GeneralName], purpose: x509.ObjectIdentifier, days: int
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        end = datetime.now(UTC) + days * DAY
        builder = self._builder(subject, key.public_key(), end - 1000 * DAY, end).add_extension(
            x509.ExtendedKeyUsage([purpose]), critical=False
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Issued(self.pem, certificate, secret)

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
        )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
