"""A derived statistic: a number, its standard error, and bounds of the true one.

Not here: how any is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt


@dataclass(frozen=True)
class Statistic:
    """An estimate of one number, with the perturbation's error only.

    Args:
        exact: The estimate; unbiased where the statistic is linear in counts, outside the bounds of any truth or not.
        variance: Estimate of its variance, never negative.
        low: Lower bound of the true number, no lower than it can be.
        high: Upper bound.
        level: Both bounds hold together with this probability.
    """

    exact: Fraction
    variance: Fraction
    low: float
    high: float
    level: float

    @property
    def value(self) -> float:
        """The estimate as a float."""
        return float(self.exact)

    @property
    def standard_error(self) -> float:
        """Square root of the variance; 0 exactly where nothing of the number was perturbed."""
        return sqrt(self.variance)

    def over(self, divisor: int) -> Statistic:
        """The statistic divided by a positive number that is known exactly."""
        return Statistic(
            self.exact / divisor, self.variance / divisor**2, self.low / divisor, self.high / divisor, self.level
        )

    def shifted(self, by: Fraction) -> Statistic:
        """The statistic with a known number added."""
        return Statistic(self.exact + by, self.variance, self.low + float(by), self.high + float(by), self.level)
