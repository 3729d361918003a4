"""The small CA: what it issues, how its files are kept, and what its commands say."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID
from typer.testing import CliRunner, Result

from tallyveil.cli import dispatch
from tallyveil.errors import ConfigurationError
from tallyveil.identity import Identity, Role, describe_certificate, diagnose, identity_of_certificate
from tallyveil.signing import SigningKey, VerifyingKey, seal, unseal
from tallyveil_aggregator.enrolment import files, layout
from tallyveil_aggregator.enrolment.authority import (
    Authority,
    certificate_to_pem,
    create_authority,
    generate_key,
    issue_client,
    issue_server,
    key_to_pem,
)
from tallyveil_aggregator.enrolment.commands import app

NOW = datetime.now(UTC)
HEALTH = Identity(Role.DEPARTMENT, "health")


def pki(*arguments: object) -> Result:
    """Run `tallyveil pki` with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments: object) -> ConfigurationError:
    """The error of ours that a command ends with."""
    error = pki(*arguments).exception
    assert isinstance(error, ConfigurationError), error
    return error


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA with a server and clients of every role; tests only read it."""
    folder = tmp_path_factory.mktemp("ca") / "pki"
    for arguments in (
        ["init", folder],
        ["server", folder, "--name", "localhost", "--name", "127.0.0.1"],
        ["department", folder, "health", "education"],
        ["operator", folder, "alice"],
        ["consumer", folder, "newsroom"],
    ):
        assert pki(*arguments).exit_code == 0
    return folder


@pytest.fixture
def new_ca(tmp_path: Path) -> Path:
    """A CA of the test's own."""
    assert pki("init", tmp_path / "pki").exit_code == 0
    return tmp_path / "pki"


def server_pair(root: Authority, *names: str) -> tuple[bytes, bytes]:
    key = generate_key()
    return certificate_to_pem(issue_server(root, key.public_key(), names, NOW, 5)), key_to_pem(key)


def client_pair(root: Authority, now: datetime, days: int) -> tuple[bytes, bytes]:
    key = generate_key()
    return certificate_to_pem(issue_client(root, key.public_key(), HEALTH, now, days)), key_to_pem(key)


# What is issued.


def test_a_root_signs_certificates_and_nothing_else() -> None:
    root = create_authority(NOW, 30).certificate
    constraints = root.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    usage = root.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)


def test_a_server_holds_names_and_addresses_each_once_as_what_they_are() -> None:
    root = create_authority(NOW, 30)
    names = ["Stats.Example.org", "192.0.2.7", "[2001:db8::1]", "stats.example.org.", "my_service"]
    facts = describe_certificate(server_pair(root, *names)[0])
    assert facts.dns_names == ("stats.example.org", "my_service")
    assert facts.ip_addresses == ("192.0.2.7", "2001:db8::1")
    assert (facts.uris, facts.for_server, facts.for_client, facts.is_authority) == ((), True, False, False)
    assert facts.issuer_fingerprint == describe_certificate(certificate_to_pem(root.certificate)).key_fingerprint


def test_a_client_holds_its_identity_and_no_host() -> None:
    facts = describe_certificate(client_pair(create_authority(NOW, 30), NOW, 5)[0])
    assert facts.uris == ("tallyveil:department:health",)
    assert (facts.dns_names, facts.ip_addresses) == ((), ())
    assert (facts.for_server, facts.for_client, facts.is_authority) == (False, True, False)


def test_the_longest_name_fits_a_certificate() -> None:
    longest = Identity(Role.DEPARTMENT, "a" * 63)
    certificate = issue_client(create_authority(NOW, 30), generate_key().public_key(), longest, NOW, 5)
    assert identity_of_certificate(certificate_to_pem(certificate)) == longest


def test_a_signing_request_gives_the_authority_all_it_needs() -> None:
    key = generate_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "whatever it says")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, SHA256())
    public_key = request.public_key()
    assert isinstance(public_key, type(key.public_key()))
    root = create_authority(NOW, 30)
    certificate = certificate_to_pem(issue_client(root, public_key, HEALTH, NOW, 5))
    assert diagnose(certificate, certificate_to_pem(root.certificate), NOW, key_pem=key_to_pem(key)) == []


