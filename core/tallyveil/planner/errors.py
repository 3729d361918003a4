"""Errors to be expected of a mechanism in a stated case: per value, per bin, and relative to the true counts.

Not here: which case (`question`). Perturbation only, as everywhere: not what the register misses or gets wrong.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil.mechanisms import Mechanism
from tallyveil.mechanisms.blocks import Blocks

MAX_MATRIX_VALUES = 2_048
"""Covariances of larger domains are not made here: a plan makes one for each mechanism."""


def standard_errors(mechanism: Mechanism, counts: NDArray[np.float64], departments: int) -> NDArray[np.float64]:
    """Of the summed estimate of each value, were `counts` the truth, shape (K,), in records.

    Perturbed records are pooled over departments; a department's own noise is added once for each of them.
    """
    variance = np.maximum(mechanism.variance(counts), 0.0) * _histograms(mechanism, departments)
    errors: NDArray[np.float64] = np.sqrt(variance)
    return errors


def mean_relative_error(errors: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    """Expected MAPE as a fraction, over values with a true count above 0.

    Accuracy: E|error| is taken as that of a normal law, sd·√(2/π).
    """
    present = counts > 0
    return float((errors[present] / counts[present]).mean() * sqrt(2 / pi))


def bin_errors(
    mechanism: Mechanism, counts: NDArray[np.float64], departments: int, binnings: tuple[Binning, ...]
) -> tuple[float | None, ...]:
    """For each binning the root mean square, over its bins, of the standard error of a bin's total, in records.

    Covariances count: errors within a bin mostly cancel. None where the domain is too large to work it out.
    """
    exact = [_adds_up(mechanism, binning) for binning in binnings]
    if all(exact):
        return (0.0,) * len(binnings)
    if mechanism.domain_size > MAX_MATRIX_VALUES:
        return tuple(0.0 if adds_up else None for adds_up in exact)
    matrix = mechanism.covariance(counts) * _histograms(mechanism, departments)
    return tuple(
        0.0 if adds_up else _root_mean(matrix, binning) for adds_up, binning in zip(exact, binnings, strict=True)
    )


def _adds_up(mechanism: Mechanism, binning: Binning) -> bool:
    """Whether every bin is a union of disclosed ones, whose totals are exact."""
    return isinstance(mechanism.law, Blocks) and set(binning.starts.tolist()) <= set(mechanism.binning.starts.tolist())


def _root_mean(matrix: NDArray[np.float64], binning: Binning) -> float:
    starts = binning.starts
    totals = np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)
    return sqrt(max(float(np.diag(totals).mean()), 0.0))


def _histograms(mechanism: Mechanism, departments: int) -> int:
    return departments if mechanism.at_department else 1
