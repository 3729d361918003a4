"""The law of a sum of independent draws of one scale.

Not here: the law of one (`law`). The characteristic function of one draw of variance V is 1/(1 + V·(1 − cos θ)), so
that of m is its m-th power, and Fourier's transform gives their law without a convolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import acosh, ceil, log1p, pi, sqrt

import numpy as np
from numpy.typing import NDArray

LARGEST_DEVIATION = 2.0**14
"""In steps. A sum with a larger one is read off the sum that has this one, enlarged: at that size, how fine the steps
are no longer shows in the law's form."""

_NEGLIGIBLE = 38.0
"""Chance e^-38 on either side, below 1e-16, is left out."""


@dataclass(frozen=True, eq=False)
class SumLaw:
    """P(|S| ≥ k) for a sum S, in steps of its own.

    Args:
        at_least: Entry k is P(|S| ≥ k), shape (steps,), from 1 down to less than 1e-15.
        stretch: How many whole numbers one step stands for, at least 1.
    """

    at_least: NDArray[np.float64]
    stretch: float

    def tail(self, reach: int) -> float:
        """P(|S| > reach), for reach ≥ 0; between two steps by a straight line."""
        place = (reach + 0.5) / self.stretch + 0.5
        if place >= self.at_least.size - 1:
            return 0.0
        step = int(place)
        share = place - step
        return float((1 - share) * self.at_least[step] + share * self.at_least[step + 1])

    def half_width(self, miss: float) -> int:
        """A w with P(|S| > w) ≤ miss: the smallest, where a step is one whole number; a step too many at most, else."""
        step = int(np.searchsorted(-self.at_least, -miss))
        return ceil(self.stretch * (step - 0.5) - 0.5)


@lru_cache(maxsize=16)
def sum_law(variance: float, copies: int) -> SumLaw:
    """The law of a sum of so many draws, each of that variance; both above 0.

    Accuracy: the part left out weighs below 1e-15, rounding moves no probability by 1e-12. With a standard deviation
        above `LARGEST_DEVIATION`, by 1e-8.
    """
    step_variance = min(variance, LARGEST_DEVIATION**2 / copies)
    length = 1 << (2 * _support(step_variance, copies) + 1).bit_length()
    sines = np.sin(np.arange(length // 2 + 1) * (pi / length))
    law = np.fft.irfft(np.exp(-copies * np.log1p(2 * step_variance * sines**2)), n=length)
    at_least = 2 * np.cumsum(np.maximum(law[: length // 2], 0.0)[::-1])[::-1]
    at_least[0] = 1.0
    at_least.flags.writeable = False
    return SumLaw(at_least, sqrt(variance / step_variance))


def _support(variance: float, copies: int) -> int:
    """x with P(S ≥ x) ≤ e^-38 by Chernoff's bound: E e^(uS) = (1 − V·(cosh u − 1))^−m, at a u near the best."""
    share = _NEGLIGIBLE / (copies + _NEGLIGIBLE)
    slope = acosh(1 + share / variance)
    return ceil((_NEGLIGIBLE - copies * log1p(-share)) / slope)
