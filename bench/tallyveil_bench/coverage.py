"""How often 95 % intervals cover the truth: of cells, of ranges and of means, for every mechanism.

Not here: whether the estimates inside them are right (`spread`). Sketches have fresh hash functions in every repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tallyveil.derived import LinearStatistics, Statistic, mean, range_total
from tallyveil.mechanisms import Estimate
from tallyveil.randomness import Randomness
from tallyveil.survey import BINNED, MECHANISMS
from tallyveil_bench.populations import Case, Counts, heads_by_age, zipf

LEVEL = 0.95
LEAST = 0.945
"""No coverage may be below this."""
MOST = 0.96
"""Nor above this where the normal law is close: intervals are no wider than they must be."""

RANGES = 5
Step = Callable[[int], None]
Kind = Literal["cells", "ranges", "means"]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Intervals of one estimate, and what they should cover.

    Args:
        low: Lower bounds.
        high: Upper bounds.
        truth: The true numbers.
        tight: Which of them may not cover much more often than they say: the normal law is close, and the truth is
            not itself at the end of what is possible, where only one side can miss.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    truth: NDArray[np.float64]
    tight: NDArray[np.bool_]

    @property
    def covering(self) -> NDArray[np.bool_]:
        """Which of them cover; what is a rounding of floats off does."""
        slack = 1e-9 * np.maximum(np.abs(self.truth), 1)
        result: NDArray[np.bool_] = (self.low <= self.truth + slack) & (self.truth - slack <= self.high)
        return result


@dataclass(frozen=True)
class Share:
    """How many intervals cover.

    Args:
        intervals: How many there were.
        covering: Their share that covered.
        error: Standard error of the share; intervals of one repeat go together.
    """

    intervals: int
    covering: float
    error: float


@dataclass(frozen=True)
class Coverage:
    """Intervals of one case.

    Args:
        all: All of them.
        tight: Those held to `MOST`, too; None where there are none.
    """

    kind: Kind
    mechanism: str
    epsilon: float
    population: str
    domain_size: int
    bins: int
    records: int
    all: Share
    tight: Share | None


Make = Callable[[Estimate, Counts], Bounds]


def of_cells(estimate: Estimate, counts: Counts) -> Bounds:
    """Of each value's count."""
    low, high = estimate.interval(LEVEL)
    ((law, tally),) = estimate.parts
    normal = np.array([cell.nearly_normal for cell in law.cells(tally)])
    return Bounds(low, high, counts.astype(np.float64), normal & (counts > 0))


def of_ranges(estimate: Estimate, counts: Counts) -> Bounds:
    """Of the records in each of some windows of the domain."""
    statistics = LinearStatistics(estimate)
    edges = [counts.size * number // RANGES for number in range(RANGES + 1)]
    spans = [(first, after - 1) for first, after in pairwise(edges) if first < after]
    found = [range_total(statistics, first, last, LEVEL) for first, last in spans]
    truth = np.array([counts[first : last + 1].sum() for first, last in spans], dtype=np.float64)
    return _bounds(found, truth, estimate, inside=truth > 0)


def of_means(estimate: Estimate, counts: Counts) -> Bounds:
    """Of the mean value."""
    points = np.arange(counts.size)
    found = mean(estimate, points, LEVEL)
    truth = np.array([counts @ points / counts.sum()])
    return _bounds([] if found is None else [found], truth, estimate, inside=np.array([True]))


def _bounds(
    found: list[Statistic], truth: NDArray[np.float64], estimate: Estimate, inside: NDArray[np.bool_]
) -> Bounds:
    normal = all(cell.nearly_normal for law, tally in estimate.parts for cell in law.cells(tally))
    perturbed = np.array([statistic.variance > 0 for statistic in found])
    low, high = (np.array([getattr(statistic, end) for statistic in found]) for end in ("low", "high"))
    return Bounds(low, high, truth, inside & perturbed & normal)


KINDS: dict[Kind, Make] = {"cells": of_cells, "ranges": of_ranges, "means": of_means}


def _cases() -> tuple[Case, ...]:
    cases = list[Case]()
    for name in MECHANISMS:
        binned = name in BINNED
        for records in (2, 10, 17):
            one = zipf(4, records)
            counts, bins = (np.tile(one, 3), 3) if binned else (one, 1)
            cases.append(Case(name, 1.0, f"{records} in a bin" if binned else "few", counts, bins))
        cases.append(Case(name, 0.5, "Zipf(1.1)", zipf(16, 400), 4 if binned else 1))
        cases.append(Case(name, 2.0, "Zipf(1.1)", zipf(16, 20_000), 4 if binned else 1))
        if name == "rappor":  # its exact least squares take a second at 85 values
            cases.append(Case(name, 2.0, "Zipf(1.1)", zipf(32, 20_000)))
        else:
            cases.append(Case(name, 2.0, "FIES ages", heads_by_age(), 16 if binned else 1))
            cases.append(Case(name, 1.0, "Zipf(1.1)", zipf(1024, 20_000), 16 if binned else 1))
    return tuple(cases)


CASES = _cases()


def repeats_for(case: Case, cells: int) -> int:
    """How often a case is drawn so that all `CASES` together have at least so many cells.

    A case has cells in proportion to √K: small domains are drawn more often, large ones have more cells.
    """
    whole = sum(sqrt(each.domain_size) for each in CASES)
    return ceil(cells / whole / sqrt(case.domain_size))


def measure(
    case: Case, repeats: int, randomness: Randomness, step: Step, kinds: Mapping[Kind, Make] = KINDS
) -> list[Coverage]:
    """One `Coverage` for each kind of interval, over so many repeats.

    Args:
        kinds: How the bounds of each are made.
    """
    found: dict[Kind, list[Bounds]] = {kind: [] for kind in kinds}
    for mechanism, tally in case.draw(repeats, randomness):
        estimate = mechanism.estimate(tally)
        for kind, make in kinds.items():
            found[kind].append(make(estimate, case.counts))
        step(1)
    return [_coverage(kind, case, bounds) for kind, bounds in found.items()]


def _coverage(kind: Kind, case: Case, bounds: Sequence[Bounds]) -> Coverage:
    hits = np.array([each.covering for each in bounds])
    tight = np.array([each.tight for each in bounds])
    return Coverage(
        kind,
        case.mechanism,
        case.epsilon,
        case.population,
        case.domain_size,
        case.bins,
        case.records,
        _share(hits, np.ones_like(tight)),
        _share(hits, tight) if tight.any() else None,
    )


def _share(hits: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Share:
    intervals = int(counted.sum())
    share = float((hits & counted).sum() / intervals)
    # A ratio of sums over repeats; never less than were all intervals independent and covered as seldom as they may.
    residuals = ((hits - share) * counted).sum(axis=1)
    error = max(sqrt(float((residuals**2).sum())) / intervals, sqrt(LEAST * (1 - LEAST) / intervals))
    return Share(intervals, share, error)
