"""Confidence intervals of a true count from a support count, by inverting the law of the support count.

Not here: standard errors (`estimate`). Of n records in a bin, c hold the value; the support count is
Binomial(c, p) + Binomial(n − c, q). The interval holds every integer c whose two tail probabilities at the
observed count both exceed (1 − level)/2, so its coverage is never below the level where the exact law is used.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, sqrt
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ConfigurationError

NORMAL_FROM = 200.0
"""From this n·q·(1 − q) on, the normal law with a continuity correction stands in for the exact one."""


class Chances(Protocol):
    """A record that holds a value supports it with probability p, another one with q < p; exact."""

    @property
    def p(self) -> Fraction: ...

    @property
    def q(self) -> Fraction: ...

    def __hash__(self) -> int: ...


@lru_cache(maxsize=65_536)
def count_interval(support: int, records: int, chances: Chances, level: float) -> tuple[int, int]:
    """Lowest and highest plausible true count in 0..records.

    Args:
        support: Observed support count of the value.
        records: n, records of the value's bin.
        chances: p and q of a record that holds the value, and of another one.
        level: Coverage, in (0, 1).

    Accuracy: coverage ≥ level with the exact law; within 0.5 % of it with the normal one (tested).
    Source: Clopper and Pearson 1934, for a sum of two binomials.
    """
    if not 0 < level < 1:
        raise ConfigurationError("a coverage level lies between 0 and 1")
    tail = (1 - level) / 2
    p, q = float(chances.p), float(chances.q)
    at_least = _normal_at_least if is_nearly_normal(records, chances) else _exact_at_least

    def low_enough(count: int) -> bool:  # P(C ≥ support) rises with the true count
        return at_least(support, count, records, p, q) > tail

    def too_high(count: int) -> bool:  # P(C ≤ support) falls with the true count
        return 1 - at_least(support + 1, count, records, p, q) <= tail

    low = min(_first(low_enough, records), records)
    high = max(_first(too_high, records) - 1, 0)
    return min(low, high), max(low, high)


def is_nearly_normal(records: int, chances: Chances) -> bool:
    """Whether so many records make the support count's law close enough to a normal one, whatever their values."""
    q = float(chances.q)
    return records * q * (1 - q) >= NORMAL_FROM


def normal_quantile(level: float) -> float:
    """z with P(|Z| ≤ z) = level."""
    return NormalDist().inv_cdf((1 + level) / 2)


def normal_interval(centre: Fraction, variance: Fraction, limit: int | None, level: float) -> tuple[float, float]:
    """Bounds of a true count by the normal law around its estimate, within 0 and the limit, if there is one."""
    return _within(centre, normal_quantile(level) * sqrt(variance), limit)


def chebyshev_interval(centre: Fraction, variance: Fraction, limit: int | None, level: float) -> tuple[float, float]:
    """Bounds that hold at the level whatever the estimate's law is, where its variance is at most the one given."""
    return _within(centre, sqrt(variance / Fraction(1 - level)), limit)


def _within(centre: Fraction, reach: float, limit: int | None) -> tuple[float, float]:
    low, high = max(float(centre) - reach, 0.0), max(float(centre) + reach, 0.0)
    return (low, high) if limit is None else (min(low, float(limit)), min(high, float(limit)))


def _first(holds: Callable[[int], bool], records: int) -> int:
    """The smallest count in 0..records at which a monotone condition holds; records + 1 where none does."""
    low, high = 0, records + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _normal_at_least(support: int, count: int, records: int, p: float, q: float) -> float:
    mean = count * p + (records - count) * q
    variance = count * p * (1 - p) + (records - count) * q * (1 - q)
    return erfc((support - 0.5 - mean) / sqrt(2 * variance)) / 2


def _exact_at_least(support: int, count: int, records: int, p: float, q: float) -> float:
    first, kept = _binomial(count, p)
    second, lied = _binomial(records - count, q)
    exceed = np.append(np.cumsum(lied[::-1])[::-1], 0.0)  # exceed[j] = P(lied ≥ second + j)
    needed = support - (first + np.arange(kept.size)) - second
    return float(kept @ exceed[np.clip(needed, 0, lied.size)])


def _binomial(trials: int, chance: float) -> tuple[int, NDArray[np.float64]]:
    """First outcome and probabilities of the outcomes that matter; what is left out weighs below 1e-20."""
    mode = int((trials + 1) * chance)
    reach = ceil(10 * sqrt(trials * chance * (1 - chance))) + 40
    low, high = max(mode - reach, 0), min(mode + reach, trials)
    outcomes = np.arange(low, high, dtype=np.float64)
    steps = np.log((trials - outcomes) / (outcomes + 1)) + np.log(chance / (1 - chance))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    weights = np.exp(logs - logs.max())
    return low, weights / weights.sum()
