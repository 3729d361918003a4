"""What raw columns and intervals must satisfy, as lists of what they do not.

Not here: the draws (`tallyveil_bench`). The tests hand the right figures to these, and wrong ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy import stats

from significance import bonferroni
from tallyveil_bench import spread
from tallyveil_bench.coverage import CASES, KINDS, LEAST, MOST, Coverage
from tallyveil_bench.spread import WINDOWS, Spread

FULL_REPEATS = 4_000
LARGEST_OFF = 0.03
"""Of the variance ratio from 1, over `FULL_REPEATS`; proportionally more over fewer."""

MEANS = sum(case.domain_size + WINDOWS + 2 for case in spread.CASES)
"""Comparisons of bias that one run makes: of every cell and contrast of every case."""

SUMS = len(spread.CASES) * (WINDOWS + 2)
SHARES = len(CASES) * len(KINDS) * 2


def faults_of(found: Spread, *, windows_only: bool = False) -> list[str]:
    """Which of "bias", "variance" and "sums" are wrong.

    Args:
        windows_only: Leave out sums in which a few cells outweigh the rest, where their noise is far from normal.
    """
    faults = list[str]()
    if float(2 * stats.norm.sf(found.largest_bias)) < bonferroni(MEANS):
        faults.append("bias")
    if abs(found.ratio - 1) > LARGEST_OFF * sqrt(FULL_REPEATS / found.repeats):
        faults.append("variance")
    ratios = found.contrast_ratios[:WINDOWS] if windows_only else found.contrast_ratios
    law = stats.chi2(found.repeats)
    tails = 2 * np.minimum(law.cdf(ratios * found.repeats), law.sf(ratios * found.repeats))
    if float(tails.min()) < bonferroni(SUMS):
        faults.append("sums")
    return faults


def miscovered(rows: Sequence[Coverage]) -> list[Coverage]:
    """Those whose coverage is surely below `LEAST`, or surely above `MOST` where that is the limit."""
    surely = float(stats.norm.isf(bonferroni(SHARES)))
    return [
        row
        for row in rows
        if row.all.covering < LEAST - surely * row.all.error
        or (row.tight is not None and row.tight.covering < LEAST - surely * row.tight.error)
        or (row.tight is not None and row.tight.covering > MOST + surely * row.tight.error)
    ]
