# pyright: standard
"""Failed calls say what is the matter, over real TLS: certificates, names, roles, statuses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from aggregator_stand_in import Abort, StandIn, end, refuse, serving
from certificates import Issued, TestAuthority
from tallyveil.errors import ConfigurationError, PeerError, RefusedError, TallyveilError, UnavailableError
from tallyveil.identity import Role
from tallyveil.refusal import Refusal
from tallyveil.wire.codec import MAX_MESSAGE_BYTES
from tallyveil.wire.v1 import survey_pb2
from tallyveil_client.surveys import fetch_survey, list_surveys
from tallyveil_client.transport import Endpoint, Refused, RefusedForNow, connect

HASH = "ab" * 32


class Parties(NamedTuple):
    """A CA, another one, and a good certificate of each kind."""

    ca: TestAuthority
    other: TestAuthority
    server: Issued
    consumer: Issued


@pytest.fixture(scope="module")
def parties() -> Parties:
    ca = TestAuthority()
    return Parties(ca, TestAuthority(), ca.server(), ca.client("tallyveil:consumer:newsroom"))


def endpoint_of(folder: Path, issued: Issued, address: str) -> Endpoint:
    issued.save(folder)
    return Endpoint(
        address, folder / "ca.pem", folder / "certificate.pem", folder / "private.key", timeout_s=5, role=Role.CONSUMER
    )


def fetch(endpoint: Endpoint) -> bytes:
    with connect(endpoint) as channel:
        return fetch_survey(channel, HASH, endpoint)


def failure(endpoint: Endpoint) -> TallyveilError:
    with pytest.raises(TallyveilError) as caught:
        fetch(endpoint)
    assert caught.value.not_done
    assert caught.value.next_step
    return caught.value


def test_a_call_over_mutual_tls_brings_the_bytes_that_were_served(parties: Parties, tmp_path: Path) -> None:
    with serving(parties.server) as stand_in:
        stand_in.document = b"signed"
        endpoint = endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}")
        assert fetch(endpoint) == b"signed"
        assert stand_in.requests == [survey_pb2.GetSurveyRequest(survey_hash=bytes.fromhex(HASH))]


def test_a_list_of_surveys_is_read_and_a_malformed_one_is_the_peers_fault(parties: Parties, tmp_path: Path) -> None:
    with serving(parties.server) as stand_in:
        endpoint = endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}")
        stand_in.surveys = [survey_pb2.SurveySummary(survey_hash=bytes(32), name="age", version=2, title="Age")]
        with connect(endpoint) as channel:
            (summary,) = list_surveys(channel, endpoint)
            assert (summary.hash, summary.name, summary.version) == ("00" * 32, "age", 2)
            stand_in.surveys[0].survey_hash = b"short"
            with pytest.raises(PeerError):
                list_surveys(channel, endpoint)


@pytest.mark.parametrize("text", ["", "ab", "AB" * 32, "zz" * 32])
def test_what_is_no_hash_is_refused_before_any_call(parties: Parties, tmp_path: Path, text: str) -> None:
    endpoint = endpoint_of(tmp_path, parties.consumer, "localhost:1")
    with connect(endpoint) as channel, pytest.raises(ConfigurationError, match="64"):
        fetch_survey(channel, text, endpoint)


OWN_FAULTS: dict[str, tuple[Callable[[Parties], Issued], str]] = {
    "expired": (lambda p: p.ca.client("tallyveil:consumer:a", days=-1), "expired on"),
    "not valid yet": (lambda p: p.ca.client("tallyveil:consumer:a", days=1001), "not valid until"),
    "for servers": (lambda p: p.ca.server(), "no tallyveil: name"),
    "of another role": (lambda p: p.ca.client("tallyveil:department:health"), "for department health where"),
    "without identity": (lambda p: p.ca.client(), "no tallyveil: name"),
    "with two identities": (
        lambda p: p.ca.client("tallyveil:consumer:a", "tallyveil:consumer:b"),
        "2 tallyveil: names",
    ),
    "of another CA": (lambda p: replace(p.other.client("tallyveil:consumer:a"), ca=p.ca.pem), "another CA"),
    "with another's key": (lambda p: replace(p.consumer, key=p.ca.client().key), "does not belong"),
    "with a garbled key": (lambda p: replace(p.consumer, key=b"garbage"), "not a PEM file of a key"),
    "garbled": (lambda p: replace(p.consumer, certificate=b"garbage"), "certificate cannot be read"),
    "with a garbled CA": (lambda p: replace(p.consumer, ca=b"garbage"), "CA certificate cannot be read"),
}


@pytest.mark.parametrize("fault", OWN_FAULTS)
def test_a_certificate_of_ours_that_will_not_do_is_named_with_its_fault(
    parties: Parties, tmp_path: Path, fault: str
) -> None:
    make, says = OWN_FAULTS[fault]
    with serving(parties.server) as stand_in:
        endpoint = endpoint_of(tmp_path, make(parties), f"localhost:{stand_in.port}")
        error = failure(endpoint)
    assert isinstance(error, ConfigurationError)
    assert says in error.what
    assert str(endpoint.certificate) in error.what


SERVER_FAULTS: dict[str, tuple[Callable[[Parties], Issued], str, tuple[str, ...]]] = {
    "expired": (lambda p: p.ca.server(days=-1), "localhost", ("expired on",)),
    "of another CA": (lambda p: p.other.server(), "localhost", ("another CA",)),
    "of another name": (
        lambda p: p.ca.server(["stats.example.org"]),
        "localhost",
        ("'localhost' was dialled", "'stats.example.org'"),
    ),
    "without the address dialled": (
        lambda p: p.ca.server(["localhost"]),
        "127.0.0.1",
        ("'127.0.0.1' was dialled", "'localhost'"),
    ),
    "of a common name only": (
        lambda p: p.ca.server([], common_name="localhost"),
        "localhost",
        ("'localhost' was dialled", "no name at all"),
    ),
    "for clients": (lambda p: p.ca.client("tallyveil:consumer:a"), "localhost", ("not one for servers",)),
}


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_servers_certificate_that_will_not_do_is_refused_before_any_call(
    parties: Parties, tmp_path: Path, fault: str
) -> None:
    make, host, says = SERVER_FAULTS[fault]
    with serving(make(parties), client_ca=parties.ca.pem) as stand_in:
        error = failure(endpoint_of(tmp_path, parties.consumer, f"{host}:{stand_in.port}"))
        assert stand_in.requests == []
    assert isinstance(error, ConfigurationError)
    for phrase in says:
        assert phrase in error.what


def test_a_server_may_be_known_by_another_name_than_the_one_dialled(parties: Parties, tmp_path: Path) -> None:
    with serving(parties.ca.server(["stats.example.org"])) as stand_in:
        endpoint = endpoint_of(tmp_path, parties.consumer, f"127.0.0.1:{stand_in.port}")
        fetch(replace(endpoint, server_name="stats.example.org"))


def test_a_server_that_trusts_another_ca_refuses_us_and_that_is_no_outage(parties: Parties, tmp_path: Path) -> None:
    with serving(parties.server, client_ca=parties.other.pem) as stand_in:
        error = failure(endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}"))
    assert isinstance(error, ConfigurationError)
    assert "refuses our certificate" in error.what


def test_nobody_listening_is_an_outage(parties: Parties, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = failure(endpoint_of(tmp_path, parties.consumer, f"127.0.0.1:{port}"))
    assert isinstance(error, UnavailableError)
    assert "nothing listens there" in error.what


def test_a_host_without_address_is_an_outage(parties: Parties, tmp_path: Path) -> None:
    error = failure(endpoint_of(tmp_path, parties.consumer, "nowhere.invalid:7443"))
    assert isinstance(error, UnavailableError)
    assert "cannot be resolved" in error.what


@contextmanager
def answering(answer: bytes) -> Generator[int]:
    """A port on which every connection gets `answer` and is closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(16)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_service_without_tls_is_a_wrong_address(parties: Parties, tmp_path: Path) -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        error = failure(endpoint_of(tmp_path, parties.consumer, f"localhost:{port}"))
    assert isinstance(error, ConfigurationError)
    assert "does not speak TLS" in error.what


