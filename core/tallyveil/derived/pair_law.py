"""The variance of a linear statistic where it follows from p, q and two pair probabilities, in K steps, exactly.

Not here: which laws these are (`forms`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tallyveil.derived.coefficients import Coefficients


def least_variance(records: int, each: NDArray[np.float64]) -> Fraction:
    """What the least variable truth brings: stated where few reports of olh or hr give an estimate that is not above 0.

    Without it such a statistic would seem to be known exactly.
    """
    return records * Fraction(max(float(each.min()), 0.0))


@dataclass(frozen=True)
class PairLaw:
    """p, q, and the covariances of two supports of one report: own value with another, and two others."""

    p: Fraction
    q: Fraction
    near: Fraction
    far: Fraction

    @property
    def scale(self) -> float:
        """p − q."""
        return float(self.p - self.q)

    def estimated(self, weights: Coefficients, counts: NDArray[np.int64], records: int) -> tuple[Fraction, Fraction]:
        """Σ w·ĉ, and w'·Cov·w at the estimates: linear in the truth, hence unbiased; both exact.

        w'·Cov·w = [a·Σ w²c + 2(near − far)·W·Σ w·c + n·q(1−q)·Σ w² + n·far·(W² − Σ w²)]/(p − q)², with
        a = p(1−p) − q(1−q) − 2(near − far) and W = Σ w.
        """
        p, q, n, pull = self.p, self.q, records, self.near - self.far
        supported, squared = weights.sums(counts)
        total, squares = weights.total, weights.squares
        value = (supported - n * q * total) / (p - q)
        of_squares = (squared - n * q * squares) / (p - q)
        variance = (
            (p * (1 - p) - q * (1 - q) - 2 * pull) * of_squares
            + 2 * pull * total * value
            + n * q * (1 - q) * squares
            + n * self.far * (total**2 - squares)
        ) / (p - q) ** 2
        return value / weights.denominator, variance / weights.denominator**2

    def by_truth(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The variance that one record of each value brings, shape (K,)."""
        p, q, far, pull = (float(item) for item in (self.p, self.q, self.far, self.near - self.far))
        total, squares = float(weights.sum()), float((weights**2).sum())
        own = (p * (1 - p) - q * (1 - q) - 2 * pull) * weights**2 + 2 * pull * total * weights
        result: NDArray[np.float64] = (own + q * (1 - q) * squares + far * (total**2 - squares)) / self.scale**2
        return np.maximum(result, 0.0)
