# pyright: standard
"""Uploads over real gRPC and mutual TLS: taken in once, refused by name."""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from typing import cast

import grpc
import numpy as np
import pytest

from aggregator_calls import Conversation, channel_of, channel_with, reason_of, running, send, send_upload
from aggregator_world import (
    CONSUMER,
    DAY,
    EDUCATION,
    HEALTH,
    HIGH,
    LOW,
    NOW,
    OPERATOR,
    SURVEY,
    Pki,
    Upload,
    World,
    batch_of,
    make_key,
    make_upload,
)
from tallyveil.batch import Manifest, batch_digest, encode_counts
from tallyveil.identity import Identity, Role
from tallyveil.mechanisms import for_survey
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.refusal import Refusal
from tallyveil.wire.codec import Acknowledged, Completed, Opened, encode_request
from tallyveil.wire.v1 import collection_pb2 as pb
from tallyveil_aggregator.intake import DepartmentState
from tallyveil_aggregator.publication import publish
from tallyveil_aggregator.service.server import AggregatorServer
from tallyveil_aggregator.service.streams import PER_DEPARTMENT

UPLOAD = make_upload()
KEY, BATCHES, MANIFEST = UPLOAD.key, UPLOAD.batches, UPLOAD.manifest


@pytest.fixture
def server(world: World) -> Generator[AggregatorServer]:
    """The aggregator, serving health and education."""
    world.set_up()
    with running(world) as started:
        yield started


@pytest.fixture
def channel(server: AggregatorServer, pki: Pki) -> Generator[grpc.Channel]:
    """The channel of the department health."""
    with channel_of(pki, server.port, HEALTH) as opened:
        yield opened