def test_a_balancer_that_hangs_up_is_an_outage(parties: Parties, tmp_path: Path) -> None:
    with answering(b"") as port:
        error = failure(endpoint_of(tmp_path, parties.consumer, f"localhost:{port}"))
    assert isinstance(error, UnavailableError)


@pytest.mark.parametrize("refusal", list(Refusal))
def test_every_refusal_arrives_as_itself_and_only_the_retryable_ones_as_unavailable(
    parties: Parties, tmp_path: Path, refusal: Refusal
) -> None:
    with serving(parties.server) as stand_in:
        stand_in.before = refuse(refusal)
        error = failure(endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}"))
    assert isinstance(error, RefusedForNow if refusal.retryable else Refused)
    assert error.refusal is refusal
    assert isinstance(error, UnavailableError) == refusal.retryable
    assert refusal.sentence in error.what


STATUSES: dict[str, tuple[Abort, type[TallyveilError], str]] = {
    "unavailable": (end(grpc.StatusCode.UNAVAILABLE, "draining"), UnavailableError, "accepts our certificate"),
    "busy": (end(grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!"), UnavailableError, "busy"),
    "too large": (
        end(grpc.StatusCode.RESOURCE_EXHAUSTED, "the release is larger than a message may be"),
        PeerError,
        str(MAX_MESSAGE_BYTES),
    ),
    "aborted": (end(grpc.StatusCode.ABORTED), UnavailableError, "gave up"),
    "cancelled": (end(grpc.StatusCode.CANCELLED), UnavailableError, "cancelled"),
    "cut": (end(grpc.StatusCode.UNKNOWN, "Stream removed"), UnavailableError, "was cut"),
    "reset": (end(grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2"), UnavailableError, "was cut"),
    "unauthenticated": (end(grpc.StatusCode.UNAUTHENTICATED), ConfigurationError, "for consumer newsroom"),
    "denied": (end(grpc.StatusCode.PERMISSION_DENIED), RefusedError, "for consumer newsroom"),
    "absent": (end(grpc.StatusCode.NOT_FOUND), RefusedError, "nothing of that kind"),
    "malformed": (end(grpc.StatusCode.INVALID_ARGUMENT), RefusedError, "malformed"),
    "precondition": (end(grpc.StatusCode.FAILED_PRECONDITION), RefusedError, "as things stand"),
    "unimplemented": (end(grpc.StatusCode.UNIMPLEMENTED), PeerError, "does not offer"),
    "internal": (end(grpc.StatusCode.INTERNAL, "oops"), PeerError, "INTERNAL"),
    "data loss": (end(grpc.StatusCode.DATA_LOSS), PeerError, "DATA_LOSS"),
    "foreign domain": (refuse("round-closed", domain="example.org"), RefusedError, "as things stand"),
    "unknown reason": (refuse("not-yet-invented"), RefusedError, "not-yet-invented"),
}


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_becomes_an_error_that_says_whose_move_it_is(
    parties: Parties, tmp_path: Path, status: str
) -> None:
    before, kind, says = STATUSES[status]
    with serving(parties.server) as stand_in:
        stand_in.before = before
        error = failure(endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}"))
    assert isinstance(error, kind)
    assert not isinstance(error, Refused | RefusedForNow)
    assert says in error.what
    assert "fetching the survey" in error.not_done


@pytest.mark.parametrize(
    "before",
    [end(grpc.StatusCode.PERMISSION_DENIED, "\x1b[2J" + "y" * 5000), refuse("\x1b[2J" + "y" * 5000)],
    ids=["details", "reason"],
)
def test_a_peers_text_is_cut_and_cannot_steer_a_terminal(parties: Parties, tmp_path: Path, before: Abort) -> None:
    with serving(parties.server) as stand_in:
        stand_in.before = before
        error = failure(endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}"))
    assert str(error).isprintable()
    assert error.what.count("y") < 210


def test_a_late_answer_is_an_outage(parties: Parties, tmp_path: Path) -> None:
    with serving(parties.server) as stand_in:
        released = threading.Event()
        stand_in.before = lambda context: (released.wait(10), None)[1]
        endpoint = replace(endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}"), timeout_s=0.3)
        started = time.monotonic()
        error = failure(endpoint)
        assert time.monotonic() - started < 5
        released.set()
    assert isinstance(error, UnavailableError)
    assert "in time" in error.what


def test_a_message_above_the_limit_is_final(parties: Parties, tmp_path: Path) -> None:
    with serving(parties.server) as stand_in:
        stand_in.document = bytes(MAX_MESSAGE_BYTES + 1)
        error = failure(endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}"))
    assert isinstance(error, PeerError)
    assert str(MAX_MESSAGE_BYTES) in error.what


def test_a_missing_file_is_named(parties: Parties, tmp_path: Path) -> None:
    endpoint = endpoint_of(tmp_path, parties.consumer, "localhost:1")
    endpoint.private_key.unlink()
    error = failure(endpoint)
    assert isinstance(error, ConfigurationError)
    assert str(endpoint.private_key) in error.what


@pytest.mark.parametrize(
    "address",
    ["", "localhost", ":7443", "localhost:", "localhost:0", "localhost:65536", "localhost:x", "::1:7443", "[]:7443",
     "https://localhost:7443", "a b:7443", "[::1]7443", "user@localhost:7443", "localhost:９"],
)  # fmt: skip
def test_what_is_no_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        Endpoint(address, tmp_path, tmp_path, tmp_path)


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf")])
def test_what_is_no_timeout_is_refused(tmp_path: Path, timeout_s: float) -> None:
    with pytest.raises(ConfigurationError, match="timeout_s"):
        Endpoint("localhost:7443", tmp_path, tmp_path, tmp_path, timeout_s=timeout_s)


def test_a_stopped_server_is_an_outage_on_a_channel_that_worked(parties: Parties, tmp_path: Path) -> None:
    def open_channel(stand_in: StandIn) -> tuple[Endpoint, grpc.Channel]:
        endpoint = endpoint_of(tmp_path, parties.consumer, f"localhost:{stand_in.port}")
        channel = connect(endpoint)
        fetch_survey(channel, HASH, endpoint)
        return endpoint, channel

    with serving(parties.server) as stand_in:
        endpoint, channel = open_channel(stand_in)
    with channel, pytest.raises(UnavailableError):
        fetch_survey(channel, HASH, endpoint)
