"""Independent parts of a linear statistic: what each says of its true value, and the bounds of their sum.

Not here: how a law and its tally become parts (`forms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from tallyveil.derived.bounds import bounded_reach, laplace_excess, laplace_reach
from tallyveil.derived.coefficients import Coefficients
from tallyveil.mechanisms.interval import normal_quantile
from tallyveil.mechanisms.law import Cell

LARGEST_EXCESS = 0.15
"""Of kurtosis: up to it a sum of Laplace noise leaves the normal law's 95 % bounds in at most 5.2 % of all draws."""


class Part(Protocol):
    """One part, independent of the others."""

    @property
    def value(self) -> Fraction:
        """Unbiased."""
        ...

    @property
    def variance(self) -> Fraction:
        """Unbiased estimate of the value's."""
        ...

    @property
    def limits(self) -> tuple[float, float]:
        """No truth lies outside of these."""
        ...

    @property
    def nearly_normal(self) -> bool:
        """Whether the value's law is close enough to a normal one."""
        ...

    def interval(self, level: float) -> tuple[float, float]:
        """Bounds of the part's true value at that coverage."""
        ...


@dataclass(frozen=True)
class Bounded:
    """A sum of independent contributions that are bounded.

    Args:
        value: Unbiased.
        variance: Unbiased estimate of the value's.
        limits: Of the true value.
        nearly_normal: See `Part`.
        largest_variance: No truth gives a larger one.
        step: No contribution's ends lie further apart.
        spread: Σ of the squares of those distances.
    """

    value: Fraction
    variance: Fraction
    limits: tuple[float, float]
    nearly_normal: bool
    largest_variance: float
    step: float
    spread: float

    def interval(self, level: float) -> tuple[float, float]:
        """By the normal law, or by bounds that hold for every truth."""
        if self.nearly_normal:
            reach = normal_quantile(level) * float(self.variance) ** 0.5
        else:
            reach = bounded_reach(self.largest_variance, self.step, self.spread, level)
        return clipped(self.value, reach, self.limits)


@dataclass(frozen=True)
class Scaled:
    """One cell of an estimate, times a weight: its bounds are the cell's own.

    Args:
        cell: The cell.
        scale: The weight.
    """

    cell: Cell
    scale: Fraction

    @property
    def value(self) -> Fraction:
        return self.scale * self.cell.corrected

    @property
    def variance(self) -> Fraction:
        return self.scale**2 * self.cell.variance

    @property
    def limits(self) -> tuple[float, float]:
        top = float("inf") if self.cell.limit is None else float(self.cell.limit)
        return _ordered(0.0, top * float(self.scale))

    @property
    def nearly_normal(self) -> bool:
        return self.cell.nearly_normal

    def interval(self, level: float) -> tuple[float, float]:
        low, high = self.cell.interval(level)
        return _ordered(low * float(self.scale), high * float(self.scale))


@dataclass(frozen=True)
class Several:
    """Cells of one estimate whose joint law is known by its covariance alone.

    Args:
        cells: Each with its weight, which is not 0.
        variance: Estimate of the sum's.
        limits: Of the true sum.
    """

    cells: tuple[Scaled, ...]
    variance: Fraction
    limits: tuple[float, float]

    @property
    def value(self) -> Fraction:
        return sum((cell.value for cell in self.cells), Fraction(0))

    @property
    def nearly_normal(self) -> bool:
        return all(cell.nearly_normal for cell in self.cells)

    def interval(self, level: float) -> tuple[float, float]:
        """By the normal law; else the cells' bounds added, each at the level that lets all of them hold together."""
        low, high = self.limits
        if self.nearly_normal:
            return clipped(self.value, normal_quantile(level) * float(self.variance) ** 0.5, (low, high))
        share = 1 - (1 - level) / len(self.cells)
        bounds = [cell.interval(share) for cell in self.cells]
        sums = sum(bound[0] for bound in bounds), sum(bound[1] for bound in bounds)
        return max(sums[0], low), min(sums[1], high)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Weighted discrete Laplace noise on a histogram.

    Args:
        value: Weighted sum of the noisy counts.
        variance: Of the noise.
        limits: Of the true value.
        scale: t.
        histograms: Noise of so many is in each count.
        weights: The weights.
    """

    value: Fraction
    variance: Fraction
    limits: tuple[float, float]
    scale: Fraction
    histograms: int
    weights: Coefficients

    @property
    def nearly_normal(self) -> bool:
        return laplace_excess(self.scale, self.histograms, self.weights.floats) <= LARGEST_EXCESS

    def interval(self, level: float) -> tuple[float, float]:
        if self.nearly_normal:
            reach = normal_quantile(level) * float(self.variance) ** 0.5
        else:
            reach = laplace_reach(self.scale, self.histograms, self.weights.floats, level)
        return clipped(self.value, reach, self.limits)


def bounds_of_sum(parts: Sequence[Part], level: float) -> tuple[float, float]:
    """Bounds of the sum of the parts' true values.

    Two or more nearly normal parts are joined by the normal law around their sum; the bounds of this and of each
    remaining part are added, each at the level that lets all of them miss no more often than asked (Bonferroni).
    """
    joined = [part for part in parts if part.nearly_normal]
    if len(joined) < 2:
        joined = []
    apart = [part for part in parts if not joined or not part.nearly_normal]
    share = 1 - (1 - level) / max(len(apart) + bool(joined), 1)
    bounds = [part.interval(share) for part in apart]
    if joined:
        value = sum((part.value for part in joined), Fraction(0))
        variance = sum((part.variance for part in joined), Fraction(0))
        limits = sum(part.limits[0] for part in joined), sum(part.limits[1] for part in joined)
        bounds.append(clipped(value, normal_quantile(share) * float(variance) ** 0.5, limits))
    return sum(low for low, _ in bounds), sum(high for _, high in bounds)


def clipped(value: Fraction, reach: float, limits: tuple[float, float]) -> tuple[float, float]:
    """value ± reach, within the limits."""
    low, high = limits
    return min(max(float(value) - reach, low), high), max(min(float(value) + reach, high), low)


def _ordered(one: float, other: float) -> tuple[float, float]:
    return min(one, other), max(one, other)
