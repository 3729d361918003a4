"""Exact bounds of a probability from how often an event happened, by Clopper and Pearson.

Not here: which event (`search`) and what its bounds say of an epsilon (`measure`).
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

from tallyveil.errors import ConfigurationError, InternalError

_TINY = 1e-300
_PRECISION = 1e-14
_MOST_TERMS = 10_000_000


def clopper_pearson(successes: int, trials: int, tail: float) -> tuple[float, float]:
    """An interval that holds the probability of an event seen `successes` times in `trials` independent ones.

    Args:
        successes: k, from 0 to n.
        trials: n, at least 1.
        tail: The chance, at most, that the lower end is above the probability; and that the upper is below it.

    Returns:
        Lower and upper end; each bisected to 1 part in 10^10 and taken on the side that makes the interval wider.

    Raises:
        ConfigurationError: Not 0 ≤ k ≤ n, n ≥ 1 and 0 < tail < 1/2.

    Source: Clopper, Pearson 1934; P(X ≥ k) = I_p(k, n − k + 1), the regularised incomplete beta function.
    """
    if not (0 <= successes <= trials and trials >= 1 and 0 < tail < 0.5):
        raise ConfigurationError("bounds need 0 ≤ successes ≤ trials, a trial, and a tail between 0 and 1/2")
    low = 0.0 if successes == 0 else _lower(successes, trials, tail)
    high = 1.0 if successes == trials else _upper(successes, trials, tail)
    return low, high


def _lower(successes: int, trials: int, tail: float) -> float:
    """The largest p known to have P(X ≥ k) ≤ tail."""
    low, high = 0.0, successes / trials
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if beta_cdf(middle, successes, trials - successes + 1) <= tail:
            low = middle
        else:
            high = middle
    return low


def _upper(successes: int, trials: int, tail: float) -> float:
    """The smallest p known to have P(X ≤ k) ≤ tail."""
    low, high = successes / trials, 1.0
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if beta_cdf(1 - middle, trials - successes, successes + 1) <= tail:
            high = middle
        else:
            low = middle
    return high


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for a, b > 0 and 0 ≤ x ≤ 1.

    Accuracy: a relative error of about 1e-16 times the largest of the three logarithms it is made of: 1e-6 at 10^9.
    Source: Lentz's continued fraction, which converges quickly below the mean a/(a + b); above it the complement is
        taken.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return front * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            step = c * d
            value *= step
        if abs(step - 1) < _PRECISION:
            return value
    raise InternalError("the incomplete beta function did not converge")


def _away_from_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY
