"""What the agent's store holds, as values.

Not here: ledger entries (`tallyveil_client.agent.ledger`) and batches (`tallyveil.batch`), which exist without a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tallyveil.batch import Batch, SubmissionKey
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import PolicyError
from tallyveil_client.agent.ledger import Charge


@dataclass(frozen=True)
class Approval:
    """The operator's consent to one survey.

    Args:
        survey_hash: 64 hexadecimal digits.
        document: The signed survey file as it was approved; verify it again before use.
        epsilon: The value chosen among those the survey permits.
        approved_at: The moment, as `tallyveil.moments` writes it.
    """

    survey_hash: str
    document: bytes
    epsilon: NanoEpsilon
    approved_at: str


@dataclass(frozen=True)
class Submission:
    """One round's submission: charged, stored, and on its way or complete.

    Args:
        key: Survey, round, epsilon and identifier.
        survey: The survey's name and version, for people.
        source: Name of the source the records came from.
        records: Reports in all batches.
        batches: How many there are.
        acknowledged: How many of them the aggregator holds, as far as it has said.
        stored_at: The moment of charge and storage.
        completed_at: The moment the aggregator said that it is complete; empty until then.
        refusal: Code of the aggregator's last refusal; empty where there was none since.
    """

    key: SubmissionKey
    survey: str
    source: str
    records: int
    batches: int
    acknowledged: int
    stored_at: str
    completed_at: str
    refusal: str

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.completed_at != ""


@dataclass(frozen=True)
class NewRound:
    """What one round adds: all of it is stored, or nothing.

    Args:
        key: As `Store.reserve` gave it.
        charge: What it costs and which account pays.
        total: Nano-epsilon the policy gives that account altogether.
        batches: Of every dimension cell that has records; at least one.
        source: Name of the source the records came from.
        selection: The fingerprint of the records (`tallyveil_client.agent.fingerprint`).
        clear_counts: Records by (dimension cell, bin) as the aggregator is about to see them.
    """

    key: SubmissionKey
    charge: Charge
    total: int
    batches: tuple[Batch, ...]
    source: str
    selection: str
    clear_counts: Mapping[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])


@dataclass(frozen=True, repr=False)
class Earlier:
    """What is known of the table behind a stored submission, for comparing another one with it.

    Args:
        document: The signed survey file as it was approved.
        account: Name of the population in the policy that paid.
        selection: The fingerprint of the records.
        clear_counts: Records by (dimension cell, bin) as the aggregator sees them.
    """

    document: bytes
    account: str
    selection: str
    clear_counts: Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class Outgoing:
    """A batch of the outbox and whether the aggregator has acknowledged it."""

    batch: Batch
    acknowledged: bool


class AlreadyStoredError(PolicyError):
    """The round was charged and stored before, by this run's neighbour or an earlier one."""

    def __init__(self, survey: str, number: int) -> None:
        super().__init__(
            f"round {number} of {survey} is already charged and stored",
            not_done="nothing was charged a second time, and what this run drew was thrown away",
            next_step="run again: it resumes the stored submission, or says that it is complete",
        )
