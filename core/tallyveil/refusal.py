"""Why an aggregator refuses something a department sends: one closed list, the same on both sides.

Not here: the gRPC status each maps to (the aggregator's service) and what the agent does next (its session).
"""

from __future__ import annotations

from enum import StrEnum


class Refusal(StrEnum):
    """The reason's code on the wire; `sentence` says it to people, without a word about anyone else."""

    NOT_A_DEPARTMENT = "not-a-department"
    UNKNOWN_DEPARTMENT = "unknown-department"
    DEPARTMENT_BLOCKED = "department-blocked"
    UNKNOWN_SURVEY = "unknown-survey"
    SURVEY_EXPIRED = "survey-expired"
    UNKNOWN_ROUND = "unknown-round"
    ROUND_NOT_OPEN_YET = "round-not-open-yet"
    ROUND_CLOSED = "round-closed"
    EPSILON_NOT_PERMITTED = "epsilon-not-permitted"
    UNSIGNED_CHOICE = "unsigned-choice"
    SECOND_SUBMISSION = "second-submission"
    SUBMISSION_COMPLETE = "submission-complete"
    FOREIGN_BATCH = "foreign-batch"
    ALTERED_BATCH = "altered-batch"
    WRONG_DIGEST = "wrong-digest"
    UNKNOWN_CELL = "unknown-cell"
    REPEATED_CELL = "repeated-cell"
    IMPOSSIBLE_TALLY = "impossible-tally"
    OVER_QUOTA = "over-quota"
    INCOMPLETE = "incomplete"
    MALFORMED = "malformed"
    STORE_UNAVAILABLE = "store-unavailable"
    TOO_BUSY = "too-busy"

    @property
    def retryable(self) -> bool:
        """Whether the same bytes may be accepted later without anybody changing anything."""
        return self in _RETRYABLE

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_RETRYABLE = frozenset({Refusal.STORE_UNAVAILABLE, Refusal.TOO_BUSY, Refusal.ROUND_NOT_OPEN_YET})

_SENTENCES = {
    Refusal.NOT_A_DEPARTMENT: "the certificate does not name a department",
    Refusal.UNKNOWN_DEPARTMENT: "this department is not registered here",
    Refusal.DEPARTMENT_BLOCKED: "this department is blocked here",
    Refusal.UNKNOWN_SURVEY: "no survey with this hash is known here",
    Refusal.SURVEY_EXPIRED: "the survey has expired",
    Refusal.UNKNOWN_ROUND: "the survey has no round of this number",
    Refusal.ROUND_NOT_OPEN_YET: "the round is not open yet",
    Refusal.ROUND_CLOSED: "the round is closed",
    Refusal.EPSILON_NOT_PERMITTED: "the survey does not permit this epsilon",
    Refusal.UNSIGNED_CHOICE: "the choice of epsilon is not signed by the key of the caller's certificate",
    Refusal.SECOND_SUBMISSION: "this department has another submission for this round",
    Refusal.SUBMISSION_COMPLETE: "this submission is complete and takes no further batch",
    Refusal.FOREIGN_BATCH: "a batch of this id belongs to another submission",
    Refusal.ALTERED_BATCH: "a batch of this id is held with other content",
    Refusal.WRONG_DIGEST: "the batch does not have the digest it states",
    Refusal.UNKNOWN_CELL: "the batch names a dimension cell the survey does not have",
    Refusal.REPEATED_CELL: "the submission already holds another batch of this dimension cell",
    Refusal.IMPOSSIBLE_TALLY: "the batch's counts cannot come from its number of records",
    Refusal.OVER_QUOTA: "the submission exceeds the survey's quota of records",
    Refusal.INCOMPLETE: "the list of batches is not what is held here",
    Refusal.MALFORMED: "the message does not have the form the protocol asks for",
    Refusal.STORE_UNAVAILABLE: "the store cannot take anything now",
    Refusal.TOO_BUSY: "too many uploads are under way",
}
