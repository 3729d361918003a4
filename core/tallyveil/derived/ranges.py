"""The number of records in a range of values.

Not here: quantiles, which are read off such numbers (`quantiles`).
"""

from __future__ import annotations

from fractions import Fraction

from tallyveil.derived.coefficients import Coefficients
from tallyveil.derived.linear import LEVEL, LinearStatistics
from tallyveil.derived.statistic import Statistic
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.estimate import Estimate


def range_total(estimate: Estimate | LinearStatistics, first: int, last: int, level: float = LEVEL) -> Statistic:
    """Records whose value lies in first..last, both included.

    The sum of the estimates; or, where n is known and the range holds more than half of the values (or just half, and
    not the first), n less the sum of the others. Both are the same number wherever estimates sum to n (grr, brr,
    brr-sealed, ss). Elsewhere the second one has less error, and none at all for the whole domain. Two ranges that
    make up the domain sum to n.

    Args:
        estimate: Of the counts; `LinearStatistics` of it where many ranges are asked for.
        first: Index of the first value.
        last: Index of the last one.
        level: Of the bounds, in (0, 1).

    Raises:
        ConfigurationError: Not a range of the domain; and as `linear`.
    """
    statistics = LinearStatistics(estimate) if isinstance(estimate, Estimate) else estimate
    size = statistics.size
    if not 0 <= first <= last < size:
        raise ConfigurationError(
            f"a range lies within the domain's indices 0..{size - 1}", not_done="nothing was computed"
        )
    if statistics.records_known and 2 * (last - first + 1) + (first > 0) > size:
        others = statistics.of(Coefficients.of_range(first, last, size, 0, -1), level)
        return others.shifted(Fraction(statistics.records))
    return statistics.of(Coefficients.of_range(first, last, size, 1, 0), level)
