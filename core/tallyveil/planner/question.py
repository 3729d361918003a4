"""What is planned: a domain, records, an epsilon, departments, bins to try, and the case errors are worked out for.

Not here: the answers (`options`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from tallyveil.batch import MAX_RECORDS
from tallyveil.domain import MAX_VALUES
from tallyveil.epsilon import NanoEpsilon, checked_nano
from tallyveil.errors import ConfigurationError

USUAL_BIN_VALUES = 4
"""Fewest values in a bin that surveys and policies allow unless told otherwise."""

MAX_DEPARTMENTS = 100_000
_TRIED = (2, 4, 8, 16, 32)
_MOST_TRIED = 3


@dataclass(frozen=True)
class Question:
    """One collection to be planned.

    Args:
        domain_size: K, from 2 to 65,536.
        records: n, over all departments, from 1 to 2^53 − 1.
        epsilon: Of one report.
        shares: Records of each department, real numbers; they sum to n.
        bins: Bin counts to try with mechanisms that bin; empty for usual ones.
        prior: Expected count of each value, in any unit; None for values equally frequent.
        target: The MAPE wanted, as a fraction, above 0; None to ask for none.

    Raises:
        ConfigurationError: One of them is outside what any mechanism can do; which, and why.
    """

    domain_size: int
    records: int
    epsilon: NanoEpsilon
    shares: tuple[float, ...]
    bins: tuple[int, ...] = ()
    prior: tuple[float, ...] | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        _require(
            2 <= self.domain_size <= MAX_VALUES,
            f"a domain has from 2 to {MAX_VALUES} values, so that a histogram of it fits one message; "
            f"this one has {self.domain_size}",
            "check the domain",
        )
        checked_nano(self.epsilon)
        _check_records(self.records)
        departments = len(self.shares)
        _require(
            1 <= departments <= min(self.records, MAX_DEPARTMENTS),
            f"{self.records} records are of 1 to {min(self.records, MAX_DEPARTMENTS)} departments, "
            f"at least one record each; {departments} were asked for",
            "check the departments",
        )
        _require(
            min(self.shares) > 0 and abs(sum(self.shares) - self.records) <= 1e-6 * self.records,
            "the departments' records are above 0 and sum to the number of records",
            "check the departments and the records",
        )
        for number in self.bins:
            _check_bins(self.domain_size, number)
        if self.prior is not None:
            _require(len(self.prior) == self.domain_size, "a prior has a count for each value", "check the prior")
            _require(
                all(isfinite(count) and count >= 0 for count in self.prior) and sum(self.prior) > 0,
                "a prior's counts are 0 or more, and not all 0",
                "check the prior",
            )
        _require(
            self.target is None or (isfinite(self.target) and self.target > 0),
            "a target error is above 0: no perturbation leaves none",
            "write for example 10%",
        )

    @cached_property
    def tried_bins(self) -> tuple[int, ...]:
        """Rising: those asked for, else up to three powers of two that leave at least four values in each bin."""
        if self.bins:
            return tuple(sorted(set(self.bins)))
        fitting = [number for number in _TRIED if number * USUAL_BIN_VALUES <= self.domain_size]
        return tuple(fitting[-_MOST_TRIED:])

    @property
    def departments(self) -> int:
        """How many."""
        return len(self.shares)

    def counts(self, records: float) -> NDArray[np.float64]:
        """The case errors are worked out for, scaled to that many records, shape (K,): real numbers."""
        if self.prior is None:
            return np.full(self.domain_size, records / self.domain_size)
        weights = np.array(self.prior, dtype=np.float64)
        scaled: NDArray[np.float64] = weights / weights.sum() * records
        return scaled

    @property
    def case(self) -> str:
        """That case, in words."""
        if self.prior is None:
            return "no prior: values taken as equally frequent"
        return "as the prior has it, scaled to the records"


def shares_of(records: int, departments: Sequence[int] | int) -> tuple[float, ...]:
    """Records of each department: as listed, or equal shares for that many departments.

    Raises:
        ConfigurationError: Not a number of departments there may be.
    """
    if not isinstance(departments, int):
        return tuple(float(share) for share in departments)
    _check_records(records)
    _require(
        1 <= departments <= MAX_DEPARTMENTS,
        f"a plan is for 1 to {MAX_DEPARTMENTS} departments; {departments} were asked for",
        "check the departments",
    )
    return (records / departments,) * departments


def _check_records(records: int) -> None:
    _require(
        1 <= records <= MAX_RECORDS,
        f"a plan is for 1 to 2^53 − 1 records, the most that tallies count; {records} were asked for",
        "check the records",
    )


def _check_bins(domain_size: int, bins: int) -> None:
    most = domain_size // 2
    _require(
        1 <= bins <= most,
        f"{domain_size} values make from 1 to {most} bins, since a bin of one value would show it; "
        f"{bins} were asked for",
        f"ask for at most {most} bins; {max(domain_size // USUAL_BIN_VALUES, 1)} leave at least "
        f"{min(USUAL_BIN_VALUES, domain_size)} values in each",
    )


def _require(condition: bool, rule: str, next_step: str) -> None:
    if not condition:
        raise ConfigurationError(rule, not_done="nothing was planned or made", next_step=next_step)
