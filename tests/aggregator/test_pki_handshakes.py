# pyright: standard
"""The small CA's certificates in real TLS handshakes, and that `diagnose` finds why one fails."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import grpc
import pytest

from tallyveil.identity import Identity, Role, diagnose, identity_of_certificate
from tallyveil_aggregator.enrolment import layout
from tallyveil_aggregator.enrolment.authority import (
    certificate_to_pem,
    create_authority,
    generate_key,
    issue_client,
    issue_server,
    key_to_pem,
)

NOW = datetime.now(UTC)
HEALTH = Identity(Role.DEPARTMENT, "health")


def make_ca(folder: Path) -> Path:
    """A CA with a server and clients of every role; returns its folder."""
    layout.write(layout.plan_root(folder, NOW, 30)[0].files, replace=False)
    issued = [layout.plan_server(folder, ["localhost", "127.0.0.1"], NOW, 5)]
    for role, names in (
        (Role.DEPARTMENT, ["health", "education"]),
        (Role.OPERATOR, ["alice"]),
        (Role.CONSUMER, ["newsroom"]),
    ):
        issued += layout.plan_clients(folder, role, names, NOW, 5)
    layout.write([file for one in issued for file in one.files], replace=False)
    return folder


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The CA that the tests share; they only read it."""
    return make_ca(tmp_path_factory.mktemp("ca"))


# In memory, with OpenSSL at its strictest.


def server_context(ca_pem: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(ca_pem)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def client_context(ca_pem: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(ca_pem)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> bytes:
    """Connect the two, and return the client's certificate as the server sees it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    client_side = client.wrap_bio(to_client, to_server, server_hostname=host)
    for side in (client_side, server_side, client_side, server_side):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    seen = server_side.getpeercert(binary_form=True)
    assert seen
    return seen


def context_of(folder: Path) -> ssl.SSLContext:
    return client_context(folder / "ca.pem", folder / "certificate.pem", folder / "private.key")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize(
    ("folder", "identity"),
    [
        ("departments/health", HEALTH),
        ("departments/education", Identity(Role.DEPARTMENT, "education")),
        ("operators/alice", Identity(Role.OPERATOR, "alice")),
        ("consumers/newsroom", Identity(Role.CONSUMER, "newsroom")),
    ],
)
def test_client_and_server_accept_each_other(ca: Path, folder: str, identity: Identity, host: str) -> None:
    server = server_context(ca / "ca.pem", ca / "server.pem", ca / "server.key")
    assert identity_of_certificate(handshake(server, context_of(ca / folder), host)) == identity


def test_a_server_dialled_by_another_name_is_not_accepted_and_the_reason_is_found(ca: Path) -> None:
    server = server_context(ca / "ca.pem", ca / "server.pem", ca / "server.key")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server, context_of(ca / "departments/health"), "example.org")
    assert diagnose(
        (ca / "server.pem").read_bytes(), (ca / "ca.pem").read_bytes(), NOW, dialled_host="example.org"
    ) == ["'example.org' was dialled and the certificate holds 'localhost', '127.0.0.1'"]


def test_a_client_cannot_pose_as_the_server_nor_the_server_as_a_client(ca: Path) -> None:
    department = ca / "departments/health"
    posing = server_context(ca / "ca.pem", department / "certificate.pem", department / "private.key")
    with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose"):
        handshake(posing, context_of(department), "localhost")
    server = server_context(ca / "ca.pem", ca / "server.pem", ca / "server.key")
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.verify.failed"):
        handshake(server, client_context(ca / "ca.pem", ca / "server.pem", ca / "server.key"), "localhost")


def test_a_client_of_another_ca_is_not_accepted_and_the_reason_is_found(ca: Path, tmp_path: Path) -> None:
    stranger = make_ca(tmp_path) / "departments/health"
    server = server_context(ca / "ca.pem", ca / "server.pem", ca / "server.key")
    trusting = client_context(ca / "ca.pem", stranger / "certificate.pem", stranger / "private.key")
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.verify.failed"):
        handshake(server, trusting, "localhost")
    (said,) = diagnose((stranger / "certificate.pem").read_bytes(), (ca / "ca.pem").read_bytes(), NOW)
    assert said.startswith("the certificate is signed by another CA")


def test_an_expired_client_is_not_accepted_and_the_reason_is_found(tmp_path: Path) -> None:
    root = create_authority(NOW - timedelta(days=20), 40)
    server_key, client_key = generate_key(), generate_key()
    past = NOW - timedelta(days=10)
    for name, key, certificate in (
        ("server", server_key, issue_server(root, server_key.public_key(), ["localhost"], NOW, 5)),
        ("client", client_key, issue_client(root, client_key.public_key(), HEALTH, past, 5)),
    ):
        (tmp_path / f"{name}.pem").write_bytes(certificate_to_pem(certificate))
        (tmp_path / f"{name}.key").write_bytes(key_to_pem(key))
    (tmp_path / "ca.pem").write_bytes(certificate_to_pem(root.certificate))
    server = server_context(tmp_path / "ca.pem", tmp_path / "server.pem", tmp_path / "server.key")
    client = client_context(tmp_path / "ca.pem", tmp_path / "client.pem", tmp_path / "client.key")
    with pytest.raises(ssl.SSLError, match="certificate has expired"):
        handshake(server, client, "localhost")
    (said,) = diagnose((tmp_path / "client.pem").read_bytes(), (tmp_path / "ca.pem").read_bytes(), NOW)
    assert said.startswith("the certificate expired on")


# Over gRPC, whose TLS is another library with rules of its own.


@contextmanager
def grpc_server(ca: Path) -> Iterator[int]:
    """A server that answers any call with the certificate it saw; yields its port."""

    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        # The stubs have the values as bytes; they are sequences of them.
        return cast("Sequence[bytes]", context.auth_context()["x509_pem_cert"])[0]

    class Anything(grpc.GenericRpcHandler):
        def service(self, handler_call_details: object) -> grpc.RpcMethodHandler[bytes, bytes]:
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Anything()])
    pair = ((ca / "server.key").read_bytes(), (ca / "server.pem").read_bytes())
    credentials = grpc.ssl_server_credentials([pair], (ca / "ca.pem").read_bytes(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def call(target: str, ca_pem: Path, certificate: Path, key: Path) -> bytes:
    credentials = grpc.ssl_channel_credentials(ca_pem.read_bytes(), key.read_bytes(), certificate.read_bytes())
    with grpc.secure_channel(target, credentials) as channel:
        ask = channel.unary_unary("/any/call", request_serializer=bytes, response_deserializer=bytes)
        return ask(b"", timeout=10)


def test_grpc_accepts_the_certificates_and_sees_the_identity(ca: Path) -> None:
    department = ca / "departments/health"
    with grpc_server(ca) as port:
        for host in ("localhost", "127.0.0.1"):
            seen = call(
                f"{host}:{port}", department / "ca.pem", department / "certificate.pem", department / "private.key"
            )
            assert identity_of_certificate(seen) == HEALTH


def test_grpc_refuses_the_certificates_of_another_ca(ca: Path, tmp_path: Path) -> None:
    stranger = make_ca(tmp_path) / "departments/health"
    with grpc_server(ca) as port, pytest.raises(grpc.RpcError, match=r"StatusCode\.UNAVAILABLE"):
        call(f"localhost:{port}", ca / "ca.pem", stranger / "certificate.pem", stranger / "private.key")
