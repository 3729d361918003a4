"""Unbiased estimates of true counts from tallies, with exact errors.

Not here: which tallies belong together (the aggregator's strata) and how they are published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import PeerError
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.interval import count_interval, is_nearly_normal, normal_quantile
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Weights


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated true counts of the K values, in records; independent parts add up.

    Args:
        parts: Channels with the tally each corrects; one part for one epsilon.
    """

    parts: tuple[tuple[Blocks, Tally], ...]

    @cached_property
    def exact(self) -> tuple[Fraction, ...]:
        """ĉ_v = (C_v − n·q)/(p − q) as rationals, n the records of v's bin; each bin sums to its n exactly."""
        return tuple(
            sum(column, Fraction(0)) for column in zip(*(_corrected(*part) for part in self.parts), strict=True)
        )

    @cached_property
    def frequency(self) -> NDArray[np.float64]:
        """Unbiased estimates, negative ones included, shape (K,)."""
        return _floats(self.exact)

    @cached_property
    def exact_variance(self) -> tuple[Fraction, ...]:
        """Unbiased estimate of each estimate's variance as rationals; never negative, whatever the counts."""
        return tuple(
            sum(column, Fraction(0)) for column in zip(*(_variance(*part) for part in self.parts), strict=True)
        )

    @cached_property
    def variance(self) -> NDArray[np.float64]:
        """Unbiased estimate of each estimate's variance, shape (K,); never negative."""
        return _floats(self.exact_variance)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Square root of `variance`, shape (K,), in records; the perturbation's error only."""
        return np.sqrt(self.variance)

    def covariance(self) -> NDArray[np.float64]:
        """Unbiased estimate of the estimates' covariance, shape (K, K)."""
        parts = [blocks.covariance(_floats(_corrected(blocks, tally))) for blocks, tally in self.parts]
        total: NDArray[np.float64] = np.sum(parts, axis=0)
        return total

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of the true counts, each shape (K,), within 0..records of the bin.

        One part: its support count's law is inverted (`count_interval`). Several parts with different epsilons:
        those with many records are joined by the normal law around their sum; the bounds of this and of each
        remaining part are added, each at the level that lets all of them miss no more often than asked.
        """
        columns = zip(*(_cells(*part) for part in self.parts), strict=True)
        array = np.array([_bounds(column, level) for column in columns], dtype=np.float64)
        return array[:, 0], array[:, 1]

    def __add__(self, other: Estimate) -> Estimate:
        if len(self.exact) != len(other.exact):
            raise PeerError("estimates of different domains do not add up", not_done="they were not added")
        return Estimate(self.parts + other.parts)


def estimate_of(blocks: Blocks, tally: Tally) -> Estimate:
    """The estimate of one tally.

    Raises:
        PeerError: The tally has another number of values than the domain.
    """
    if tally.counts.shape != (blocks.binning.domain_size,):
        raise PeerError("a tally does not have one count per value of the domain", not_done="nothing was estimated")
    return Estimate(((blocks, tally),))


def _corrected(blocks: Blocks, tally: Tally) -> list[Fraction]:
    result: list[Fraction] = []
    for weights, block in _by_bin(blocks, tally):
        expected_lies, scale = sum(block) * weights.lie, weights.keep - weights.lie
        result.extend(Fraction(count * weights.total - expected_lies, scale) for count in block)
    return result


def _variance(blocks: Blocks, tally: Tally) -> list[Fraction]:
    result: list[Fraction] = []
    for weights, block in _by_bin(blocks, tally):
        records, scale = sum(block), (weights.keep - weights.lie) ** 2
        keep_spread = weights.keep * (weights.total - weights.keep)
        lie_spread = weights.lie * (weights.total - weights.lie)
        for count in block:
            holders = Fraction(count * weights.total - records * weights.lie, weights.keep - weights.lie)
            result.append((holders * keep_spread + (records - holders) * lie_spread) / scale)
    return result


@dataclass(frozen=True)
class _Cell:
    """One value in one part: what its support count says about its true count."""

    support: int
    records: int
    weights: Weights
    corrected: Fraction
    variance: Fraction


def _cells(blocks: Blocks, tally: Tally) -> Iterator[_Cell]:
    estimates = zip(_corrected(blocks, tally), _variance(blocks, tally), strict=True)
    for weights, block in _by_bin(blocks, tally):
        records = sum(block)
        for support in block:
            yield _Cell(support, records, weights, *next(estimates))


def _bounds(cells: Sequence[_Cell], level: float) -> tuple[float, float]:
    """Bounds of the sum of the cells' true counts; Bonferroni's inequality holds where no normal law may."""
    joined = [cell for cell in cells if is_nearly_normal(cell.records, cell.weights)]
    if len(joined) < 2:
        joined = []
    apart = [cell for cell in cells if cell.records and cell not in joined]
    share = 1 - (1 - level) / max(len(apart) + bool(joined), 1)
    bounds: list[tuple[float, float]] = [
        count_interval(cell.support, cell.records, cell.weights, share) for cell in apart
    ]
    if joined:
        centre, records = float(sum(cell.corrected for cell in joined)), float(sum(cell.records for cell in joined))
        reach = normal_quantile(share) * sqrt(sum(cell.variance for cell in joined))
        bounds.append((min(max(centre - reach, 0.0), records), min(max(centre + reach, 0.0), records)))
    return sum(low for low, _ in bounds), sum(high for _, high in bounds)


def _by_bin(blocks: Blocks, tally: Tally) -> Iterator[tuple[Weights, list[int]]]:
    counts = [int(count) for count in tally.counts]
    for start, size, weights in zip(blocks.binning.starts, blocks.binning.sizes, blocks.weights, strict=True):
        yield weights, counts[int(start) : int(start + size)]


def _floats(values: Iterable[Fraction]) -> NDArray[np.float64]:
    return np.array([float(value) for value in values])
