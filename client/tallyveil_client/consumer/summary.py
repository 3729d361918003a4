"""What a reader makes of a verified release: mean, quantiles and ranges with their own errors, and second columns.

Not here: the arithmetic (`tallyveil.derived`, `tallyveil.second_columns`). All of it follows from the release's counts
and needs no trust in whoever served it. Second columns stand beside the raw one, never in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.canonical import Json
from tallyveil.derived import LinearStatistics, Statistic, mean, points_of, quantile, range_total
from tallyveil.domain import Categories
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import for_survey
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.release import Release
from tallyveil.second_columns import Stratum, bootstrap, em_column, keeps_histogram, norm_sub_column
from tallyveil.survey import Survey
from tallyveil.tables import estimate_pools

SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
REPEATS = 100


@dataclass(frozen=True)
class NamedQuantile:
    """A quantile by the labels of its values."""

    share: Fraction
    value: str
    low: str
    high: str

    def to_json(self) -> Json:
        return {"share": float(self.share), "value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class NamedRange:
    """The records between two values, both included."""

    first: str
    last: str
    total: Statistic

    def to_json(self) -> Json:
        return {"first": self.first, "last": self.last, **_statistic(self.total)}


@dataclass(frozen=True)
class Summary:
    """Of one table.

    Args:
        cell: (dimension, value) pairs; None for the total.
        records: n.
        mean: None where values are categories, or there are no records.
        quantiles: Empty in the same cases.
        ranges: As asked.
    """

    cell: tuple[tuple[str, str], ...] | None
    records: int
    mean: Statistic | None
    quantiles: tuple[NamedQuantile, ...]
    ranges: tuple[NamedRange, ...]

    def to_json(self) -> Json:
        """For programs."""
        return {
            "cell": None if self.cell is None else dict(self.cell),
            "records": self.records,
            "mean": None if self.mean is None else _statistic(self.mean),
            "quantiles": [item.to_json() for item in self.quantiles],
            "ranges": [item.to_json() for item in self.ranges],
        }


@dataclass(frozen=True, eq=False)
class SecondColumn:
    """Estimates that give up being unbiased for less error, and the bootstrap's view of that error.

    Args:
        name: ``norm-sub`` or ``em``.
        values: Shape (K,).
        standard_error: Shape (K,).
        low: Shape (K,).
        high: Shape (K,).
    """

    name: str
    values: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def summarise(release: Release, ranges: Sequence[tuple[str, str]] = (), wide: bool = False) -> tuple[Summary, ...]:
    """The total, and with `wide` every dimension cell.

    Args:
        release: Verified.
        ranges: First and last label of each range.
        wide: Cells too.

    Raises:
        ConfigurationError: A label is not one of the domain, or the last comes before the first.
    """
    survey = release.survey
    places = [_range(survey, first, last) for first, last in ranges]
    found = [_summary(survey, None, estimate_pools(survey, release.pools), places)]
    for number, values in enumerate(survey.cells if wide and survey.dimensions else ()):
        pools = [pool for pool in release.pools if pool.cell == number]
        named = tuple(zip((item.name for item in survey.dimensions), values, strict=True))
        found.append(_summary(survey, named, estimate_pools(survey, pools), places))
    return tuple(found)


def second_columns(
    release: Release, repeats: int = REPEATS, advance: Callable[[int], None] = lambda done: None
) -> tuple[SecondColumn, ...]:
    """Norm-sub, and EM where reports' own histogram is kept, of the total; the errors are drawn anew each time.

    Args:
        release: Verified.
        repeats: Of the bootstrap.
        advance: Called with 1 after each column.

    Raises:
        ConfigurationError: As `bootstrap`.
    """
    survey = release.survey
    estimate = estimate_pools(survey, release.pools)
    makers: dict[str, Callable[[Estimate], ArrayLike]] = {"norm-sub": _floats_of_norm_sub}
    if len(estimate.parts) == 1 and keeps_histogram(estimate.parts[0][0]):
        makers["em"] = lambda given: em_column(given).counts
    found = list[SecondColumn]()
    for name, maker in makers.items():
        values = np.asarray(maker(estimate), dtype=np.float64)
        drawn = bootstrap(_strata(release, values), maker, repeats)
        found.append(SecondColumn(name, values, drawn.standard_error, drawn.low, drawn.high))
        advance(1)
    return tuple(found)


def _strata(release: Release, values: NDArray[np.float64]) -> list[Stratum]:
    """The column's records shared out among the epsilons as the release's are."""
    totals = {epsilon: 0 for epsilon in release.epsilons}
    histograms = dict(totals)
    for pool in release.pools:
        law = for_survey(release.survey, pool.epsilon).law
        totals[pool.epsilon] += max(law.total(pool.tally), 0)
        histograms[pool.epsilon] += pool.departments
    whole = sum(totals.values())
    return [
        Stratum(for_survey(release.survey, epsilon), values * (total / whole), max(histograms[epsilon], 1))
        for epsilon, total in totals.items()
        if total
    ]


def _floats_of_norm_sub(estimate: Estimate) -> list[float]:
    return [float(value) for value in norm_sub_column(estimate)]


def _summary(
    survey: Survey, cell: tuple[tuple[str, str], ...] | None, estimate: Estimate, ranges: Sequence[tuple[int, int]]
) -> Summary:
    statistics, labels = LinearStatistics(estimate), survey.domain.labels
    named = tuple(NamedRange(labels[a], labels[b], range_total(statistics, a, b)) for a, b in ranges)
    if isinstance(survey.domain, Categories):
        return Summary(cell, statistics.records, None, (), named)
    quantiles = [found for share in SHARES if (found := quantile(estimate, share)) is not None]
    return Summary(
        cell,
        statistics.records,
        mean(estimate, points_of(survey.domain)),
        tuple(NamedQuantile(q.share, labels[q.index], labels[q.low], labels[q.high]) for q in quantiles),
        named,
    )


def _range(survey: Survey, first: str, last: str) -> tuple[int, int]:
    labels = survey.domain.labels
    if first not in labels or last not in labels or labels.index(first) > labels.index(last):
        raise ConfigurationError(
            "a range names two values of the survey's domain, the first one first",
            not_done="nothing was computed",
            next_step=f"the domain's values run from {labels[0]} to {labels[-1]}",
        )
    return labels.index(first), labels.index(last)


def _statistic(found: Statistic) -> Json:
    return {"value": found.value, "standard_error": found.standard_error, "low": found.low, "high": found.high}
