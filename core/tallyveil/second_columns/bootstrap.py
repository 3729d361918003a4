"""The error of a second column, by drawing tallies from the mechanism's own law as if the column were the truth.

Not here: the raw column's error, which is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.mechanisms.protocol import Mechanism

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stratum:
    """Records perturbed with one epsilon.

    Args:
        mechanism: As the departments used it; the draws come from its own randomness.
        counts: The second column of this stratum, shape (K,), not negative.
        histograms: Into how many equal shares the records fall, each a department's (noise at the department).
    """

    mechanism: Mechanism
    counts: ArrayLike
    histograms: int = 1


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Error of each value of a second column, shape (K,) each.

    Args:
        standard_error: Standard deviation of the drawn columns.
        bias: Their mean less the counts that they were drawn from: what shrinking does.
        low: Lower bound.
        high: Upper bound.
        repeats: Columns drawn.
    """

    standard_error: Floats
    bias: Floats
    low: Floats
    high: Floats
    repeats: int


def bootstrap(
    strata: Sequence[Stratum], column: Callable[[Estimate], ArrayLike], repeats: int = 200, level: float = 0.95
) -> Bootstrap:
    """The error that a second column would have, were it the truth.

    Deterministic, given the randomness of the strata's mechanisms. Costs as much as perturbing all records so often.

    Args:
        strata: The column's parts, one for each mechanism; one where all departments share their epsilon.
        column: What makes the second column of an estimate, such as `norm_sub_column`.
        repeats: Tallies drawn, at least 2.
        level: Of the bounds, in (0, 1).

    Returns:
        Bounds are percentiles of the drawn columns, at least so wide that they hold the column itself. They tell how
        the column spreads, and not how far it is from the truth where many small counts were shrunk to 0: over all
        values they hold often enough, and for single ones they do not. The bounds of the raw column do.

    Raises:
        ConfigurationError: No strata, fewer than 2 repeats, a level that is none, or negative counts.

    Source: Efron 1979; Efron and Tibshirani 1993, chapter 6 (parametric bootstrap).
    """
    if not strata or repeats < 2 or not 0 < level < 1:
        raise ConfigurationError("a bootstrap takes strata, at least 2 repeats, and a level between 0 and 1")
    prepared = [(stratum, rounded(stratum.counts)) for stratum in strata]
    drawn = np.array([np.asarray(column(_drawn(prepared)), dtype=np.float64) for _ in range(repeats)])
    truth = np.sum([counts for _, counts in prepared], axis=0)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return Bootstrap(
        drawn.std(axis=0, ddof=1), drawn.mean(axis=0) - truth, np.minimum(low, truth), np.maximum(high, truth), repeats
    )


def rounded(counts: ArrayLike) -> NDArray[np.int64]:
    """Whole counts with the same sum, rounded: those with the largest remainders are rounded up.

    Raises:
        ConfigurationError: A count is negative.
    """
    exact = np.asarray(counts, dtype=np.float64)
    if exact.size == 0 or float(exact.min()) < 0:
        raise ConfigurationError("counts are not negative", not_done="nothing was drawn")
    whole = np.floor(exact).astype(np.int64)
    missing = floor(float(exact.sum()) + 0.5) - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:missing]] += 1
    return whole


def _drawn(prepared: Sequence[tuple[Stratum, NDArray[np.int64]]]) -> Estimate:
    """The estimate of tallies drawn anew."""
    parts = list[Estimate]()
    for stratum, counts in prepared:
        values = np.repeat(np.arange(counts.size), counts)
        shares = [values[start :: stratum.histograms] for start in range(stratum.histograms)]
        tally = stratum.mechanism.perturb_and_tally(shares[0])
        for share in shares[1:]:
            tally += stratum.mechanism.perturb_and_tally(share)
        parts.append(stratum.mechanism.estimate(tally))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
