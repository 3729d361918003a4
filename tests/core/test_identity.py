"""Identities in certificates, what certificates state, and what is found wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from tallyveil.errors import ConfigurationError
from tallyveil.identity import (
    Identity,
    Role,
    describe_certificate,
    diagnose,
    identity_from_uri,
    identity_of_certificate,
)

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


class Authority:
    """A CA of the tests' own, so that certificates can be wrong in ways the real one refuses."""

    def __init__(self, name: str = "root", *, begins: datetime = NOW - DAY, ends: datetime = NOW + DAY) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, begins, ends, [x509.BasicConstraints(True, 0)])

    def issue(
        self,
        *names: str,
        dns: Sequence[str] = (),
        ip: Sequence[str] = (),
        purpose: x509.ObjectIdentifier | None = None,
        begins: datetime = NOW - DAY,
        ends: datetime = NOW + DAY,
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> bytes:
        """A PEM certificate with `names` as its URIs."""
        alternatives = [
            *(x509.UniformResourceIdentifier(name) for name in names),
            *(x509.DNSName(name) for name in dns),
            *(x509.IPAddress(ip_address(address)) for address in ip),
        ]
        extensions: list[x509.ExtensionType] = []
        if alternatives:
            extensions.append(x509.SubjectAlternativeName(alternatives))
        if purpose:
            extensions.append(x509.ExtendedKeyUsage([purpose]))
        holder = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        key = key or ec.generate_private_key(ec.SECP256R1())
        return self._sign(holder, key, begins, ends, extensions)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        begins: datetime,
        ends: datetime,
        extensions: list[x509.ExtensionType],
    ) -> bytes:
        builder = x509.CertificateBuilder(
            self.name, subject, key.public_key(), x509.random_serial_number(), begins, ends
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, SHA256()).public_bytes(Encoding.PEM)


ROOT = Authority()
HEALTH = ROOT.issue("tallyveil:department:health", purpose=ExtendedKeyUsageOID.CLIENT_AUTH)
SERVER = ROOT.issue(
    dns=["localhost", "*.stats.example.org"],
    ip=["127.0.0.1", "2001:db8::1"],
    purpose=ExtendedKeyUsageOID.SERVER_AUTH,
)
HEALTH_DER = x509.load_pem_x509_certificate(HEALTH).public_bytes(Encoding.DER)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("name", ["health", "7", "region-7", "a" * 63])
def test_an_identity_is_read_back_from_its_uri(role: Role, name: str) -> None:
    identity = Identity(role, name)
    assert identity.to_uri() == f"tallyveil:{role.value}:{name}"
    assert identity_from_uri(identity.to_uri()) == identity


@pytest.mark.parametrize("name", ["", "-a", "Health", "a" * 64, "a b", "a\n", "a:b", "a_b", "a.b", "统计", "a/../b"])
def test_a_name_outside_the_rule_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Identity(Role.DEPARTMENT, name)
    assert "lower-case letters, digits and '-'" in refused.value.next_step


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "tallyveil",
        "tallyveil:department",
        "tallyveil:department:",
        "tallyveil:department:a:b",
        "tallyveil:minister:a",
        "tallyveil:DEPARTMENT:a",
        "Tallyveil:department:a",
        "tallyveil:department:a\n",
        " tallyveil:department:a",
        "spiffe://tallyveil/department/a",
    ],
)
def test_another_uri_is_no_identity(uri: str) -> None:
    with pytest.raises(ConfigurationError):
        identity_from_uri(uri)


@given(st.text() | st.from_regex(r"tallyveil:(department|operator|consumer):.{0,70}"))
def test_any_text_is_an_identity_written_the_one_way_or_is_refused(text: str) -> None:
    try:
        identity = identity_from_uri(text)
    except ConfigurationError:
        return
    assert identity.to_uri() == text


@pytest.mark.parametrize("encoded", [HEALTH, HEALTH_DER, HEALTH + ROOT.certificate], ids=["PEM", "DER", "chain"])
def test_the_identity_is_the_one_uri_of_the_certificate(encoded: bytes) -> None:
    assert identity_of_certificate(encoded) == Identity(Role.DEPARTMENT, "health")


