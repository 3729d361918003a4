"""How surely a statistical test must fail before it fails a build, and the p-values to compare with that.

Not here: what is measured. Each test states its hypothesis and asks ``p_value >= bonferroni(tests)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ALPHA = 1e-6
"""The probability that a correct program fails one statistical test of the suite."""


def bonferroni(tests: int, alpha: float = ALPHA) -> float:
    """The level of each of ``tests`` comparisons at which any fails by chance with at most ``alpha``."""
    return alpha / tests


def binomial_p(successes: int, trials: int, probability: float) -> float:
    """Exact two-sided p-value of ``successes``: the total probability of the outcomes no likelier than it."""
    return float(stats.binomtest(successes, trials, probability).pvalue)


def chi_square_p(
    observed: Sequence[float] | NDArray[np.generic], expected: Sequence[float] | NDArray[np.generic]
) -> float:
    """Upper tail of Pearson's statistic for the counts of cells: cells − 1 degrees of freedom.

    Raises:
        ValueError: The totals of the two differ, or an expected count is below 5, where the law is not chi-square.
    """
    seen, law = np.asarray(observed, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if not np.isclose(seen.sum(), law.sum(), rtol=1e-9) or law.min() < 5:
        raise ValueError("chi-square needs equal totals and at least 5 expected in every cell: merge cells")
    statistic = float(((seen - law) ** 2 / law).sum())
    return float(stats.chi2.sf(statistic, df=seen.size - 1))


def two_sample_z_p(first: float, first_error: float, second: float, second_error: float) -> float:
    """Two-sided p-value that two independent estimates, each with its standard error, are of one quantity."""
    error = sqrt(first_error**2 + second_error**2)
    difference = abs(first - second)
    z = difference / error if error else (inf if difference else 0.0)
    return float(2 * stats.norm.sf(z))
