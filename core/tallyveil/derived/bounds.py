"""How far a sum of independent contributions strays from its mean: bounds that hold for every truth.

Not here: which contributions a law has (`forms`). Each bound holds by itself and depends on no draw, so the least of
them holds, too.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, expm1, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tallyveil.discrete_laplace import half_width

_GRID = np.linspace(0.02, 0.98, 49)


def bounded_reach(variance: float, step: float, spread: float, level: float) -> float:
    """t with P(|S − E S| ≤ t) ≥ level for independent bounded contributions.

    Args:
        variance: At least that of S.
        step: No contribution's ends lie further apart.
        spread: Σ of the squares of those distances.
        level: In (0, 1).

    Source: Chebyshev; Bernstein 1946; Hoeffding 1963 (theorem 2).
    """
    miss = 1 - level
    twice = log(2 / miss)
    share = step * twice / 3
    bernstein = share + sqrt(share**2 + 2 * variance * twice)
    return min(sqrt(variance / miss), bernstein, sqrt(spread * twice / 2))


def laplace_reach(scale: Fraction, copies: int, weights: NDArray[np.float64], level: float) -> float:
    """The same for Σ w·X, every X a sum of `copies` discrete Laplace draws.

    By the sum's exact law where all weights are of one size; else by Chernoff's bound, the least on a grid.
    """
    sizes = np.abs(weights[weights != 0])
    if sizes.size == 0 or copies == 0:
        return 0.0
    largest = float(sizes.max())
    if float(sizes.min()) == largest:
        return largest * half_width(scale, copies * sizes.size, level)
    slopes = _GRID / (float(scale) * largest)
    step = 1 / float(scale)
    odds = exp(-step) / -expm1(-step)
    # ln E e^{λX} = −ln(1 − odds·(e^λ − 1)) − ln(1 + odds·(1 − e^−λ)), odds = a/(1 − a): no digits are lost near λ = 0.
    up, down = (np.expm1(sign * np.outer(slopes, sizes)) for sign in (1, -1))
    logs = -(np.log1p(-odds * up) + np.log1p(-odds * down)).sum(axis=1)
    return float(((copies * logs + log(2 / (1 - level))) / slopes).min())


def laplace_excess(scale: Fraction, copies: int, weights: NDArray[np.float64]) -> float:
    """Excess kurtosis of that sum: how far it is from normal, since it is symmetric. 0 for no noise at all."""
    squares = weights**2
    total = float(squares.sum()) ** 2
    if total == 0 or copies == 0:
        return 0.0
    a = exp(-1 / float(scale))
    return (1 + 4 * a + a * a) / (2 * a) * float((squares**2).sum()) / total / copies
