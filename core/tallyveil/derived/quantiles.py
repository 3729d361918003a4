"""Quantiles of an ordered attribute, by inverting its cumulative counts.

Not here: quantiles asked of departments directly, with noise of their own (queries).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from tallyveil.derived.coefficients import Coefficients
from tallyveil.derived.linear import LEVEL, LinearStatistics
from tallyveil.derived.ranges import range_total
from tallyveil.derived.statistic import Statistic
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.estimate import Estimate


@dataclass(frozen=True)
class Quantile:
    """A value of the domain, and the values between which the true one lies; indices 0..K−1.

    Args:
        share: q: the smallest value up to which at least this share of the records lies.
        index: The estimate.
        low: No smaller value is the true one, but by chance.
        high: No larger one is.
        level: Both hold together with this probability.
    """

    share: Fraction
    index: int
    low: int
    high: int
    level: float


def quantile(estimate: Estimate, share: float | Fraction, level: float = LEVEL) -> Quantile | None:
    """The smallest value at which the running maximum of the estimated cumulative counts reaches share·n.

    Bounds: with [L_v, H_v] the bounds of the records up to v, the first v with H_v ≥ share·n, and the one after the
    last v with L_v < share·n. Only the bounds at the true quantile and just below it have to hold for that, so bounds
    of one count at a time are enough: no band over all values is needed.

    Args:
        estimate: Of the counts.
        share: q, in (0, 1); 1/2 for the median. A float stands for the binary fraction it is.
        level: Of the bounds, in (0, 1).

    Returns:
        The quantile; None where there are no records, or none can be seen for noise.

    Raises:
        ConfigurationError: A share or level that is none; and as `linear`.
    """
    if not 0 < share < 1:
        raise ConfigurationError("a quantile's share lies between 0 and 1", not_done="nothing was computed")
    statistics = LinearStatistics(estimate)
    if statistics.records <= 0:
        return None
    wanted, size = Fraction(share), statistics.size

    @cache
    def excess(place: int) -> Statistic:
        """Records up to the place, less share·n: at the quantile the first that is not negative."""
        if statistics.records_known:
            return range_total(statistics, 0, place, level).shifted(-wanted * statistics.records)
        q, whole = wanted.numerator, wanted.denominator
        weights = Coefficients.of_range(0, place, size, whole - q, -q)
        return statistics.of(Coefficients(weights.numbers, whole), level)

    places = range(size)
    index = _first((excess(place).exact >= 0 for place in places), size - 1)
    low = _first((excess(place).high >= 0 for place in places), size - 1)
    high = size - _first((excess(place).low < 0 for place in reversed(places)), size)
    return Quantile(wanted, index, min(low, index), max(min(high, size - 1), index), level)


def _first(holds: Iterable[bool], otherwise: int) -> int:
    return next((place for place, one in enumerate(holds) if one), otherwise)