def test_serial_numbers_differ() -> None:
    root = create_authority(NOW, 30)
    assert len({describe_certificate(client_pair(root, NOW, 5)[0]).serial for _ in range(20)}) == 20


@pytest.mark.parametrize(
    "name", ["", "a b", "localhost:443", "https://a.org", "*.example.org", "-a.org", "1.2.3", "a..b", "fe80::1%eth0"]
)
def test_what_is_no_host_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="neither a DNS name nor an IP address"):
        server_pair(create_authority(NOW, 30), name)


def test_a_certificate_never_outlives_its_ca() -> None:
    root = create_authority(NOW, 4)
    with pytest.raises(ConfigurationError, match="after its CA"):
        client_pair(root, NOW, 5)
    client_pair(root, NOW, 4)
    with pytest.raises(ConfigurationError, match="the CA is not valid until"):
        client_pair(root, NOW - timedelta(days=1), 1)


def test_a_key_never_shows_in_a_repr(tmp_path: Path) -> None:
    root = create_authority(NOW, 4)
    assert repr(root) == f"Authority({root.certificate.subject.rfc4514_string()})"
    assert "PRIVATE" not in repr(layout.plan_root(tmp_path, NOW, 4))


def test_a_ca_is_read_back_only_as_a_pair(ca: Path, new_ca: Path) -> None:
    certificate, key = (ca / "ca.pem").read_bytes(), (ca / "ca.key").read_bytes()
    assert certificate_to_pem(Authority.from_pem(certificate, key).certificate) == certificate
    for wrong_certificate, wrong_key, said in (
        (certificate, (new_ca / "ca.key").read_bytes(), "does not belong"),
        (certificate, (ca / "authority.key").read_bytes(), "not an elliptic-curve key"),
        (certificate, b"x", "not an unencrypted PEM"),
        ((ca / "server.pem").read_bytes(), (ca / "server.key").read_bytes(), "may not sign others"),
        (b"x", key, "cannot be read"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            Authority.from_pem(wrong_certificate, wrong_key)


# The files.


def test_each_holder_gets_its_own_files_and_what_its_role_pins(ca: Path) -> None:
    common = {"ca.pem", "certificate.pem", "private.key"}
    assert set(os.listdir(ca / "departments/health")) == common | {"authority.pub"}
    assert set(os.listdir(ca / "operators/alice")) == common
    assert set(os.listdir(ca / "consumers/newsroom")) == common | {"release.pub"}
    assert (ca / "departments/health/authority.pub").read_bytes() == (ca / "authority.pub").read_bytes()
    assert (ca / "consumers/newsroom/release.pub").read_bytes() == (ca / "release.pub").read_bytes()


@pytest.mark.parametrize("name", ["authority", "release"])
def test_the_signing_keys_are_pairs_of_their_own(ca: Path, name: str) -> None:
    key = SigningKey.from_pem((ca / f"{name}.key").read_bytes())
    public = VerifyingKey.from_pem((ca / f"{name}.pub").read_bytes())
    assert unseal("survey", seal("survey", {"a": 1}, key), public) == {"a": 1}
    assert (ca / "authority.pub").read_bytes() != (ca / "release.pub").read_bytes()


def test_secrets_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = tmp_path / "deep" / "pki"
        assert pki("init", folder).exit_code == 0
        assert pki("server", folder, "--name", "localhost").exit_code == 0
        assert pki("department", folder, "health").exit_code == 0
        assert pki("department", folder, "health", "--replace").exit_code == 0
    finally:
        os.umask(before)
    for path in (folder.parent, *folder.parent.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_dir():
            assert mode == 0o700, path
        else:
            assert mode == (0o600 if path.suffix == ".key" else 0o644), path
    assert len(list(folder.rglob("*.key"))) == 5


def test_nothing_but_the_named_files_is_left(ca: Path) -> None:
    assert not [path for path in ca.rglob("*") if path.name.startswith(".")]


def test_init_never_overwrites(new_ca: Path) -> None:
    (new_ca / "ca.key").unlink()
    before = contents(new_ca)
    error = refused("init", new_ca)
    assert str(new_ca / "ca.pem") in error.what and "missing of the set: ca.key" in error.what
    assert str(new_ca / "ca.key") not in error.what
    assert error.not_done == "nothing was written"
    assert contents(new_ca) == before


def test_issuing_again_needs_to_be_told_to_replace(new_ca: Path) -> None:
    for arguments in (["server", new_ca, "--name", "a.org"], ["department", new_ca, "health"]):
        assert pki(*arguments).exit_code == 0
        before = contents(new_ca)
        assert "--replace" in refused(*arguments).next_step
        assert contents(new_ca) == before
        assert pki(*arguments, "--replace").exit_code == 0
        changed = {name for name, content in contents(new_ca).items() if before[name] != content}
        assert len(changed) == 2
    department = new_ca / "departments/health"
    certificate, key = (department / "certificate.pem").read_bytes(), (department / "private.key").read_bytes()
    assert diagnose(certificate, (new_ca / "ca.pem").read_bytes(), NOW, key_pem=key) == []


def test_a_whole_ca_is_said_to_be_whole(ca: Path) -> None:
    error = refused("init", ca)
    assert "a whole CA" in error.what and "missing" not in error.what


def test_who_has_a_certificate_is_to_be_left_out_not_replaced(new_ca: Path) -> None:
    assert pki("department", new_ca, "health", "labour").exit_code == 0
    (new_ca / "departments/labour/private.key").unlink()  # as the last line of the command says to do
    before = contents(new_ca)
    error = refused("department", new_ca, "health", "third", "labour")
    assert error.next_step.startswith("leave health and labour out")
    assert "third" not in error.what and f"pki department {new_ca} health labour --replace" in error.next_step
    assert contents(new_ca) == before
    assert pki("department", new_ca, "third").exit_code == 0
    assert "leave" not in refused("department", new_ca, "health").next_step


@pytest.mark.parametrize("ids", [["good", "Bad"], ["good", "good"], ["good", "health"], ["good", "../evil"]])
def test_one_id_that_cannot_be_issued_leaves_nothing_half_done(new_ca: Path, ids: list[str]) -> None:
    assert pki("department", new_ca, "health").exit_code == 0
    before = contents(new_ca)
    assert refused("department", new_ca, *ids).next_step
    assert contents(new_ca) == before
    assert not (new_ca / "departments/good").exists()


@pytest.mark.parametrize("days", ["0", "-1", "36501", "99999999999"])
def test_days_that_make_no_sense_are_refused(tmp_path: Path, days: str) -> None:
    assert "1 to 36500 days" in refused("init", tmp_path / "pki", "--days", days).what
    assert not (tmp_path / "pki").exists()


def test_issuing_without_a_ca_says_how_to_make_one(tmp_path: Path) -> None:
    for arguments in (["server", tmp_path, "--name", "localhost"], ["operator", tmp_path, "alice"]):
        assert refused(*arguments).next_step == f"make the CA first: tallyveil pki init {tmp_path}"
    assert contents(tmp_path) == {}


def test_a_file_where_a_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    refused("init", tmp_path / "file")
    refused("init", tmp_path / "file" / "below")
    assert contents(tmp_path) == {"file": b""}


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"theirs")
    with pytest.raises(ConfigurationError, match="already there"):
        files.write_file(tmp_path / "a", b"ours", secret=True)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="already there"):
        files.write_file(tmp_path / "link", b"ours", secret=True)
    assert contents(tmp_path) == {"a": b"theirs"}


@pytest.mark.parametrize("replace", [False, True])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool
) -> None:
    if replace:
        files.write_file(tmp_path / "a", b"old", secret=True)
    before = contents(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError, match="No space left on device"):
        files.write_file(tmp_path / "a", b"new", secret=True, replace=replace)
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == list(before)