def refused(channel: grpc.Channel, *steps: object) -> str:
    """The code by which the last of the steps is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        send(channel, steps)  # type: ignore[arg-type]
    return reason_of(caught.value)


def test_a_submission_is_opened_acknowledged_batch_by_batch_and_completed(channel: grpc.Channel, world: World) -> None:
    answers = send_upload(channel, UPLOAD)
    assert answers == [
        Opened((), complete=False),
        *(Acknowledged(batch.reference) for batch in BATCHES),
        Completed(2, MANIFEST.records),
    ]
    assert world.records() == MANIFEST.records


def test_a_second_run_learns_what_is_held_and_is_counted_once(channel: grpc.Channel, world: World) -> None:
    send(channel, (KEY, BATCHES[0]))
    answers = send_upload(channel, UPLOAD)
    assert answers[0] == Opened((BATCHES[0].reference,), complete=False)
    assert world.records() == MANIFEST.records
    references = tuple(batch.reference for batch in BATCHES)
    assert send_upload(channel, UPLOAD) == [Opened(references, complete=True), *answers[1:]]
    assert world.records() == MANIFEST.records


def test_two_departments_do_not_disturb_each_other(server: AggregatorServer, pki: Pki, world: World) -> None:
    other = make_upload("education", epsilon=LOW, least=4)
    with channel_of(pki, server.port, HEALTH) as first, channel_of(pki, server.port, EDUCATION) as second:
        assert len(send_upload(first, UPLOAD)) == 4
        assert len(send_upload(second, other)) == 4
    assert world.records() == MANIFEST.records + other.manifest.records


@pytest.mark.parametrize("caller", [CONSUMER, OPERATOR])
def test_only_departments_may_submit(server: AggregatorServer, pki: Pki, caller: Identity) -> None:
    with channel_of(pki, server.port, caller) as channel:
        assert refused(channel, KEY) == Refusal.NOT_A_DEPARTMENT


def test_a_server_certificate_is_no_identity(server: AggregatorServer, pki: Pki) -> None:
    with (
        channel_with(pki, server.port, *pki.server()) as channel,
        pytest.raises(grpc.RpcError),
    ):
        send(channel, (KEY,))


def test_without_a_certificate_or_with_one_of_another_ca_nothing_is_answered(
    server: AggregatorServer, pki: Pki
) -> None:
    for certificate, key in ((None, None), Pki().client(HEALTH)):
        with channel_with(pki, server.port, certificate, key) as channel:
            assert refused(channel, KEY) == "UNAVAILABLE"


def test_an_unregistered_department_is_refused(server: AggregatorServer, pki: Pki) -> None:
    with channel_of(pki, server.port, Identity(Role.DEPARTMENT, "stranger")) as channel:
        assert refused(channel, KEY) == Refusal.UNKNOWN_DEPARTMENT


def test_a_department_blocked_in_the_middle_of_its_stream_gets_no_further(channel: grpc.Channel, world: World) -> None:
    with closing(Conversation(channel)) as conversation:
        conversation.say(KEY)
        conversation.say(BATCHES[0])
        with world.store() as store, store.writing() as transaction:
            transaction.departments.set_state("health", DepartmentState.BLOCKED)
        with pytest.raises(grpc.RpcError) as caught:
            conversation.say(BATCHES[1])
    assert reason_of(caught.value) == Refusal.DEPARTMENT_BLOCKED
    assert refused(channel, KEY) == Refusal.DEPARTMENT_BLOCKED
    assert world.records() == BATCHES[0].records


FOREIGN_ROUND = make_key(round_number=9)
TOO_MANY = batch_of(KEY, 0, [SURVEY.quota + 1] + [0] * 9)


def forged_records() -> object:
    """A batch that states one record more than its counts hold, with a digest that fits."""
    batch = BATCHES[0]
    records = batch.records + 1
    digest = batch_digest(KEY, batch.batch_id, batch.nonce, batch.cell, records, batch.payload)
    return replace(batch, records=records, digest=digest)


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ((replace(KEY, survey_hash="ab" * 32),), Refusal.UNKNOWN_SURVEY),
        ((FOREIGN_ROUND,), Refusal.UNKNOWN_ROUND),
        ((make_key(round_number=0),), Refusal.UNKNOWN_ROUND),
        ((make_key(round_number=2**32 - 1),), Refusal.UNKNOWN_ROUND),
        ((make_key(round_number=2),), Refusal.ROUND_NOT_OPEN_YET),
        ((make_key(epsilon=LOW + 1),), Refusal.EPSILON_NOT_PERMITTED),
        ((encode_request(KEY),), Refusal.UNSIGNED_CHOICE),
        ((encode_request(KEY, b"\x00" * 64),), Refusal.UNSIGNED_CHOICE),
        ((KEY, BATCHES[0], batch_of(KEY, 0, range(10))), Refusal.ALTERED_BATCH),
        ((KEY, replace(BATCHES[0], payload=encode_counts(range(10)))), Refusal.WRONG_DIGEST),
        ((KEY, batch_of(make_key(round_number=2), 0, range(10))), Refusal.WRONG_DIGEST),
        ((KEY, batch_of(make_key(epsilon=LOW), 0, range(10))), Refusal.WRONG_DIGEST),
        ((KEY, batch_of(KEY, 2, range(10))), Refusal.UNKNOWN_CELL),
        ((KEY, BATCHES[0], batch_of(KEY, 0, range(10), seed="other id")), Refusal.REPEATED_CELL),
        ((KEY, forged_records()), Refusal.IMPOSSIBLE_TALLY),
        ((KEY, batch_of(KEY, 0, range(9))), Refusal.IMPOSSIBLE_TALLY),
        ((KEY, TOO_MANY), Refusal.OVER_QUOTA),
        ((KEY, MANIFEST), Refusal.INCOMPLETE),
        ((KEY, BATCHES[0], MANIFEST), Refusal.INCOMPLETE),
        ((KEY, *BATCHES, MANIFEST, batch_of(KEY, 0, range(10), seed="late")), Refusal.SUBMISSION_COMPLETE),
        ((BATCHES[0],), Refusal.MALFORMED),
        ((MANIFEST,), Refusal.MALFORMED),
        ((KEY, KEY), Refusal.MALFORMED),
        ((pb.SubmitRequest(),), Refusal.MALFORMED),
        ((pb.SubmitRequest(open=pb.OpenSubmission(survey_hash=b"short")),), Refusal.MALFORMED),
        ((KEY, pb.SubmitRequest(batch=pb.Batch())), Refusal.MALFORMED),
    ],
)
def test_what_may_not_be_is_refused_with_its_own_code(
    channel: grpc.Channel, steps: tuple[object, ...], code: Refusal
) -> None:
    assert refused(channel, *steps) == code


def test_a_second_submission_of_a_round_is_refused_even_after_a_restart(world: World, pki: Pki) -> None:
    world.set_up()
    for _ in range(2):
        with running(world) as server, channel_of(pki, server.port, HEALTH) as channel:
            send_upload(channel, UPLOAD)
            assert refused(channel, make_key("second")) == Refusal.SECOND_SUBMISSION
            assert refused(channel, make_key(epsilon=LOW)) == Refusal.SECOND_SUBMISSION
    assert world.records() == MANIFEST.records


def test_a_batch_of_another_department_cannot_be_replayed_as_ones_own(server: AggregatorServer, pki: Pki) -> None:
    theirs, stolen = make_key("education"), BATCHES[0]
    digest = batch_digest(theirs, stolen.batch_id, stolen.nonce, stolen.cell, stolen.records, stolen.payload)
    with channel_of(pki, server.port, HEALTH) as first, channel_of(pki, server.port, EDUCATION) as second:
        send(first, (KEY, stolen))
        assert refused(second, theirs, stolen) == Refusal.WRONG_DIGEST
        assert refused(second, theirs, replace(stolen, digest=digest)) == Refusal.FOREIGN_BATCH


def test_late_is_late_on_every_step_and_what_was_complete_stays_so(channel: grpc.Channel, world: World) -> None:
    send(channel, (KEY, BATCHES[0]))
    world.clock.now = SURVEY.rounds[0].closes
    assert refused(channel, KEY) == Refusal.ROUND_CLOSED
    world.clock.now = NOW
    send_upload(channel, UPLOAD)
    world.clock.now = SURVEY.expires + DAY
    assert send_upload(channel, UPLOAD)[-1] == Completed(2, MANIFEST.records)
    assert refused(channel, make_key(round_number=2)) == Refusal.SURVEY_EXPIRED


def test_a_round_that_closes_under_an_open_stream_takes_nothing_more(channel: grpc.Channel, world: World) -> None:
    with closing(Conversation(channel)) as conversation:
        conversation.say(KEY)
        conversation.say(BATCHES[0])
        with world.store() as store, store.writing() as transaction:
            transaction.rounds.set_closed(SURVEY.hash, 1, NOW)
        assert conversation.say(BATCHES[0]) == Acknowledged(BATCHES[0].reference)
        with pytest.raises(grpc.RpcError) as caught:
            conversation.say(BATCHES[1])
    assert reason_of(caught.value) == Refusal.ROUND_CLOSED


def test_a_batch_cannot_bring_parameters_of_its_own(world: World, pki: Pki) -> None:
    """Fault 16: unknown fields that look like p, q or epsilon change nothing; what is released follows the survey."""
    world.set_up()
    batch = encode_request(BATCHES[0])
    # Fields 100 to 102 of the batch: a p, a q and an epsilon, as a careless server might have read them.
    extra = b"".join(
        number.to_bytes(2, "little") + np.float64(value).tobytes()
        for number, value in ((0x06A1, 0.99), (0x06A9, 0.001), (0x06B1, 16.0))
    )
    forged = pb.SubmitRequest(batch=pb.Batch.FromString(batch.batch.SerializeToString() + extra))
    assert len(forged.SerializeToString()) > len(batch.SerializeToString())
    other = make_upload("education", epsilon=HIGH)
    with running(world) as server:
        with channel_of(pki, server.port, HEALTH) as channel:
            assert send(channel, (KEY, forged, BATCHES[1], MANIFEST))[-1] == Completed(2, MANIFEST.records)
        with channel_of(pki, server.port, EDUCATION) as channel:
            send_upload(channel, other)
            # An epsilon the survey does not permit is no parameter either.
            assert refused(channel, make_key("third", epsilon=HIGH + 10**9)) == Refusal.SECOND_SUBMISSION
    with world.store() as store:
        release = publish(store, SURVEY, 1, pki.releases, lambda: SURVEY.rounds[0].closes)
    law = for_survey(SURVEY, HIGH).law
    assert isinstance(law, Blocks)
    assert [(item["p"], item["q"]) for item in cast(list[dict[str, str]], release.body["parameters"])] == [
        (f"{float(law.p[0]):.6f}", f"{float(law.q[0]):.6f}")
    ]


def test_too_many_streams_are_refused_for_now_and_an_ended_one_makes_room(server: AggregatorServer, pki: Pki) -> None:
    with channel_of(pki, server.port, HEALTH) as channel:
        conversations = [Conversation(channel) for _ in range(PER_DEPARTMENT)]
        for conversation in conversations:
            conversation.say(KEY)
        assert refused(channel, KEY) == Refusal.TOO_BUSY
        with channel_of(pki, server.port, EDUCATION) as other:
            send(other, (make_key("education"),))
        for conversation in conversations:
            conversation.close()
        for _ in range(100):
            try:
                send_upload(channel, UPLOAD)
                break
            except grpc.RpcError as error:
                assert reason_of(error) == Refusal.TOO_BUSY
        else:
            pytest.fail("no stream was freed")


def test_the_log_names_department_and_code_and_shows_tampering_as_a_warning(
    channel: grpc.Channel, log: io.StringIO
) -> None:
    send_upload(channel, UPLOAD)
    refused(channel, make_key("second"))
    refused(channel, KEY, replace(BATCHES[0], payload=encode_counts(range(10))))
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    told = [
        (line["level"], line["event"], line["fields"]["department"], line["fields"].get("code"))
        for line in lines
        if "department" in line["fields"]
    ]
    assert told == [
        ("info", "submission opened", "health", None),
        ("info", "submission completed", "health", None),
        ("info", "submission refused", "health", "second-submission"),
        ("info", "submission opened", "health", None),
        ("warning", "submission refused", "health", "wrong-digest"),
    ]
    assert all("records" not in line["fields"] and "counts" not in line["fields"] for line in lines)


def test_an_unexpected_failure_shows_nothing_of_itself(
    channel: grpc.Channel, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    def fail(*_: object) -> object:
        raise ValueError("canary-4711")

    monkeypatch.setattr("tallyveil_aggregator.service.collection.open_submission", fail)
    with pytest.raises(grpc.RpcError) as caught:
        send(channel, (KEY,))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "canary" not in repr(caught.value)
    assert "ValueError" in log.getvalue() and "canary" not in log.getvalue()


def test_a_store_that_fails_is_a_retryable_refusal(channel: grpc.Channel, world: World) -> None:
    aside = world.config.store.rename(world.folder / "aside")
    assert refused(channel, KEY) == Refusal.STORE_UNAVAILABLE
    aside.rename(world.config.store)
    assert len(send_upload(channel, UPLOAD)) == 4


def test_a_message_larger_than_the_limit_is_not_taken(channel: grpc.Channel) -> None:
    huge = pb.SubmitRequest(batch=pb.Batch(histogram=bytes(4 * 1024 * 1024)))
    assert refused(channel, KEY, huge) == "RESOURCE_EXHAUSTED"


def test_an_empty_cell_and_an_empty_submission_are_taken(channel: grpc.Channel) -> None:
    empty = batch_of(KEY, 0, [0] * 10)
    upload = Upload(KEY, (empty,))
    assert send_upload(channel, upload)[-1] == Completed(1, 0)
    assert Manifest((empty.reference,), 0) == upload.manifest
