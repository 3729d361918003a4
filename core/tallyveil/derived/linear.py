"""Linear statistics of an estimate: Σ w_v·ĉ_v over all its parts, with error and bounds.

Not here: what is done with one law and tally (`forms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from tallyveil.derived.coefficients import Coefficients, Number
from tallyveil.derived.forms import form_of
from tallyveil.derived.parts import Part, bounds_of_sum
from tallyveil.derived.statistic import Statistic
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.mechanisms.laplace_law import LaplaceLaw

LEVEL = 0.95


class LinearStatistics:
    """Any number of linear statistics of one estimate; what they share is worked out once.

    Args:
        estimate: The estimate.
    """

    def __init__(self, estimate: Estimate) -> None:
        laws = estimate.parts
        self.size = laws[0][0].domain_size
        self.records = sum(law.total(tally) for law, tally in laws)
        """n; an estimate unless `records_known`."""
        self.records_known = not any(isinstance(law, LaplaceLaw) and not law.counted for law, _ in laws)
        self._forms = [form_of(law, tally) for law, tally in laws]

    def of(self, weights: Coefficients, level: float = LEVEL) -> Statistic:
        """The statistic with these weights."""
        if not 0 < level < 1:
            raise ConfigurationError("a coverage level lies between 0 and 1")
        known, parts = Fraction(0), list[Part]()
        for form in self._forms:
            constant, more = form.parts(weights)
            known += constant
            parts += more
        low, high = bounds_of_sum(parts, level)
        value = sum((part.value for part in parts), known)
        variance = sum((part.variance for part in parts), Fraction(0))
        return Statistic(value, variance, float(known) + low, float(known) + high, level)


def linear(estimate: Estimate, weights: Sequence[Number] | NDArray[Any], level: float = LEVEL) -> Statistic:
    """Σ w_v·c_v, estimated.

    Args:
        estimate: Of the counts c.
        weights: w, shape (K,); floats stand for the binary fractions they are.
        level: Of the bounds, in (0, 1).

    Returns:
        The exact Σ w_v·ĉ_v. Its variance is w'·Cov·w, not a sum of variances: what is disclosed brings none.

    Raises:
        ConfigurationError: Another number of weights than values, one that is not finite, or a level that is none; or
            a domain of more than 4,096 values, where the mechanism's law needs the matrix (cms, hcms, rappor).

    Accuracy: bounds by the exact law of a single cell, and of any set of values under grr and brr; by the normal law
        where draws are many; else by bounds that hold for every truth, and hence are wide.
    """
    statistics = LinearStatistics(estimate)
    return statistics.of(Coefficients.of(weights, statistics.size), level)
