"""The law of histograms that a department added discrete Laplace noise to.

Not here: drawing the noise (`tallyveil.discrete_laplace`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.batch import MAX_RECORDS
from tallyveil.discrete_laplace import half_width, variance
from tallyveil.mechanisms.blocks import check_matrix_size
from tallyveil.mechanisms.law import require_possible
from tallyveil.mechanisms.tally import Tally

LARGEST = MAX_RECORDS // 2
"""No count's size reaches this."""


@dataclass(frozen=True)
class LaplaceCell:
    """A count with the noise of one or more histograms.

    Args:
        support: The noisy count.
        histograms: How many were added up.
        law: Their law.
        limit: n, or None where it is not told.
    """

    support: int
    histograms: int
    law: LaplaceLaw
    limit: int | None

    @property
    def corrected(self) -> Fraction:
        """The noisy count itself: the noise has mean 0."""
        return Fraction(self.support)

    @property
    def variance(self) -> Fraction:
        """Of the noise, whatever the truth."""
        return self.histograms * self.law.noise_variance

    @property
    def nearly_normal(self) -> bool:
        """Never: the law of the sum is known exactly."""
        return False

    def interval(self, level: float) -> tuple[float, float]:
        """By the exact law of the noise's sum."""
        reach = half_width(self.law.scale, self.histograms, level)
        top = inf if self.limit is None else float(self.limit)
        low, high = float(self.support - reach), float(self.support + reach)
        return min(max(low, 0.0), top), min(max(high, 0.0), top)


@dataclass(frozen=True)
class LaplaceLaw:
    """Independent noise on each count, P(x) in proportion to exp(−|x|/t).

    Args:
        domain_size: K.
        scale: t: sensitivity over epsilon.
        counted: Whether n is told beside the histogram.
    """

    domain_size: int
    scale: Fraction
    counted: bool
    signed: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        """K."""
        return self.domain_size

    @cached_property
    def noise_variance(self) -> Fraction:
        """Of one count of one histogram."""
        return variance(self.scale)

    def check(self, tally: Tally) -> None:
        """Any count may come from any histogram; n is told or not, as agreed."""
        require_possible(tally.counts.shape == (self.domain_size,))
        require_possible(int(np.abs(tally.counts).max()) < LARGEST)
        require_possible(self.counted or tally.records == 0)

    def total(self, tally: Tally) -> int:
        """n; where it is not told, the sum of the noisy counts."""
        return tally.records if self.counted else int(tally.counts.sum())

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """The noisy counts."""
        return tally.counts

    def cells(self, tally: Tally) -> Sequence[LaplaceCell]:
        """One for each value."""
        limit = tally.records if self.counted else None
        return [LaplaceCell(int(count), tally.histograms, self, limit) for count in tally.counts]

    def corrected(self, tally: Tally) -> NDArray[np.float64]:
        """The noisy counts, shape (K,)."""
        return tally.counts.astype(np.float64)

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Of each count of one histogram, whatever the truth, shape (K,)."""
        return np.full(np.shape(counts), float(self.noise_variance))

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Diagonal: the noise of each count is its own."""
        check_matrix_size(self.domain_size)
        return np.diag(self.variance(counts))

    @property
    def parameters(self) -> tuple[dict[str, object], ...]:
        """The noise's scale, exactly."""
        return ({"noise_scale": [self.scale.numerator, self.scale.denominator]},)
