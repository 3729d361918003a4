"""Unbiased estimates of true counts from tallies, with exact errors.

Not here: which tallies belong together (the aggregator's strata) and how they are published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import PeerError
from tallyveil.mechanisms.interval import normal_interval
from tallyveil.mechanisms.law import Cell, Law
from tallyveil.mechanisms.tally import Tally


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated true counts of the K values, in records; independent parts add up.

    Args:
        parts: Laws with the tally each corrects; one part for one epsilon.
    """

    parts: tuple[tuple[Law, Tally], ...]

    @cached_property
    def _columns(self) -> tuple[tuple[Cell, ...], ...]:
        """For each value its cell in every part."""
        return tuple(zip(*(law.cells(tally) for law, tally in self.parts), strict=True))

    @cached_property
    def exact(self) -> tuple[Fraction, ...]:
        """ĉ_v = (C_v − n·q)/(p − q) as rationals; where bins are disclosed, each bin sums to its n exactly."""
        return tuple(sum((cell.corrected for cell in column), Fraction(0)) for column in self._columns)

    @cached_property
    def frequency(self) -> NDArray[np.float64]:
        """Unbiased estimates, negative ones included, shape (K,)."""
        return _floats(self.exact)

    @cached_property
    def exact_variance(self) -> tuple[Fraction, ...]:
        """Unbiased estimate of each estimate's variance as rationals; never negative, whatever the counts."""
        return tuple(sum((cell.variance for cell in column), Fraction(0)) for column in self._columns)

    @cached_property
    def variance(self) -> NDArray[np.float64]:
        """Unbiased estimate of each estimate's variance, shape (K,); never negative."""
        return _floats(self.exact_variance)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Square root of `variance`, shape (K,), in records; the perturbation's error only."""
        return np.sqrt(self.variance)

    def covariance(self) -> NDArray[np.float64]:
        """Unbiased estimate of the estimates' covariance, shape (K, K); its diagonal is `variance`."""
        parts = [law.covariance(plausible_counts(law, tally)) for law, tally in self.parts]
        total: NDArray[np.float64] = np.sum(parts, axis=0)
        np.fill_diagonal(total, self.variance)  # which knows n and the number of histograms
        return total

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of the true counts, each shape (K,), within 0..n of the cell.

        One part: its support count's law is inverted (`count_interval`). Several parts with different epsilons:
        those with many records are joined by the normal law around their sum; the bounds of this and of each
        remaining part are added, each at the level that lets all of them miss no more often than asked.
        """
        array = np.array([_bounds(column, level) for column in self._columns], dtype=np.float64)
        return array[:, 0], array[:, 1]

    def __add__(self, other: Estimate) -> Estimate:
        if len(self.exact) != len(other.exact):
            raise PeerError("estimates of different domains do not add up", not_done="they were not added")
        return Estimate(self.parts + other.parts)


def estimate_of(law: Law, tally: Tally) -> Estimate:
    """The estimate of one tally.

    Raises:
        PeerError: No reports can have made the tally.
    """
    law.check(tally)
    return Estimate(((law, tally),))


def plausible_counts(law: Law, tally: Tally) -> NDArray[np.float64]:
    """The estimates, shifted by one amount so that they sum to n, shape (K,): what variances are worked out at.

    Where estimates need not sum to n (bits, hashes), their sum strays far from it at large K, and with it any error
    that is linear in n. The shift is 0 on average.
    """
    estimates = _floats(cell.corrected for cell in law.cells(tally))
    shift = (law.total(tally) - float(estimates.sum())) / estimates.size
    return estimates + shift


def _bounds(cells: Sequence[Cell], level: float) -> tuple[float, float]:
    """Bounds of the sum of the cells' true counts; Bonferroni's inequality holds where no normal law may."""
    filled = [cell for cell in cells if cell.limit != 0]
    joined = [cell for cell in filled if cell.nearly_normal]
    apart = [cell for cell in filled if not cell.nearly_normal]
    if len(joined) < 2:
        joined, apart = [], filled
    share = 1 - (1 - level) / max(len(apart) + bool(joined), 1)
    bounds = [cell.interval(share) for cell in apart]
    if joined:
        limits = [cell.limit for cell in joined]
        limit = None if None in limits else sum(limit or 0 for limit in limits)
        bounds.append(
            normal_interval(
                sum((cell.corrected for cell in joined), Fraction(0)),
                sum((cell.variance for cell in joined), Fraction(0)),
                limit,
                share,
            )
        )
    return float(sum(low for low, _ in bounds)), float(sum(high for _, high in bounds))


def _floats(values: Iterable[Fraction]) -> NDArray[np.float64]:
    return np.array([float(value) for value in values])
