"""How far estimates lie from the truth on average, computed from their laws without a draw.

Not here: simulation (`trials`).
"""

from __future__ import annotations

from math import ceil, log2, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms import Mechanism, Tally
from tallyveil.mechanisms.law import SupportCell

MEAN_OF_NORMAL_SIZE = sqrt(2 / pi)
"""E|X| of a standard normal X."""


def mean_errors(mechanism: Mechanism, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """E|estimate − truth| of each count, in records, were these the true counts, shape (K,).

    Accuracy: exact, within rounding, where a support count is a sum of two binomials (grr, brr, ss); elsewhere
        (brr-sealed) errors are taken for normal, with their exact variance.
    """
    errors = MEAN_OF_NORMAL_SIZE * np.sqrt(mechanism.variance(counts))
    for index, cell in enumerate(mechanism.law.cells(Tally(int(counts.sum()), counts))):
        if isinstance(cell, SupportCell):
            p, q = float(cell.chances.p), float(cell.chances.q)
            errors[index] = mean_deviation(int(counts[index]), cell.records, p, q) / (p - q)
    return errors


def mean_deviation(holders: int, records: int, p: float, q: float) -> float:
    """E|C − E C| of C = Bin(holders, p) + Bin(records − holders, q), by Fourier's transform of its law."""
    others = records - holders
    mean = holders * p + others * q
    length = _power_of_two(24 * sqrt(holders * p * (1 - p) + others * q * (1 - q)) + 64)
    turn = np.exp(-2j * pi * np.arange(length // 2 + 1) / length)
    law = np.fft.irfft((1 - p + p * turn) ** holders * (1 - q + q * turn) ** others, n=length)
    away = (np.arange(length) - mean + length / 2) % length - length / 2  # the law is wrapped round far outside
    return float(law @ np.abs(away))


def mean_size_of_noise(scale: float, copies: int = 1) -> float:
    """E|S| of the sum of so many discrete Laplace draws, P(x) in proportion to exp(−|x|/scale), likewise."""
    length = _power_of_two(60 * scale * sqrt(copies) + 64)
    places = np.minimum(np.arange(length), length - np.arange(length)).astype(np.float64)
    single = np.exp(-places / scale)
    law = np.fft.irfft(np.fft.rfft(single / single.sum()) ** copies, n=length)
    return float(law @ places)


def _power_of_two(least: float) -> int:
    return 1 << ceil(log2(least))
