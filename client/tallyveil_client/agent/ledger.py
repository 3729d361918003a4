"""The ledger's rules: what a round charges, what an account has left, and whether the chain of entries holds.

Not here: storage (`tallyveil_client.agent.store`) and a clock. Amounts are whole nano-epsilon throughout: a charge
is rounded up, a share down, and nothing else rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tallyveil import canonical
from tallyveil.epsilon import NanoEpsilon, checked_nano, epsilon_text
from tallyveil.errors import ConfigurationError, IntegrityError, PolicyError
from tallyveil.fields import Fields

SUBMISSION = "submission"
"""Kind of the charge for one round of one survey."""

_PURPOSE = "ledger-entry"
_KEYS = (
    "account",
    "at",
    "charged_nano",
    "epsilon_nano",
    "factor",
    "kind",
    "max_rows_per_person",
    "round",
    "submission",
    "survey",
    "survey_hash",
)


@dataclass(frozen=True)
class Charge:
    """One withdrawal from an account.

    Args:
        account: Name of the population in the policy.
        kind: What it paid for: `SUBMISSION`.
        survey_hash: 64 hexadecimal digits.
        survey: The survey's name and version, for people: ``ages@1``.
        round: Number of the round.
        epsilon: Of one report.
        max_rows_per_person: m, as the policy had it then.
        factor: How often that epsilon counts: 2 for add-or-remove neighbours, since accounts compare replace-one.
        charged: Nano-epsilon withdrawn: `charge_of` the three above.
        submission: Identifier of what it paid for, in hexadecimal.
        at: The moment, as `tallyveil.moments` writes it.

    Raises:
        ConfigurationError: The amount is not what the epsilon and the rows cost, or the kind is unknown.
    """

    account: str
    kind: str
    survey_hash: str
    survey: str
    round: int
    epsilon: NanoEpsilon
    max_rows_per_person: int
    factor: int
    charged: int
    submission: str
    at: str

    def __post_init__(self) -> None:
        cost = charge_of(self.epsilon * self.factor, self.max_rows_per_person)
        if self.kind != SUBMISSION or self.factor not in (1, 2) or self.charged != cost:
            raise ConfigurationError("a charge is not what its epsilon and its rows cost")


@dataclass(frozen=True)
class Head:
    """How far a chain reaches: number and hash of its last entry; number 0 and the start's hash when empty."""

    seq: int
    hash: str


@dataclass(frozen=True)
class Entry:
    """One link as it is stored.

    Args:
        seq: 1, 2, … without gaps.
        previous: Hash of the entry before, or of the chain's start.
        content: Canonical JSON of the charge.
        hash: Over all three.
    """

    seq: int
    previous: str
    content: bytes
    hash: str


@dataclass(frozen=True)
class Ledger:
    """A chain that was checked, as the charges it holds."""

    charges: tuple[Charge, ...]
    head: Head

    def spent(self, account: str) -> int:
        """Nano-epsilon withdrawn from an account so far."""
        return sum(charge.charged for charge in self.charges if charge.account == account)

    def charge_for(self, survey_hash: str, number: int) -> Charge | None:
        """The charge that paid for a round, if one did."""
        found = (item for item in self.charges if (item.survey_hash, item.round) == (survey_hash, number))
        return next(found, None)

    def next_entry(self, charge: Charge, total: int) -> Entry:
        """The link that adds a charge.

        Args:
            charge: What to withdraw.
            total: Nano-epsilon the policy gives the account altogether.

        Raises:
            PolicyError: The account has not enough left.
        """
        require_left(charge.account, total, remaining(total, self.spent(charge.account)), charge.charged)
        return _linked(Head(self.head.seq + 1, self.head.hash), _content(charge))


def charge_of(epsilon: int | Fraction, max_rows_per_person: int) -> int:
    """Nano-epsilon one report per row costs a person of at most `max_rows_per_person` rows, rounded up.

    Args:
        epsilon: Of one report, in nano-nats.
        max_rows_per_person: m, at least 1.
    """
    if epsilon <= 0 or max_rows_per_person < 1:
        raise ConfigurationError("a charge needs a positive epsilon and at least one row per person")
    return ceil(Fraction(epsilon) * max_rows_per_person)