def test_uris_of_others_beside_the_identity_do_not_matter() -> None:
    certificate = ROOT.issue("https://example.org/health", "tallyveil:consumer:press")
    assert identity_of_certificate(certificate) == Identity(Role.CONSUMER, "press")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no tallyveil: name"),
        (["https://example.org"], "no tallyveil: name"),
        (["tallyveil:department:a", "tallyveil:operator:a"], "2 tallyveil: names"),
        (["tallyveil:department:a", "TALLYVEIL:operator:a"], "2 tallyveil: names"),
        (["tallyveil:department:A"], "cannot be the name"),
        (["TALLYVEIL:department:a"], "is not an identity"),
    ],
)
def test_a_certificate_without_exactly_one_identity_speaks_for_nobody(names: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        identity_of_certificate(ROOT.issue(*names, dns=["localhost"]))


@given(st.binary(max_size=200))
def test_garbage_is_refused_as_a_certificate(data: bytes) -> None:
    with pytest.raises(ConfigurationError):
        identity_of_certificate(data)


@pytest.mark.filterwarnings("ignore:Parsed a serial number", "ignore:Attribute's length")
@given(st.integers(0, len(HEALTH_DER) - 1), st.integers(1, 255))
def test_a_damaged_certificate_is_read_or_refused_and_never_breaks_the_reader(place: int, change: int) -> None:
    damaged = bytearray(HEALTH_DER)
    damaged[place] ^= change
    try:
        facts = describe_certificate(bytes(damaged))
    except ConfigurationError:
        return
    whole = describe_certificate(HEALTH)
    assert facts.fingerprint != whole.fingerprint
    # Bits around the signature that nobody reads may change and leave all that is said and signed as it was.
    unchanged = replace(facts, fingerprint=whole.fingerprint) == whole
    assert diagnose(bytes(damaged), ROOT.certificate, NOW, expected_role=Role.DEPARTMENT) or unchanged


def test_a_certificate_of_an_unknown_version_is_refused() -> None:
    # The version is the integer after the context tag [0]; the parser has an error of its own for it.
    place = HEALTH_DER.index(bytes.fromhex("a003020102")) + 4
    with pytest.raises(ConfigurationError):
        describe_certificate(HEALTH_DER[:place] + b"\x03" + HEALTH_DER[place + 1 :])


def test_a_certificate_states_its_names_dates_and_issuer() -> None:
    facts = describe_certificate(SERVER)
    assert facts.dns_names == ("localhost", "*.stats.example.org")
    assert facts.ip_addresses == ("127.0.0.1", "2001:db8::1")
    assert facts.uris == ()
    assert (facts.not_before, facts.not_after) == (NOW - DAY, NOW + DAY)
    assert int(facts.serial, 16) == x509.load_pem_x509_certificate(SERVER).serial_number
    assert facts.issuer == "CN=root"
    assert (facts.for_server, facts.for_client, facts.is_authority) == (True, False, False)


def test_a_root_is_its_own_issuer() -> None:
    facts = describe_certificate(ROOT.certificate)
    assert facts.is_authority
    assert facts.issuer_fingerprint == facts.key_fingerprint != ""


@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("localhost.", True),
        ("a.stats.example.org", True),
        ("stats.example.org", False),
        ("a.b.stats.example.org", False),
        ("127.0.0.1", True),
        ("127.0.0.2", False),
        ("2001:DB8:0::1", True),
        ("[2001:db8::1]", True),
        ("", False),
    ],
)
def test_a_host_is_accepted_by_its_dns_names_and_addresses(host: str, accepted: bool) -> None:
    assert describe_certificate(SERVER).names_host(host) == accepted


def test_an_address_is_not_accepted_as_a_dns_name() -> None:
    assert not replace(describe_certificate(SERVER), ip_addresses=(), dns_names=("127.0.0.1",)).names_host("127.0.0.1")


def test_nothing_is_found_wrong_with_a_good_certificate() -> None:
    assert diagnose(HEALTH, ROOT.certificate, NOW, expected_role=Role.DEPARTMENT) == []
    assert diagnose(SERVER, ROOT.certificate, NOW, dialled_host="127.0.0.1") == []


def test_an_expired_certificate_is_found() -> None:
    assert diagnose(HEALTH, ROOT.certificate, NOW + 2 * DAY)[0] == (
        "the certificate expired on 2026-12-02T12:00:00Z and it is 2026-12-03T12:00:00Z"
    )


