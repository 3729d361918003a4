"""The exact law of the noise, and of sums of it.

Not here: draws (`sampler`). P(X = x) = tanh(1/2t)·a^|x| with a = e^(−1/t).
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, log1p, tanh

from tallyveil.discrete_laplace.scale import checked_scale
from tallyveil.discrete_laplace.sums import SumLaw, sum_law
from tallyveil.errors import ConfigurationError

_WIDE = Context(prec=60)


def probability(scale: Fraction, value: int) -> float:
    """P(X = value)."""
    rate = _rate(scale)
    return tanh(rate / 2) * exp(-rate * abs(value))


def tail(scale: Fraction, reach: int, copies: int = 1) -> float:
    """P(|S| > reach) for the sum S of so many independent draws; for one draw, 2a^(reach+1)/(1 + a).

    Accuracy: one draw to a part in 10^15; a sum to 1e-12, to 1e-8 where its standard deviation is above 16,384.
    """
    rate = _rate(scale)
    _check_copies(copies)
    if reach < 0:
        return 1.0
    if copies == 0:
        return 0.0
    return exp(_log_tail(rate, reach)) if copies == 1 else _sum(scale, copies).tail(reach)


def within(scale: Fraction, reach: int, copies: int = 1) -> float:
    """P(|S| ≤ reach), as accurate as `tail`."""
    if copies == 1 and reach >= 0:
        return -expm1(_log_tail(_rate(scale), reach))
    return 1 - tail(scale, reach, copies)


def variance(scale: Fraction) -> Fraction:
    """2a/(1 − a)² to sixty digits: the same on every machine."""
    checked_scale(scale)
    a = _WIDE.exp(_WIDE.divide(Decimal(-scale.denominator), Decimal(scale.numerator)))
    root = _WIDE.subtract(Decimal(1), a)
    return Fraction(_WIDE.divide(_WIDE.multiply(Decimal(2), a), _WIDE.multiply(root, root)))


@lru_cache(maxsize=1024)
def half_width(scale: Fraction, copies: int, level: float) -> int:
    """The smallest w for which the sum S of so many independent draws has P(|S| ≤ w) ≥ level.

    Args:
        scale: t.
        copies: Not negative.
        level: Above 0, below 1; of a sum, at most 1 − 1e-12.

    Accuracy: that of `tail`. Where a sum's standard deviation is above 16,384, w is too large by up to 1/16,384 of it.
    """
    rate = _rate(scale)
    _check_copies(copies)
    if not 0 < level < 1:
        raise ConfigurationError("a level lies between 0 and 1", not_done="no half-width was computed")
    if copies == 0:
        return 0
    if copies > 1:
        return _sum(scale, copies).half_width(1 - level)
    # A hair less than the solution, since it may be a whole number that rounding lifts.
    reach = max(ceil((_log_tail(rate, -1) - log1p(-level)) / rate - 1 - 1e-9), 0)
    return reach if within(scale, reach) >= level else reach + 1


def _log_tail(rate: float, reach: int) -> float:
    """ln P(|X| > reach) = −(reach + 1)/t − ln((1 + a)/2)."""
    return -rate * (reach + 1) - log1p(expm1(-rate) / 2)


def _rate(scale: Fraction) -> float:
    """1/t."""
    return 1 / float(checked_scale(scale))


def _sum(scale: Fraction, copies: int) -> SumLaw:
    return sum_law(float(variance(scale)), copies)


def _check_copies(copies: int) -> None:
    if copies < 0:
        raise ConfigurationError("the number of draws in a sum is not negative")