def share_of(total: int, parts: int) -> int:
    """One of `parts` equal shares of an amount in nano-epsilon, rounded down: all of them never exceed it."""
    return total // parts


def remaining(total: int, spent: int) -> int:
    """What is left; 0 where a policy was lowered below what had been spent."""
    return max(total - spent, 0)


def require_left(account: str, total: int, left: int, charged: int) -> None:
    """Refuse a charge that an account cannot pay; all amounts in nano-epsilon.

    Raises:
        PolicyError: It has not enough left.
    """
    if charged > left:
        raise PolicyError(
            f"account '{account}' has {epsilon_text(left)} of {epsilon_text(total)} left, "
            f"and this would charge {epsilon_text(charged)}",
            not_done="nothing was charged, stored or sent",
            next_step="take part at a smaller epsilon, or let whoever owns the policy decide on a larger total",
        )


def start_of(store_id: str) -> Head:
    """The head of the empty chain of one store, so that entries of another store do not fit."""
    return Head(0, canonical.digest("ledger", store_id.encode()))


def verify_chain(start: Head, entries: Iterable[Entry]) -> Ledger:
    """The ledger of stored entries, in order.

    Raises:
        IntegrityError: An entry was changed, taken out, put in or moved.
    """
    head, charges = start, list[Charge]()
    for entry in entries:
        if entry != _linked(Head(head.seq + 1, head.hash), entry.content):
            raise _damaged(f"entry {head.seq + 1} of the ledger does not continue the one before it")
        charges.append(_charge(entry))
        head = Head(entry.seq, entry.hash)
    return Ledger(tuple(charges), head)


def verify_reach(start: Head, entries: Sequence[Entry], seen: Head) -> None:
    """Check that a chain still holds the last entry ever seen in it: an older copy would refund budget.

    Raises:
        IntegrityError: It ends before that entry, or has another in its place.
    """
    here = start.hash if seen.seq == 0 else entries[seen.seq - 1].hash if seen.seq <= len(entries) else None
    if here is None:
        raise _damaged(
            f"the ledger ends at entry {len(entries)}, but entry {seen.seq} was written before: it is an older copy"
        )
    if here != seen.hash:
        raise _damaged(f"entry {seen.seq} of the ledger is not the one that was written")


def _linked(place: Head, content: bytes) -> Entry:
    """The entry at place.seq after the entry of hash place.hash."""
    material = f"{place.seq}\n{place.hash}\n".encode() + content
    return Entry(place.seq, place.hash, content, canonical.digest(_PURPOSE, material))


def _content(charge: Charge) -> bytes:
    return canonical.encode(
        {
            "account": charge.account,
            "at": charge.at,
            "charged_nano": charge.charged,
            "epsilon_nano": charge.epsilon,
            "factor": charge.factor,
            "kind": charge.kind,
            "max_rows_per_person": charge.max_rows_per_person,
            "round": charge.round,
            "submission": charge.submission,
            "survey": charge.survey,
            "survey_hash": charge.survey_hash,
        }
    )


def _charge(entry: Entry) -> Charge:
    try:
        fields = Fields(canonical.decode(entry.content), "the entry", _KEYS)
        return Charge(
            account=fields.text("account"),
            kind=fields.text("kind"),
            survey_hash=fields.text("survey_hash"),
            survey=fields.text("survey"),
            round=fields.integer("round"),
            epsilon=checked_nano(fields.integer("epsilon_nano")),
            max_rows_per_person=fields.integer("max_rows_per_person"),
            factor=fields.integer("factor"),
            charged=fields.integer("charged_nano"),
            submission=fields.text("submission"),
            at=fields.text("at"),
        )
    except (ConfigurationError, IntegrityError):
        raise _damaged(f"entry {entry.seq} of the ledger is not one this version can read") from None


def _damaged(what: str) -> IntegrityError:
    return IntegrityError(
        what,
        not_done="nothing was charged or drawn; spending is stopped until the ledger is whole",
        next_step="put the newest copy of the agent's store back; keep the damaged one to find out what happened to it",
    )
