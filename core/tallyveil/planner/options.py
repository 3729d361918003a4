"""A plan: what each mechanism gives, with several bin counts where it bins, and which do not take the parameters.

Not here: which of them to take (`advice`). Mechanisms are those of `tallyveil.survey.MECHANISMS`, asked for their own
laws and guarantees, so that a new one appears by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NANO, NanoEpsilon
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import KIND_WITHIN_BIN, Guarantee
from tallyveil.mechanisms import Mechanism, create
from tallyveil.mechanisms.hash_tables import SEED_BYTES
from tallyveil.planner.errors import bin_errors, mean_relative_error, standard_errors
from tallyveil.planner.needed import epsilon_needed, records_needed
from tallyveil.planner.question import USUAL_BIN_VALUES, Question
from tallyveil.planner.sizes import payload_bytes
from tallyveil.survey import BINNED, MECHANISMS

USUAL_CLEAR_CELL = 10
"""Fewest records in a non-empty cell sent in clear, unless a policy says otherwise."""

_SEED = bytes(SEED_BYTES)
"""Stands for the seed that follows from the survey, which is not made yet."""


@dataclass(frozen=True)
class Candidate:
    """A mechanism and a bin count, not tried yet."""

    mechanism: str
    bins: int

    def make(self, domain_size: int, epsilon: NanoEpsilon) -> Mechanism:
        """The mechanism.

        Raises:
            ConfigurationError: It does not take these parameters.
        """
        return create(
            self.mechanism,
            domain_size=domain_size,
            epsilon=epsilon / NANO,
            bins=self.bins,
            hash_seed=_SEED,
        )


@dataclass(frozen=True, eq=False)
class Option:
    """What one mechanism gives.

    Args:
        mechanism: Its name.
        bins: 1 for those that do not bin.
        guarantee: Kind, text, and what is not protected.
        standard_errors: Of each value's estimate, shape (K,), in records, in the case of the question.
        mape: Expected, a fraction, over values with a count above 0.
        bin_errors: Standard error of a bin's total, root mean square over bins, by bin count; None where not
            worked out.
        bytes_per_department: Payload of the largest department's batch, for one round without dimensions.
        cautions: What an author should know besides.
        epsilon_needed: For the target error at these records; None without one, or if not reachable.
        records_needed: For the target error at this epsilon; likewise.
    """

    mechanism: str
    bins: int
    guarantee: Guarantee
    standard_errors: NDArray[np.float64]
    mape: float
    bin_errors: dict[int, float | None]
    bytes_per_department: int
    cautions: tuple[str, ...]
    epsilon_needed: NanoEpsilon | None
    records_needed: int | None

    @property
    def label(self) -> str:
        """Name, and bins where it bins."""
        return f"{self.mechanism} with {self.bins} bins" if self.bins > 1 else self.mechanism

    @property
    def total_variance(self) -> float:
        """Over all values."""
        return float((self.standard_errors**2).sum())

    @property
    def cell_error(self) -> float:
        """Root mean square of the standard errors, in records."""
        return sqrt(self.total_variance / self.standard_errors.size)


@dataclass(frozen=True)
class Skipped:
    """A mechanism that cannot do this, and why."""

    mechanism: str
    bins: int
    reason: str


@dataclass(frozen=True, eq=False)
class Plan:
    """The answers to one question, in the order of `MECHANISMS`."""

    question: Question
    options: tuple[Option, ...]
    skipped: tuple[Skipped, ...]
    cautions: tuple[str, ...]


def candidates(question: Question) -> tuple[Candidate, ...]:
    """All there is to try."""
    return tuple(
        Candidate(name, bins)
        for name in MECHANISMS
        for bins in ((question.tried_bins or (1,)) if name in BINNED else (1,))
    )


def make_plan(question: Question, advance: Callable[[int], None] = lambda steps: None) -> Plan:
    """Work out every option.

    Args:
        question: What is planned.
        advance: Told how many more candidates are done.
    """
    options, skipped = list[Option](), list[Skipped]()
    for candidate in candidates(question):
        if candidate.mechanism in BINNED and not question.tried_bins:
            reason = f"no bins of at least {USUAL_BIN_VALUES} values fit {question.domain_size} values"
            skipped.append(Skipped(candidate.mechanism, candidate.bins, reason))
        else:
            try:
                options.append(_option(question, candidate))
            except ConfigurationError as error:
                skipped.append(Skipped(candidate.mechanism, candidate.bins, error.what))
        advance(1)
    return Plan(question, tuple(options), tuple(skipped), _cautions(question))


def _option(question: Question, candidate: Candidate) -> Option:
    mechanism = candidate.make(question.domain_size, question.epsilon)
    counts, tried = question.counts(question.records), question.tried_bins
    errors = standard_errors(mechanism, counts, question.departments)
    binnings = tuple(Binning(question.domain_size, bins) for bins in tried)
    found = bin_errors(mechanism, counts, question.departments, binnings)
    needed_epsilon = needed_records = None
    if question.target is not None:
        needed_epsilon = epsilon_needed(
            question, lambda epsilon: candidate.make(question.domain_size, epsilon), question.target
        )
        needed_records = records_needed(question, mechanism, question.target)
    return Option(
        candidate.mechanism,
        candidate.bins,
        mechanism.guarantee,
        errors,
        mean_relative_error(errors, counts),
        dict(zip(tried, found, strict=True)),
        payload_bytes(mechanism.law, question.counts(max(question.shares))),
        _option_cautions(question, mechanism),
        needed_epsilon,
        needed_records,
    )


def _option_cautions(question: Question, mechanism: Mechanism) -> tuple[str, ...]:
    if mechanism.guarantee.kind != KIND_WITHIN_BIN:
        return ()
    cautions, binning = list[str](), mechanism.binning
    if binning.smallest < USUAL_BIN_VALUES:
        cautions.append(
            f"{binning.describe()}: below {USUAL_BIN_VALUES} in a bin, surveys and policies refuse it unless told "
            f"otherwise by name"
        )
    clear = np.add.reduceat(question.counts(1.0), binning.starts)
    filled = clear[clear > 0]
    cells = filled.size * question.departments
    small = sum(int(np.count_nonzero(filled * share < USUAL_CLEAR_CELL)) for share in question.shares)
    if small:
        cautions.append(
            f"{small} of {cells} bins over all departments are expected to hold fewer than {USUAL_CLEAR_CELL} records, "
            "where an agent stops unless its policy says otherwise"
        )
    return tuple(cautions)


def _cautions(question: Question) -> tuple[str, ...]:
    small = sum(share < USUAL_CLEAR_CELL for share in question.shares)
    if not small:
        return ()
    return (
        f"{small} of {question.departments} departments hold fewer than {USUAL_CLEAR_CELL} records, where an agent "
        f"stops unless its policy says otherwise",
    )
