"""The department's own limits: whose data, how much epsilon, what may be collected and in what detail.

Not here: its file (`policy_file`), how many records a clear cell holds (`clear_cells`), what was already spent (the
ledger) and which surveys were approved. No IO.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.epsilon import NanoEpsilon, epsilon_text
from tallyveil.errors import ConfigurationError, PolicyError
from tallyveil.guarantee import KIND_LDP, KIND_WITHIN_BIN, KINDS
from tallyveil.mechanisms import for_survey
from tallyveil.survey import LEAST_BIN_VALUES, Survey

USUAL_MIN_CLEAR_CELL = 10
USUAL_MIN_BIN_VALUES = 4


@dataclass(frozen=True)
class Account:
    """A population with one budget; every collection and query about it draws on it.

    Args:
        name: What collections call it.
        person: Who a person is, in words.
        max_rows_per_person: Rows one person may have at most, m; epsilon counts m times.
        total_epsilon: All that may ever be spent, nano-epsilon.
    """

    name: str
    person: str
    max_rows_per_person: int
    total_epsilon: NanoEpsilon


@dataclass(frozen=True)
class Collection:
    """What may be collected from one attribute of one source.

    Args:
        source: The source's name in the agent's configuration.
        attribute: Its logical name, the survey's attribute.
        account: The account that pays.
        max_epsilon: For one record in one round, nano-epsilon.
        guarantees: The kinds of guarantee allowed.
        min_bin_values: Values in the smallest bin that may be sent in clear.
        min_clear_cell: Records a non-empty clear cell needs.
        min_clear_cell_reason: Why it was lowered below the usual 10.
        dimensions: Attributes that may be sent in clear.
        max_rounds: Rounds one survey may have.
        allow_overlap: Why tables may go that give, with earlier ones over the same people, exact counts of smaller
            groups by subtraction; empty where they may not.
    """

    source: str
    attribute: str
    account: str
    max_epsilon: NanoEpsilon
    guarantees: tuple[str, ...] = (KIND_LDP,)
    min_bin_values: int = USUAL_MIN_BIN_VALUES
    min_clear_cell: int = USUAL_MIN_CLEAR_CELL
    min_clear_cell_reason: str = ""
    dimensions: tuple[str, ...] = ()
    max_rounds: int = 1
    allow_overlap: str = ""

    def __post_init__(self) -> None:
        where = f"the collection of '{self.attribute}' from '{self.source}'"
        unknown = [kind for kind in self.guarantees if kind not in KINDS]
        _require(bool(self.guarantees) and not unknown, f"{where}: guarantees are among {', '.join(map(repr, KINDS))}")
        _require(self.min_bin_values >= LEAST_BIN_VALUES, f"{where}: min_bin_values is never below {LEAST_BIN_VALUES}")
        _require(self.min_clear_cell >= 1 and self.max_rounds >= 1, f"{where}: limits are at least 1")
        _require(
            self.min_clear_cell >= USUAL_MIN_CLEAR_CELL or bool(self.min_clear_cell_reason.strip()),
            f"{where}: a min_clear_cell below {USUAL_MIN_CLEAR_CELL} needs a min_clear_cell_reason",
        )
        _require(
            not self.allow_overlap or bool(self.allow_overlap.strip()), f"{where}: allow_overlap must say a reason"
        )


@dataclass(frozen=True)
class Policy:
    """All of it."""

    accounts: tuple[Account, ...]
    collections: tuple[Collection, ...]

    def __post_init__(self) -> None:
        names = [account.name for account in self.accounts]
        _require(len(set(names)) == len(names), "two accounts of the policy have the same name")
        pairs = [(item.source, item.attribute) for item in self.collections]
        _require(
            len(set(pairs)) == len(pairs),
            "the policy allows one attribute of one source twice: two tables over the same people give exact counts "
            "by subtraction",
        )
        for item in self.collections:
            _require(item.account in names, f"a collection of the policy names an unknown account '{item.account}'")

    def account(self, name: str) -> Account:
        """The account of that name; every collection's account exists.

        Raises:
            PolicyError: There is none.
        """
        for account in self.accounts:
            if account.name == name:
                return account
        raise PolicyError(f"the policy has no account '{name}'", next_step="add it to the policy, if that is right")

    def collection_for(self, survey: Survey, source: str | None = None) -> Collection:
        """The collection a survey falls under.

        Args:
            survey: Looked up by its attribute.
            source: Which source is meant, where several have that attribute.

        Raises:
            PolicyError: The policy allows none, or several and none was named.
        """
        found = [
            item for item in self.collections if item.attribute == survey.attribute and source in (None, item.source)
        ]
        if not found:
            of_source = f" of source '{source}'" if source is not None else ""
            raise PolicyError(
                f"the policy allows no collection of attribute '{survey.attribute}'{of_source}",
                not_done="nothing was read, charged or sent",
                next_step="add a [[collections]] entry to the policy, if your department agrees to it",
            )
        if len(found) > 1:
            names = ", ".join(item.source for item in found)
            raise PolicyError(
                f"the policy allows '{survey.attribute}' from several sources: {names}",
                not_done="nothing was read, charged or sent",
                next_step="name the source",
            )
        return found[0]


def check_survey(policy: Policy, survey: Survey, epsilon_nano: NanoEpsilon, source: str | None = None) -> None:
    """Refuse a survey that asks for more than the policy allows.

    What was already spent, and how many records are in each clear cell, is checked elsewhere.

    Args:
        policy: The department's.
        survey: Whole and approved.
        epsilon_nano: Which of the survey's values the department would use.
        source: Which source is meant, where several have the attribute.

    Raises:
        PolicyError: Naming the limit, its value and the survey's value.
    """
    limits = policy.collection_for(survey, source)
    account = policy.account(limits.account)
    kind = guarantee_kind(survey)
    if epsilon_nano not in survey.epsilons:
        permitted = ", ".join(epsilon_text(nano) for nano in survey.epsilons)
        raise PolicyError(
            f"the survey permits epsilon {permitted}, not {epsilon_text(epsilon_nano)}",
            not_done="nothing was read, charged or sent",
            next_step="choose one of the survey's values",
        )
    _allow(kind in limits.guarantees, "guarantees", ", ".join(map(repr, limits.guarantees)), repr(kind))
    _allow(
        epsilon_nano <= limits.max_epsilon,
        "max_epsilon of one round",
        epsilon_text(limits.max_epsilon),
        epsilon_text(epsilon_nano),
    )
    charge = epsilon_nano * survey.charge_factor * account.max_rows_per_person
    _allow(
        charge <= account.total_epsilon,
        f"total_epsilon of account '{account.name}'",
        epsilon_text(account.total_epsilon),
        f"{epsilon_text(charge)} for one round ({account.max_rows_per_person} rows a person)",
    )
    if kind == KIND_WITHIN_BIN:
        smallest = survey.binning.smallest
        _allow(smallest >= limits.min_bin_values, "min_bin_values", limits.min_bin_values, smallest)
    extra = [dimension.name for dimension in survey.dimensions if dimension.name not in limits.dimensions]
    _allow(not extra, "dimensions", ", ".join(limits.dimensions) or "none", ", ".join(extra))
    _allow(len(survey.rounds) <= limits.max_rounds, "max_rounds", limits.max_rounds, len(survey.rounds))


def guarantee_kind(survey: Survey) -> str:
    """The kind of guarantee a survey's mechanism gives."""
    return for_survey(survey, survey.epsilons[0]).guarantee.kind


def _allow(condition: bool, limit: str, allowed: object, asked: object) -> None:
    if not condition:
        raise PolicyError(
            f"the policy forbids this survey: {limit} is {allowed}, the survey asks for {asked}",
            not_done="nothing was read, charged or sent",
            next_step="ask for a survey within the limit, or change the policy if your department agrees to it",
        )


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ConfigurationError(
            rule, not_done="nothing was read, charged or sent", next_step="correct the policy file"
        )