# The commands.


@pytest.mark.parametrize("command", ["init", "server", "department", "operator", "consumer", "show"])
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    result = pki(command, "--help")
    assert result.exit_code == 0
    assert f"Example: tallyveil pki {command} ./pki" in result.output


def test_init_says_what_to_keep_secret_and_what_to_compare(tmp_path: Path) -> None:
    output = pki("init", tmp_path / "pki").output
    for name in ("ca.key", "authority.key"):
        assert any(name in line and "secret, offline" in line for line in output.splitlines())
    assert any("release.key" in line and "secret, on the aggregator" in line for line in output.splitlines())
    assert VerifyingKey.from_pem((tmp_path / "pki/authority.pub").read_bytes()).fingerprint in output
    assert "PRIVATE" not in output


def test_every_command_speaks_json(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    made = json.loads(pki("init", folder, "--json").output)
    assert {Path(file["path"]).name: file["secret"] for file in made["files"]} == {
        "ca.key": True,
        "ca.pem": False,
        "authority.key": True,
        "authority.pub": False,
        "release.key": True,
        "release.pub": False,
    }
    made = json.loads(pki("server", folder, "--name", "localhost", "--days", "9", "--json").output)
    assert made["names"] == ["localhost"]
    for role in Role:
        made = json.loads(pki(role, folder, "a", "b", "--json").output)
        assert [one["identity"] for one in made["issued"]] == [f"tallyveil:{role}:a", f"tallyveil:{role}:b"]
        for file in made["issued"][0]["files"]:
            assert Path(file["path"]).exists()


def test_show_tells_what_a_certificate_states(ca: Path) -> None:
    facts = json.loads(pki("show", ca / "departments/health/certificate.pem", "--json").output)
    assert (facts["kind"], facts["uris"]) == ("certificate", ["tallyveil:department:health"])
    assert facts["not_after"].endswith("Z")
    output = pki("show", ca / "server.pem").output
    assert "localhost" in output and "127.0.0.1" in output


def test_show_tells_the_fingerprint_of_a_public_key(ca: Path) -> None:
    facts = json.loads(pki("show", ca / "release.pub", "--json").output)
    assert facts["fingerprint"] == VerifyingKey.from_pem((ca / "release.pub").read_bytes()).fingerprint


def test_show_finds_faults_and_says_so_by_its_exit_code(ca: Path) -> None:
    good = pki("show", ca / "server.pem", "--ca", ca / "ca.pem", "--host", "localhost", "--key", ca / "server.key")
    assert (good.exit_code, "Nothing wrong was found." in good.output) == (0, True)
    bad = pki("show", ca / "server.pem", "--ca", ca / "ca.pem", "--host", "example.org", "--key", ca / "ca.key")
    assert bad.exit_code == ConfigurationError.exit_code
    assert "wrong: 'example.org' was dialled" in bad.output
    assert "wrong: the private key does not belong to the certificate" in bad.output
    bad = pki("show", ca / "server.pem", "--ca", ca / "ca.pem", "--host", "example.org", "--json")
    assert len(json.loads(bad.output)["problems"]) == 1
    assert refused("show", ca / "server.pem", "--host", "a").next_step == "add --ca"


def test_show_never_shows_a_private_key(ca: Path, tmp_path: Path) -> None:
    for key in (ca / "ca.key", ca / "release.key"):
        assert "is a private key" in refused("show", key).what
    (tmp_path / "junk").write_bytes(b"x" * 10)
    assert "cannot be read" in refused("show", tmp_path / "junk").what
    assert "there is no" in refused("show", tmp_path / "none").what


def test_the_installed_command_tells_a_refusal_in_json(ca: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch.run(["pki", "operator", str(ca), "Alice", "--json"]) == ConfigurationError.exit_code
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "configuration"
    assert error["what"] == "'Alice' cannot be the name of the operator"
