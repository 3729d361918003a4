"""Intake: which step of a submission is accepted, and what follows from it. Values in, a decision or refusal out.

Not here: loading the state and storing what was decided (the store, in one transaction), the clock, and the wire.
Nothing here reads p, q or an epsilon from a batch: parameters follow from the signed survey and the epsilon that the
department chose among the survey's when it opened the submission.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tallyveil.batch import Batch, BatchReference, Manifest, SubmissionKey, expected_digest
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import PeerError
from tallyveil.identity import Role
from tallyveil.mechanisms import for_survey
from tallyveil.mechanisms.payload import decode_tally
from tallyveil.refusal import Refusal
from tallyveil.survey import Round, Survey

TAMPERING = frozenset({Refusal.ALTERED_BATCH, Refusal.WRONG_DIGEST, Refusal.FOREIGN_BATCH})
"""Refusals that an honest agent's retries never meet."""


class DepartmentState(StrEnum):
    """A registered department's standing."""

    ACTIVE = "active"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class RoundState:
    """A round of a survey as it stands here.

    Args:
        window: As the survey defines it.
        closed_early: An operator closed it.
        released: A release of it exists; nothing may be added any more, whatever the clock says.
    """

    window: Round
    closed_early: bool
    released: bool


@dataclass(frozen=True)
class HeldSubmission:
    """A department's submission of a round as it is held."""

    key: SubmissionKey
    complete: bool


@dataclass(frozen=True)
class HeldBatch:
    """A batch that is held under the id in question, in this submission (`ours`) or another."""

    reference: BatchReference
    ours: bool


@dataclass(frozen=True)
class Holdings:
    """What is held that bears on one batch.

    Args:
        same_id: The batch of the same id, wherever it is held.
        same_cell: Whether this submission holds a batch of the same cell.
        records: Records this submission holds so far.
    """

    same_id: HeldBatch | None
    same_cell: bool
    records: int


@dataclass(frozen=True)
class Begin:
    """Open the submission; nothing of it was held."""


@dataclass(frozen=True)
class Resume:
    """The submission is known: tell what is held of it."""

    complete: bool


@dataclass(frozen=True)
class Take:
    """Store the batch, then acknowledge it. `counts` has the shape that the mechanism's law says."""

    counts: NDArray[np.int64]


@dataclass(frozen=True)
class AcknowledgeAgain:
    """The same batch is held already: acknowledge, store nothing."""


@dataclass(frozen=True)
class Finish:
    """The submission is complete: mark it so, then say so. `again` where it was marked before."""

    batches: int
    records: int
    again: bool


def admit(role: Role, state: DepartmentState | None) -> Refusal | None:
    """Whether a caller may take the department's part; `state` is None for an unregistered name."""
    if role is not Role.DEPARTMENT:
        return Refusal.NOT_A_DEPARTMENT
    if state is None:
        return Refusal.UNKNOWN_DEPARTMENT
    return Refusal.DEPARTMENT_BLOCKED if state is DepartmentState.BLOCKED else None


def open_submission(
    key: SubmissionKey, survey: Survey | None, state: RoundState | None, held: HeldSubmission | None, now: datetime
) -> Begin | Resume | Refusal:
    """Open or resume a submission of an admitted department.

    Args:
        key: What the department asks to open.
        survey: The survey of that hash, or None where it is not known here.
        state: The round of that number, or None where the survey has none.
        held: What the department has opened for this round before.
        now: Aware.
    """
    if survey is None:
        return Refusal.UNKNOWN_SURVEY
    if state is None:
        return Refusal.UNKNOWN_ROUND
    if held is not None and held.key != key:
        return Refusal.SECOND_SUBMISSION
    if held is not None and held.complete:
        return Resume(complete=True)  # after the round too: the acknowledgement may have been lost
    if (refusal := _closed(survey, state, now)) is not None:
        return refusal
    if key.epsilon not in survey.epsilons:
        return Refusal.EPSILON_NOT_PERMITTED
    return Begin() if held is None else Resume(complete=False)


def take_batch(
    batch: Batch, survey: Survey, state: RoundState, held: HeldSubmission, holdings: Holdings, now: datetime
) -> Take | AcknowledgeAgain | Refusal:
    """Take in a batch of a submission that was opened, once, whatever is sent how often."""
    if batch.digest != expected_digest(held.key, batch):
        return Refusal.WRONG_DIGEST
    if (same := holdings.same_id) is not None:
        if not same.ours:
            return Refusal.FOREIGN_BATCH
        return AcknowledgeAgain() if same.reference == batch.reference else Refusal.ALTERED_BATCH
    if held.complete:
        return Refusal.SUBMISSION_COMPLETE
    if (refusal := _closed(survey, state, now)) is not None:
        return refusal
    if batch.cell >= survey.cell_count:
        return Refusal.UNKNOWN_CELL
    if holdings.same_cell:
        return Refusal.REPEATED_CELL
    counts = _counts(batch, survey, held.key.epsilon)
    if counts is None:
        return Refusal.IMPOSSIBLE_TALLY
    if holdings.records + batch.records > survey.quota:
        return Refusal.OVER_QUOTA
    return Take(counts)


def complete_submission(
    manifest: Manifest,
    survey: Survey,
    state: RoundState,
    held: HeldSubmission,
    batches: Collection[BatchReference],
    records: int,
    now: datetime,
) -> Finish | Refusal:
    """Complete a submission whose every batch is held, and no other; `batches` and `records` are what is held."""
    listed = sorted(manifest.batches)
    if not listed or listed != sorted(batches) or manifest.records != records:
        return Refusal.INCOMPLETE
    if held.complete:
        return Finish(len(listed), records, again=True)
    if (refusal := _closed(survey, state, now)) is not None:
        return refusal
    return Finish(len(listed), records, again=False)


def _closed(survey: Survey, state: RoundState, now: datetime) -> Refusal | None:
    if now > survey.expires:
        return Refusal.SURVEY_EXPIRED
    if state.released or state.closed_early or now >= state.window.closes:
        return Refusal.ROUND_CLOSED
    return Refusal.ROUND_NOT_OPEN_YET if now < state.window.opens else None


def _counts(batch: Batch, survey: Survey, epsilon: NanoEpsilon) -> NDArray[np.int64] | None:
    """The counts, or None where so many reports of the survey's mechanism cannot have made them."""
    try:
        return decode_tally(for_survey(survey, epsilon).law, batch.records, batch.payload).counts
    except PeerError:
        return None
