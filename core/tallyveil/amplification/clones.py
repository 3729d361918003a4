"""The numerical bound: how far one record's value can move the law of a histogram of reports, at most.

Not here: the search for an epsilon (`statement`). Let R₀ and R₁ be the laws of a report for two values, and
m = |R₀ − R₁|₊/(e^ε − 1), split into the part m₀ where R₀ is the larger and m₁ where R₁ is; both have the mass
r = TV/(e^ε − 1) ≤ 1/(e^ε + 1). Epsilon-LDP gives R₀ = e^ε·m₀ + m₁ + rest, R₁ = m₀ + e^ε·m₁ + the same rest, and
R ≥ m₀ + m₁ for every other value. So each other record is, with probability 2r, a fair coin between m₀ and m₁: a
clone. Whoever is told which reports came from m₀ and m₁ sees (A + Δ, C + 1 − A − Δ) against (A + 1 − Δ, C − A + Δ) with
C ~ Bin(n − 1, 2r), A ~ Bin(C, ½), Δ ~ Bernoulli(e^ε/(e^ε + 1)); a smaller r is that after thinning, so the largest r
bounds every mechanism. For randomised response over two values nothing is lost in this but the telling.

Only +, −, ×, ÷, √ in a fixed order, with exponentials from `decimal`: every machine finds the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, nextafter, sqrt

import numpy as np
from numpy.typing import NDArray

from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms.weights import exp_bounds

_NEGLIGIBLE = 2e-22
"""e^−50, Hoeffding's bound beyond ten standard deviations of a fair coin's count, rounded up."""


@dataclass(frozen=True, eq=False)
class Clones:
    """The law of C, how many of the other records are clones.

    Args:
        growth: e^ε of one report, rounded up.
        counts: Values of C that are looked at, consecutive and rising, shape (m,).
        weights: Their probabilities given that C is one of them, shape (m,).
        left_out: At most the probability that C is none of them.
    """

    growth: float
    counts: NDArray[np.float64]
    weights: NDArray[np.float64]
    left_out: float

    def divergence(self, epsilon: NanoEpsilon) -> float:
        """A bound of sup P(S) − e^ε'·Q(S) over all sets S of histograms, where P and Q differ in one record's value.

        Args:
            epsilon: ε', from 1e-9 to below the epsilon of one report.

        Accuracy: never below the value for the pair of laws above; above it by less than 1e-6 of itself
            up to an epsilon of 8, and by about 1e-3 at 14.
        """
        growth, allowed = self.growth, nextafter(float(exp_bounds(epsilon, digits=40)[0]), 0)
        # P(S|C = c) − e^ε'·Q(S|C = c) is largest for S = "at most x + 1 of the other kind", P/Q being monotone in it
        share = (growth - allowed) / ((growth - 1) * (1 + allowed))
        trials = self.counts
        last = np.ceil((trials + 1) * share) - 1
        start = _fair_coins(int(trials[0]), int(last[0]))
        if start is None:  # the divergence given C falls with C: the first one bounds all
            return self.left_out + _NEGLIGIBLE
        chance, tail, terms = start
        trial, at, moved = trials[:-1], last[:-1], np.diff(last) > 0
        steps = (trial + 1) / (2 * np.where(moved, at + 1, trial + 1 - at))
        exact = chance * np.concatenate(([1.0], np.cumprod(steps)))  # P(Bin(c, ½) = x)
        change = exact[:-1] / 2 * np.where(moved, 1.0, -at / (trial + 1 - at))
        below = np.cumsum(np.concatenate(([tail], change)))  # P(Bin(c, ½) < x)
        travelled = np.cumsum(np.concatenate(([tail], np.abs(change))))
        unit = _rounding(terms + 2 * trials.size)
        gain = (growth - allowed) / (growth + 1) * (1 + unit) + 2**-48 * (1 + allowed)  # the latter where x is off by 1
        given = gain * exact * (1 + unit) - (allowed - 1) * np.maximum(below - unit * travelled, 0)
        return _sum(self.weights * np.maximum(given, 0)) * (1 + unit) + self.left_out


def clones(epsilon: NanoEpsilon, records: int) -> Clones:
    """The law of the number of clones among all records but one, to ten standard deviations and more.

    Args:
        epsilon: Of one report.
        records: n ≥ 1.
    """
    growth = nextafter(float(exp_bounds(epsilon, digits=40)[1]), inf)
    others, chance, odds = records - 1, 2 / (growth + 1), 2 / (growth - 1)
    centre = int(others * chance)
    reach = ceil(10 * sqrt(others * chance * (1 - chance))) + 60
    low, high = max(centre - reach, 0), min(centre + reach, others)
    up = np.arange(centre, high, dtype=np.float64)
    down = np.arange(centre, low, -1, dtype=np.float64)
    falling = np.cumprod(down / ((others - down + 1) * odds))[::-1]
    weights = np.concatenate((falling, [1.0], np.cumprod((others - up) * odds / (up + 1))))
    weights /= _sum(weights)
    below = _beyond(weights[0], low / ((others - low + 1) * odds))
    above = _beyond(weights[-1], (others - high) * odds / (high + 1))
    left_out = (below + above) * (1 + _rounding(weights.size))
    return Clones(growth, np.arange(low, high + 1, dtype=np.float64), weights, left_out)


def _beyond(last: float, ratio: float) -> float:
    """A bound of what follows the last probability, where each is at most `ratio` < 1 times the one before."""
    return float(last) * ratio / (1 - ratio)


def _fair_coins(trials: int, at: int) -> tuple[float, float, int] | None:
    """P(Bin(trials, ½) = at), P(… < at) and how many terms were used; None ten deviations and more below the middle."""
    middle = trials // 2
    low = max(middle - ceil(5 * sqrt(trials)) - 60, 0)
    if at < low:
        return None
    down = np.arange(middle, low, -1, dtype=np.float64)
    chances = np.concatenate(([1.0], np.cumprod(down / (trials - down + 1))))
    half = _sum(chances[1:])
    total = 2 * (1 + half) if trials % 2 else 1 + 2 * half
    return float(chances[middle - at]) / total, _sum(chances[middle - at + 1 :]) / total, chances.size


def _sum(terms: NDArray[np.float64]) -> float:
    """One after the other: numpy's own sum takes an order that depends on the machine."""
    return float(np.cumsum(terms)[-1]) if terms.size else 0.0


def _rounding(steps: int) -> float:
    """A bound of the relative error of products and sums of so many terms, each of a few operations."""
    return 2**-52 * (8.0 * steps + 64)
