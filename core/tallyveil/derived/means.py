"""The mean of a numeric attribute.

Not here: a mean asked of departments directly, with noise of its own (queries).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from tallyveil.derived.coefficients import Coefficients, Number, exact_numbers
from tallyveil.derived.linear import LEVEL, LinearStatistics
from tallyveil.derived.statistic import Statistic
from tallyveil.domain import Domain, Integers, Intervals
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.estimate import Estimate

_HALVINGS = 24
"""Of the distance from the estimate to the end of the domain, in the search for a bound."""


def points_of(domain: Domain) -> tuple[Fraction, ...]:
    """The number each value stands for: itself, or its interval's midpoint.

    Raises:
        ConfigurationError: Categories are no numbers.
    """
    if isinstance(domain, Integers):
        return tuple(Fraction(value) for value in range(domain.low, domain.high + 1, domain.step))
    if isinstance(domain, Intervals):
        edges = [Fraction(Decimal(edge)) for edge in domain.edges]
        return tuple((low + high) / 2 for low, high in pairwise(edges))
    raise ConfigurationError("categories have no mean: they are no numbers", not_done="nothing was computed")


def mean(estimate: Estimate, points: Sequence[Number] | NDArray[Any], level: float = LEVEL) -> Statistic | None:
    """The mean of the points over all records.

    m + Σ (x_v − m)·ĉ_v/n with m the mean of the points themselves: Σ x_v·ĉ_v/n wherever estimates sum to n (grr, brr,
    brr-sealed, ss); elsewhere its error does not depend on where the points' zero lies, and is the less for it.

    Where n is not told (noise at the department without a count), Σ x_v·ĉ_v/Σ ĉ_v: its variance by the delta method,
    its bounds are those means at which Σ (x_v − mean)·c_v may still be 0 (Fieller), within the points.

    Args:
        estimate: Of the counts.
        points: The number each value stands for, shape (K,); see `points_of`.
        level: Of the bounds, in (0, 1).

    Returns:
        The mean; None where there are no records, or none can be seen for noise.

    Raises:
        ConfigurationError: As `linear`.
    """
    statistics = LinearStatistics(estimate)
    if statistics.records <= 0:
        return None
    given = Coefficients.of(points, statistics.size)
    middle = Fraction(given.total, given.denominator * statistics.size)
    if statistics.records_known:
        return statistics.of(_less(given, middle), level).over(statistics.records).shifted(middle)
    n = statistics.records
    ratio = middle + statistics.of(_less(given, middle), level).exact / n
    around = statistics.of(_less(given, ratio), level)

    def possible(candidate: Fraction) -> bool:
        found = statistics.of(_less(given, candidate), level)
        return found.low <= 0 <= found.high

    lowest, highest = (Fraction(int(bound), given.denominator) for bound in (given.numbers.min(), given.numbers.max()))
    start = min(max(ratio, lowest), highest)
    low, high = (_last_possible(possible, start, end) for end in (lowest, highest))
    return Statistic(ratio, around.variance / n**2, float(low), float(high), level)


def _less(points: Coefficients, by: Fraction) -> Coefficients:
    """The points less one number."""
    numbers = [int(number) * by.denominator - by.numerator * points.denominator for number in points.numbers]
    return Coefficients(exact_numbers(numbers), points.denominator * by.denominator)


def _last_possible(possible: Callable[[Fraction], bool], start: Fraction, end: Fraction) -> Fraction:
    """The last possible number on the way from one that is to the end."""
    if possible(end):
        return end
    for _ in range(_HALVINGS):
        middle = (start + end) / 2
        start, end = (middle, end) if possible(middle) else (start, middle)
    return end
