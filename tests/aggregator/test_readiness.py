# pyright: standard
"""Readiness says what is missing; liveness of connections; how the server starts and stops."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, cast

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from aggregator_calls import Conversation, channel_of, health, running, send_upload
from aggregator_world import CONSUMER, DAY, HEALTH, Pki, World, make_upload
from tallyveil.errors import ConfigurationError
from tallyveil.refusal import Refusal
from tallyveil_aggregator.config import PERMITTED_PING_INTERVAL_S
from tallyveil_aggregator.service import readiness
from tallyveil_aggregator.service.readiness import find_problems
from tallyveil_aggregator.service.refusals import Refused
from tallyveil_aggregator.service.server import SERVICES, AggregatorServer
from tallyveil_aggregator.service.streams import IDLE_S, PER_DEPARTMENT, Streams
from tallyveil_aggregator.store import StoreUnavailable


@pytest.fixture
def server(world: World, monkeypatch: pytest.MonkeyPatch) -> Generator[AggregatorServer]:
    """The aggregator, looking for problems often."""
    monkeypatch.setattr(readiness, "CHECK_S", 0.02)
    world.set_up()
    with running(world) as started:
        yield started


def until(expected: object, ask: Callable[[], object]) -> None:
    """Wait, at most five seconds, until the answer is what is expected."""
    deadline = time.monotonic() + 5
    while (answer := ask()) != expected:
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("file", "missing"),
    [
        ("aggregator.sqlite", "store"),
        ("server.pem", "certificate"),
        ("server.key", "certificate"),
        ("ca.pem", "client-ca"),
        ("authority.pub", "authority-key"),
        ("release.key", "release-key"),
    ],
)
def test_readiness_goes_with_what_is_taken_away_says_which_and_comes_back(
    server: AggregatorServer, world: World, pki: Pki, log: io.StringIO, file: str, missing: str
) -> None:
    """Fault 14: taken away one by one."""
    with channel_of(pki, server.port, CONSUMER) as channel:
        assert health(channel) == "SERVING"
        aside = (world.folder / file).rename(world.folder / "aside")
        until("NOT_SERVING", lambda: health(channel))
        for service in SERVICES:
            assert health(channel, service) == "NOT_SERVING"
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
        # A look in the middle of the renaming may say of the same file what a later one says otherwise.
        assert {line["fields"]["missing"] for line in lines if line["event"] == "not ready"} == {missing}
        aside.rename(world.folder / file)
        until("SERVING", lambda: health(channel))
        assert json.loads(log.getvalue().splitlines()[-1])["event"] == "ready"


def test_every_file_that_holds_something_else_is_a_problem(world: World) -> None:
    world.set_up()
    names = ("server.pem", "server.key", "ca.pem", "authority.pub", "release.key")
    with world.store() as store:
        assert find_problems(world.config, store, world.clock()) == {}
        for name in names:
            (world.folder / name).write_bytes(b"nonsense")
        problems = find_problems(world.config, store, world.clock())
    assert problems.keys() == {"certificate", "client-ca", "authority-key", "release-key"}


def test_an_expired_certificate_is_a_problem(world: World) -> None:
    world.set_up()
    with world.store() as store:
        problems = find_problems(world.config, store, world.clock() + 25 * DAY)
    assert problems.keys() == {"certificate"}
    assert "valid from" in problems["certificate"]


@pytest.mark.parametrize("name", ["server.pem", "server.key", "ca.pem", "authority.pub", "release.key"])
def test_the_server_does_not_start_without_its_keys(world: World, name: str) -> None:
    world.set_up()
    (world.folder / name).unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        AggregatorServer(world.config)


def test_the_server_does_not_start_with_a_leaf_as_its_ca_or_with_keys_that_do_not_fit(world: World, pki: Pki) -> None:
    world.set_up()
    (world.folder / "ca.pem").write_bytes(pki.server()[0])
    with pytest.raises(ConfigurationError, match="may sign others"):
        AggregatorServer(world.config)
    (world.folder / "server.key").write_bytes(pki.client(HEALTH)[1])
    with pytest.raises(ConfigurationError, match="are not a PEM certificate and its unencrypted key"):
        AggregatorServer(world.config)


def spoil_with_a_departments_certificate(world: World) -> str:
    certificate, key = world.pki.client(HEALTH)
    (world.folder / "server.pem").write_bytes(certificate)
    (world.folder / "server.key").write_bytes(key)
    return "not a server's certificate.* of the department health"


def spoil_with_another_ca(world: World) -> str:
    (world.folder / "ca.pem").write_bytes(Pki().root)
    return "cannot connect: the certificate is signed by another CA"


def spoil_with_the_authority_s_key(world: World) -> str:
    (world.folder / "release.key").write_bytes(world.pki.surveys.to_pem())
    return "the release key is the survey authority's own key"


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (spoil_with_a_departments_certificate, "certificate"),
        (spoil_with_another_ca, "client-ca"),
        (spoil_with_the_authority_s_key, "release-key"),
    ],
)
def test_files_that_are_well_made_but_not_for_this_neither_start_nor_are_ready(
    world: World, spoil: Callable[[World], str], problem: str
) -> None:
    world.set_up()
    said = spoil(world)
    with pytest.raises(ConfigurationError, match=said) as caught:
        AggregatorServer(world.config)
    assert caught.value.not_done and caught.value.next_step
    with world.store() as store:
        problems = find_problems(world.config, store, world.clock())
    assert problems.keys() == {problem}


def test_another_ca_may_vouch_for_the_server_when_it_is_named(world: World, pki: Pki) -> None:
    world.set_up()
    others = Pki()
    (world.folder / "ca.pem").write_bytes(others.root)
    (world.folder / "public.pem").write_bytes(pki.root)
    text = world.config_file.read_text()
    world.config_file.write_text(text.replace("[server]", '[server]\nserver_ca = "public.pem"'))
    with world.store() as store:
        assert find_problems(world.config, store, world.clock()) == {}
        (world.folder / "public.pem").write_bytes(others.root)
        assert find_problems(world.config, store, world.clock()).keys() == {"server-ca"}
        (world.folder / "public.pem").unlink()
        assert find_problems(world.config, store, world.clock()).keys() == {"server-ca"}


def test_the_server_does_not_start_without_a_store(world: World) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        AggregatorServer(world.config)
    assert "aggregator init" in caught.value.next_step


def test_a_port_that_is_taken_is_never_shared(server: AggregatorServer, world: World) -> None:
    text = world.config_file.read_text()
    world.config_file.write_text(text.replace("localhost:0", f"localhost:{server.port}"))
    with pytest.raises(ConfigurationError, match="cannot listen"):
        AggregatorServer(world.config)


def test_reflection_lists_the_services(server: AggregatorServer, pki: Pki) -> None:
    with channel_of(pki, server.port, CONSUMER) as channel:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        stub = cast(Any, reflection_pb2_grpc.ServerReflectionStub(channel))
        (answer,) = stub.ServerReflectionInfo(iter([request]))
    names = {service.name for service in answer.list_services_response.service}
    assert names == {*SERVICES, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


def test_callers_of_the_reflection_service_never_stand_in_an_upload_s_way(world: World, pki: Pki) -> None:
    """Any certificate may ask what services there are; a flood of open questions holds two threads and is cut."""
    world.set_up()
    with running(world) as flooded, channel_of(pki, flooded.port, CONSUMER) as channel:
        stub = cast(Any, reflection_pb2_grpc.ServerReflectionStub(channel))
        silent = threading.Event()
        calls = [stub.ServerReflectionInfo(iter(silent.wait, True), timeout=30) for _ in range(100)]
        with channel_of(pki, flooded.port, HEALTH) as uploading:
            assert send_upload(uploading, make_upload())
        until(True, lambda: sum(not call.is_active() for call in calls) >= 98)
        silent.set()
        for call in calls:
            call.cancel()


def test_stopping_lets_a_submission_under_way_end(world: World, pki: Pki) -> None:
    world.set_up()
    server = AggregatorServer(world.config, world.clock)
    server.start()
    with channel_of(pki, server.port, HEALTH) as channel:
        send_upload(channel, make_upload())
        server.stop()
    assert world.records() == make_upload().manifest.records


def test_stopping_does_not_wait_for_a_stream_that_says_nothing(world: World, pki: Pki) -> None:
    world.set_up()
    server = AggregatorServer(world.config, world.clock)
    server.start()
    with channel_of(pki, server.port, HEALTH) as channel:
        conversation = Conversation(channel)
        conversation.say(make_upload().key)
        began = time.monotonic()
        server.stop(grace_s=0.2)
        assert time.monotonic() - began < 5
        with pytest.raises(grpc.RpcError):
            conversation.say(make_upload().batches[0])
        conversation.close()


def test_an_agent_that_pings_as_often_as_agents_do_is_permitted_to() -> None:
    """Fault 6: the two settings agree."""
    from tallyveil_client.transport import channel as agents

    assert agents.KEEPALIVE_INTERVAL_S >= 2 * PERMITTED_PING_INTERVAL_S


@pytest.mark.nightly
def test_an_idle_stream_lives_while_its_agent_pings_every_ten_seconds(server: AggregatorServer, pki: Pki) -> None:
    """Fault 6: in fact."""
    upload = make_upload()
    pings = (("grpc.keepalive_time_ms", 10_000), ("grpc.http2.max_pings_without_data", 0))
    with channel_of(pki, server.port, HEALTH, *pings, ("grpc.keepalive_permit_without_calls", 1)) as channel:
        conversation = Conversation(channel, timeout_s=120)
        conversation.say(upload.key)
        time.sleep(65)
        for batch in upload.batches:
            conversation.say(batch)
        conversation.close()


class Context:
    """As much of a call's context as counting streams needs."""

    def __init__(self, alive: bool = True) -> None:
        self.alive = alive
        self.cancelled = False
        self.ended: list[Callable[[], None]] = []

    def add_callback(self, callback: Callable[[], None]) -> bool:
        self.ended.append(callback)
        return self.alive

    def cancel(self) -> None:
        self.cancelled = True
        for callback in self.ended:
            callback()

    def as_grpc(self) -> grpc.ServicerContext:
        return cast(grpc.ServicerContext, self)


def test_streams_are_limited_in_all_and_by_department() -> None:
    counted = Streams(limit=PER_DEPARTMENT + 1)
    contexts = [Context() for _ in range(PER_DEPARTMENT + 1)]
    for context in contexts[:-1]:
        counted.enter("a", context.as_grpc())
    with pytest.raises(Refused) as caught:
        counted.enter("a", Context().as_grpc())
    assert caught.value.refusal is Refusal.TOO_BUSY
    counted.enter("b", contexts[-1].as_grpc())
    with pytest.raises(Refused):
        counted.enter("c", Context().as_grpc())
    contexts[0].cancel()
    counted.enter("c", Context(alive=False).as_grpc())  # has ended, so it takes no room
    counted.enter("c", Context().as_grpc())


def test_a_silent_stream_is_cut_and_one_that_is_heard_is_not() -> None:
    now = 0.0

    def monotonic() -> float:
        return now

    counted = Streams(limit=2, monotonic=monotonic)
    silent, busy = Context(), Context()
    counted.enter("a", silent.as_grpc())
    heard = counted.enter("b", busy.as_grpc())
    now = IDLE_S + 1
    heard()
    counted.cut_silent()
    assert silent.cancelled and not busy.cancelled
    counted.enter("a", Context().as_grpc())