def test_a_certificate_of_the_future_is_found() -> None:
    assert diagnose(HEALTH, ROOT.certificate, NOW - 2 * DAY)[0] == (
        "the certificate is not valid until 2026-11-30T12:00:00Z and this clock says 2026-11-29T12:00:00Z"
    )


def test_an_expired_ca_is_found() -> None:
    root = Authority(ends=NOW - timedelta(hours=1))
    (said,) = diagnose(root.issue("tallyveil:operator:a"), root.certificate, NOW)
    assert said.startswith("the CA certificate expired on 2026-12-01T11:00:00Z")


@pytest.mark.parametrize("name", ["root", "other"])
def test_the_signature_of_another_ca_is_found_even_under_the_same_name(name: str) -> None:
    other = Authority(name)
    (said,) = diagnose(HEALTH, other.certificate, NOW)
    assert said.startswith("the certificate is signed by another CA")
    assert describe_certificate(other.certificate).key_fingerprint in said


def test_any_of_the_trusted_cas_will_do() -> None:
    assert diagnose(HEALTH, Authority("other").certificate + ROOT.certificate, NOW) == []


def test_a_chain_is_followed_to_the_trusted_ca() -> None:
    middle = Authority("middle")
    cross = ROOT._sign(middle.name, middle.key, NOW - DAY, NOW + DAY, [x509.BasicConstraints(True, 0)])  # pyright: ignore[reportPrivateUsage]
    leaf = middle.issue("tallyveil:operator:a")
    assert diagnose(leaf + cross, ROOT.certificate, NOW) == []
    assert diagnose(leaf, ROOT.certificate, NOW) != []
    assert diagnose(leaf + HEALTH + cross, ROOT.certificate, NOW) != []


def test_a_server_without_the_dialled_name_is_found() -> None:
    assert diagnose(SERVER, ROOT.certificate, NOW, dialled_host="stats.example.org") == [
        "'stats.example.org' was dialled and the certificate holds "
        "'localhost', '*.stats.example.org', '127.0.0.1', '2001:db8::1'"
    ]


def test_a_server_named_by_its_subject_only_is_found() -> None:
    certificate = ROOT.issue(purpose=ExtendedKeyUsageOID.SERVER_AUTH)
    (said,) = diagnose(certificate, ROOT.certificate, NOW, dialled_host="localhost")
    assert said == "'localhost' was dialled and the certificate holds no name at all"


def test_a_wrong_role_is_found() -> None:
    (said,) = diagnose(HEALTH, ROOT.certificate, NOW, expected_role=Role.OPERATOR)
    assert said == "the certificate is for the department health, but the role operator is needed"


def test_a_server_certificate_in_the_place_of_a_clients_is_found() -> None:
    said = diagnose(SERVER, ROOT.certificate, NOW, expected_role=Role.DEPARTMENT)
    assert [text.split(";")[0] for text in said] == [
        "the certificate is not one for clients",
        "the certificate holds no tallyveil: name",
    ]
    assert "the certificate is not one for servers" in diagnose(HEALTH, ROOT.certificate, NOW, dialled_host="a")


def test_a_key_of_another_certificate_is_found() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    own = ROOT.issue("tallyveil:operator:a", key=key)
    assert diagnose(own, ROOT.certificate, NOW, key_pem=pem) == []
    assert diagnose(HEALTH, ROOT.certificate, NOW, key_pem=pem) == [
        "the private key does not belong to the certificate"
    ]
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    assert diagnose(own, ROOT.certificate, NOW, key_pem=locked) == ["the private key is encrypted"]
    assert diagnose(own, ROOT.certificate, NOW, key_pem=b"x") == ["the private key is not a PEM file of a key"]


def test_everything_wrong_is_said_at_once() -> None:
    said = diagnose(HEALTH, Authority("other").certificate, NOW + 9 * DAY, expected_role=Role.CONSUMER, key_pem=b"x")
    assert len(said) == 4


def test_unreadable_files_are_findings_and_not_errors() -> None:
    assert "the certificate cannot be read" in diagnose(b"x", ROOT.certificate, NOW)[0]
    assert "the CA certificate cannot be read" in diagnose(HEALTH, b"", NOW)[0]


def test_a_foreign_text_cannot_steer_a_terminal_through_a_finding() -> None:
    (said,) = diagnose(SERVER, ROOT.certificate, NOW, dialled_host="\x1b[2J" + "a" * 500)
    assert "\x1b" not in said
    assert "a" * 200 not in said
