"""Intake: every refusal is reached, and sending anything again changes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator_world import DAY, HIGH, LOW, NOW, SURVEY, Upload, batch_of, make_key, make_upload, token
from tallyveil.batch import Batch, BatchReference, Manifest, SubmissionKey, batch_digest, encode_counts
from tallyveil.epsilon import to_nano
from tallyveil.identity import Role
from tallyveil.refusal import Refusal
from tallyveil_aggregator.intake import (
    AcknowledgeAgain,
    Begin,
    DepartmentState,
    Finish,
    HeldBatch,
    HeldSubmission,
    Holdings,
    Resume,
    RoundState,
    Take,
    admit,
    complete_submission,
    open_submission,
    take_batch,
)

KEY = make_key()
OPEN = RoundState(SURVEY.rounds[0], closed_early=False, released=False)
HELD = HeldSubmission(KEY, complete=False)
COMPLETE = HeldSubmission(KEY, complete=True)
NOTHING = Holdings(None, same_cell=False, records=0)
BATCH = batch_of(KEY, 0, range(10))


def forged(batch: Batch, **changes: object) -> Batch:
    """A batch with other content and the digest that fits it."""
    other = replace(batch, **changes)  # type: ignore[arg-type]
    digest = batch_digest(KEY, other.batch_id, other.nonce, other.cell, other.records, other.payload)
    return replace(other, digest=digest)


def take(batch: Batch, held: HeldSubmission = HELD, holdings: Holdings = NOTHING, **state: object) -> object:
    now = state.pop("now", NOW)
    assert isinstance(now, datetime)
    return take_batch(batch, SURVEY, replace(OPEN, **state), held, holdings, now)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "state", "expected"),
    [
        (Role.DEPARTMENT, DepartmentState.ACTIVE, None),
        (Role.DEPARTMENT, DepartmentState.BLOCKED, Refusal.DEPARTMENT_BLOCKED),
        (Role.DEPARTMENT, None, Refusal.UNKNOWN_DEPARTMENT),
        (Role.CONSUMER, DepartmentState.ACTIVE, Refusal.NOT_A_DEPARTMENT),
        (Role.OPERATOR, None, Refusal.NOT_A_DEPARTMENT),
    ],
)
def test_only_active_departments_are_admitted(
    role: Role, state: DepartmentState | None, expected: Refusal | None
) -> None:
    assert admit(role, state) == expected


@pytest.mark.parametrize(
    ("state", "now", "expected"),
    [
        (OPEN, NOW, Begin()),
        (OPEN, OPEN.window.opens, Begin()),
        (OPEN, OPEN.window.opens - timedelta(microseconds=1), Refusal.ROUND_NOT_OPEN_YET),
        (OPEN, OPEN.window.closes - timedelta(microseconds=1), Begin()),
        (OPEN, OPEN.window.closes, Refusal.ROUND_CLOSED),
        (replace(OPEN, closed_early=True), NOW, Refusal.ROUND_CLOSED),
        (replace(OPEN, released=True), NOW, Refusal.ROUND_CLOSED),
        (OPEN, SURVEY.expires + timedelta(seconds=1), Refusal.SURVEY_EXPIRED),
        (None, NOW, Refusal.UNKNOWN_ROUND),
    ],
)
def test_a_submission_begins_only_while_its_round_is_open(
    state: RoundState | None, now: datetime, expected: object
) -> None:
    assert open_submission(KEY, SURVEY, state, None, now) == expected


def test_an_unknown_survey_and_an_epsilon_that_is_not_permitted_are_refused() -> None:
    assert open_submission(KEY, None, None, None, NOW) is Refusal.UNKNOWN_SURVEY
    between = replace(KEY, epsilon=to_nano(1.5))
    assert open_submission(between, SURVEY, OPEN, None, NOW) is Refusal.EPSILON_NOT_PERMITTED


def test_the_same_submission_resumes_and_another_one_is_refused() -> None:
    assert open_submission(KEY, SURVEY, OPEN, HELD, NOW) == Resume(complete=False)
    assert open_submission(KEY, SURVEY, OPEN, COMPLETE, NOW) == Resume(complete=True)
    for other in (make_key("other"), replace(KEY, epsilon=LOW)):
        assert open_submission(other, SURVEY, OPEN, HELD, NOW) is Refusal.SECOND_SUBMISSION


def test_after_the_round_a_complete_submission_is_told_so_and_an_incomplete_one_is_late() -> None:
    after = OPEN.window.closes + DAY
    assert open_submission(KEY, SURVEY, OPEN, COMPLETE, after) == Resume(complete=True)
    assert open_submission(KEY, SURVEY, OPEN, HELD, after) is Refusal.ROUND_CLOSED


def test_a_batch_is_taken_with_its_counts() -> None:
    decision = take(BATCH)
    assert isinstance(decision, Take)
    assert decision.counts.tolist() == list(range(10))


def test_a_repeated_batch_is_acknowledged_again_even_late_or_after_completion() -> None:
    holdings = Holdings(HeldBatch(BATCH.reference, ours=True), same_cell=True, records=45)
    for held, now in ((HELD, NOW), (COMPLETE, NOW), (COMPLETE, OPEN.window.closes)):
        assert take(BATCH, held, holdings, now=now) == AcknowledgeAgain()


def test_an_altered_repetition_is_refused_and_so_is_a_digest_that_does_not_fit() -> None:
    holdings = Holdings(HeldBatch(BATCH.reference, ours=True), same_cell=True, records=45)
    altered = forged(BATCH, payload=encode_counts(range(9, -1, -1)))
    assert take(altered, holdings=holdings) is Refusal.ALTERED_BATCH
    for content in ({"payload": altered.payload}, {"records": 44}, {"cell": 1}, {"nonce": token("x")}):
        assert take(replace(BATCH, **content), holdings=holdings) is Refusal.WRONG_DIGEST
    assert take(replace(BATCH, digest=bytes(32))) is Refusal.WRONG_DIGEST


def test_a_digest_binds_survey_round_epsilon_and_submission() -> None:
    others = (
        replace(KEY, survey_hash="ab" * 32),
        replace(KEY, round=2),
        replace(KEY, epsilon=LOW),
        replace(KEY, submission_id=token("other")),
    )
    for other in others:
        assert take(replace(BATCH, digest=batch_of(other, 0, range(10)).digest)) is Refusal.WRONG_DIGEST


@pytest.mark.parametrize(
    ("batch", "holdings", "expected"),
    [
        (BATCH, Holdings(HeldBatch(BATCH.reference, ours=False), False, 0), Refusal.FOREIGN_BATCH),
        (BATCH, Holdings(None, same_cell=True, records=45), Refusal.REPEATED_CELL),
        (batch_of(KEY, 2, range(10)), NOTHING, Refusal.UNKNOWN_CELL),
        (batch_of(KEY, 2**32 - 1, range(10)), NOTHING, Refusal.UNKNOWN_CELL),
        (BATCH, Holdings(None, False, SURVEY.quota - 44), Refusal.OVER_QUOTA),
        (batch_of(KEY, 0, [1_001] + [0] * 9), NOTHING, Refusal.OVER_QUOTA),
        (forged(BATCH, records=44), NOTHING, Refusal.IMPOSSIBLE_TALLY),
        (forged(BATCH, records=46), NOTHING, Refusal.IMPOSSIBLE_TALLY),
        (batch_of(KEY, 0, range(9)), NOTHING, Refusal.IMPOSSIBLE_TALLY),
        (batch_of(KEY, 0, range(11)), NOTHING, Refusal.IMPOSSIBLE_TALLY),
        (forged(BATCH, payload=b""), NOTHING, Refusal.IMPOSSIBLE_TALLY),
        (forged(BATCH, payload=b"\x80" * 80), NOTHING, Refusal.IMPOSSIBLE_TALLY),
    ],
)
def test_what_cannot_be_is_refused(batch: Batch, holdings: Holdings, expected: Refusal) -> None:
    assert take(batch, holdings=holdings) is expected


def test_counts_that_overflow_64_bits_to_the_stated_records_are_impossible() -> None:
    survey = replace(SURVEY, domain=type(SURVEY.domain)(0, 2047), dimensions=())  # type: ignore[call-arg]
    counts = np.full(2048, 2**53 - 1, dtype=np.int64)
    assert int(counts.sum()) < 0  # wrapped around
    batch = forged(BATCH, payload=encode_counts(counts), records=(2048 * (2**53 - 1)) % 2**64 % 2**53)
    assert take_batch(batch, survey, OPEN, HELD, NOTHING, NOW) is Refusal.IMPOSSIBLE_TALLY


def test_the_quota_may_be_used_to_the_last_record() -> None:
    assert isinstance(take(BATCH, holdings=Holdings(None, False, SURVEY.quota - 45)), Take)


def test_new_batches_come_neither_late_nor_early_nor_after_completion() -> None:
    assert take(BATCH, COMPLETE) is Refusal.SUBMISSION_COMPLETE
    assert take(BATCH, now=OPEN.window.closes) is Refusal.ROUND_CLOSED
    assert take(BATCH, now=OPEN.window.opens - DAY) is Refusal.ROUND_NOT_OPEN_YET
    assert take(BATCH, closed_early=True) is Refusal.ROUND_CLOSED
    assert take(BATCH, released=True) is Refusal.ROUND_CLOSED


def complete(manifest: Manifest, upload: Upload, held: HeldSubmission = HELD, now: datetime = NOW) -> object:
    references = [batch.reference for batch in upload.batches]
    return complete_submission(manifest, SURVEY, OPEN, held, references, upload.manifest.records, now)


def test_a_submission_completes_once_its_list_is_what_is_held_in_any_order() -> None:
    upload = make_upload()
    manifest = upload.manifest
    expected = Finish(2, manifest.records, again=False)
    assert complete(manifest, upload) == expected
    assert complete(replace(manifest, batches=manifest.batches[::-1]), upload) == expected
    assert complete(manifest, upload, COMPLETE, OPEN.window.closes) == replace(expected, again=True)
    assert complete(manifest, upload, now=OPEN.window.closes) is Refusal.ROUND_CLOSED


def test_an_empty_submission_is_none() -> None:
    assert complete(Manifest((), 0), Upload(KEY, ())) is Refusal.INCOMPLETE


def test_a_list_that_differs_from_what_is_held_is_incomplete() -> None:
    upload = make_upload()
    batches, records = upload.manifest.batches, upload.manifest.records
    other = BatchReference(batches[0].batch_id, bytes(32))
    for manifest in (
        Manifest(batches[:1], records),
        Manifest((*batches, batches[0]), records),
        Manifest((batches[0], batches[0]), records),
        Manifest((other, batches[1]), records),
        Manifest(batches, records + 1),
        Manifest((), 0),
    ):
        assert complete(manifest, upload) is Refusal.INCOMPLETE
        assert complete(manifest, upload, COMPLETE) is Refusal.INCOMPLETE


class Memory:
    """What a store would hold of one department's round, with intake's decisions applied."""

    def __init__(self) -> None:
        self.key: SubmissionKey | None = None
        self.complete = False
        self.batches: dict[bytes, Batch] = {}
        self.counts = np.zeros(10, dtype=np.int64)

    def step(self, step: SubmissionKey | Batch | Manifest) -> object:
        held = None if self.key is None else HeldSubmission(self.key, self.complete)
        if isinstance(step, SubmissionKey):
            decision: object = open_submission(step, SURVEY, OPEN, held, NOW)
            self.key = step if isinstance(decision, Begin) else self.key
            return decision
        if held is None:
            return None
        records = sum(batch.records for batch in self.batches.values())
        if isinstance(step, Manifest):
            references = [batch.reference for batch in self.batches.values()]
            decision = complete_submission(step, SURVEY, OPEN, held, references, records, NOW)
            self.complete = self.complete or isinstance(decision, Finish)
            return decision
        same = self.batches.get(step.batch_id)
        cells = {batch.cell for batch in self.batches.values()}
        holdings = Holdings(HeldBatch(same.reference, True) if same else None, step.cell in cells, records)
        taken = take_batch(step, SURVEY, OPEN, held, holdings, NOW)
        if isinstance(taken, Take):
            self.batches[step.batch_id] = step
            self.counts += taken.counts
        return taken


UPLOAD = make_upload(epsilon=HIGH)
TWISTED = (make_upload("other", least=3), make_upload(least=5))
STEPS = [
    step for upload in (UPLOAD, UPLOAD, UPLOAD, *TWISTED) for step in (upload.key, *upload.batches, upload.manifest)
]


@given(st.lists(st.sampled_from(STEPS), max_size=30))
def test_whatever_is_repeated_dropped_or_mixed_in_each_batch_counts_once(
    steps: list[SubmissionKey | Batch | Manifest],
) -> None:
    memory = Memory()
    for step in steps:
        before = memory.counts.copy()
        first, again = memory.step(step), None
        between = memory.counts.copy()
        again = memory.step(step)
        assert np.array_equal(memory.counts, between)
        if isinstance(first, Refusal):
            assert again is first
            assert np.array_equal(before, between)
    total = sum(batch.records for batch in memory.batches.values())
    assert int(memory.counts.sum()) == total
    assert len({batch.cell for batch in memory.batches.values()}) == len(memory.batches)


@given(st.permutations(list(UPLOAD.batches) * 3))
def test_a_whole_upload_in_any_order_with_repetitions_is_counted_exactly(batches: list[Batch]) -> None:
    memory = Memory()
    assert memory.step(UPLOAD.key) == Begin()
    for batch in batches:
        assert isinstance(memory.step(batch), Take | AcknowledgeAgain)
    assert memory.step(UPLOAD.manifest) == Finish(2, UPLOAD.manifest.records, again=False)
    assert int(memory.counts.sum()) == UPLOAD.manifest.records
