"""What a figure is made of: points, each a trial at its place, and the rows of numbers that come of them.

Not here: which figures there are (`figures`) and how they are drawn (`charts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil_reproduce.outcomes import Outcome
from tallyveil_reproduce.trials import Trial

Kind = Literal["counts", "errors", "sweep"]

DISCLOSING = "none: bins of one value show it in clear"
"""Stands where a guarantee would, for what can be simulated but not collected."""


@dataclass(frozen=True)
class Point:
    """A trial and where it belongs.

    Args:
        panel: Which part of the figure.
        series: Which line or column of the panel.
        trial: What is run.
        x: Its place on the panel's axis; None where the axis is the value itself.
    """

    panel: str
    series: str
    trial: Trial
    x: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of a figure's table; `truth` and `one_run` belong to counts only.

    Args:
        quantity: ``count``, ``absolute percentage error`` of one value or ``MAPE`` over values, errors as fractions.
        x: A value of the domain, or what a sweep varies.
        guarantee: The kind, in the project's words.
        disclosing: Whether a value is shown in clear.
        mean: Over the repeats.
        sd: Of one repeat.
        expected: Of the mean, by the mechanism's law, without a draw.
        negative_share: Of the estimates that this line is about, how many are negative.
    """

    panel: str
    series: str
    mechanism: str
    guarantee: str
    disclosing: bool
    epsilon: float
    bins: int
    smallest_bin: int
    records: int
    domain_size: int
    departments: int
    repeats: int
    x: float
    quantity: str
    truth: int | None
    one_run: float | None
    mean: float
    sd: float
    expected: float
    negative_share: float


@dataclass(frozen=True)
class View:
    """Panels of one kind.

    Args:
        kind: ``counts``: truth and estimates by value; ``errors``: errors by value; ``sweep``: MAPE against something.
        points: In the order of panels and series.
        axis: The name of the axis, in English and in Chinese.
        logarithmic: Whether x spans so much that it needs a logarithmic axis.
        window: First and last value index shown of each panel; all where a panel is absent.
    """

    kind: Kind
    points: Sequence[Point]
    axis: tuple[str, str]
    logarithmic: bool = False
    window: Mapping[str, tuple[int, int]] | None = None

    def rows(self, outcomes: Mapping[Trial, Outcome]) -> list[Row]:
        """All of them, in the order of the points."""
        make = {"counts": _counts, "errors": _errors, "sweep": _mape}[self.kind]
        return [row for point in self.points for row in make(point, self.outcome(point, outcomes))]

    def summaries(self, outcomes: Mapping[Trial, Outcome]) -> list[Row]:
        """The MAPE of each point over the values shown of it."""
        return [row for point in self.points for row in _mape(point, self.outcome(point, outcomes))]

    def outcome(self, point: Point, outcomes: Mapping[Trial, Outcome]) -> Outcome:
        """A point's outcome, over the values that its panel shows."""
        return replace(outcomes[point.trial], window=(self.window or {}).get(point.panel))


def _counts(point: Point, outcome: Outcome) -> Iterator[Row]:
    for index in outcome.shown.tolist():
        runs, truth = outcome.estimates[:, index], int(outcome.truth[index])
        yield _row(
            point,
            outcome,
            x=point.trial.population.first_value + index,
            quantity="count",
            truth=truth,
            one_run=float(runs[0]),
            runs=runs,
            expected=truth,
            negative_share=float((runs < 0).mean()),
        )


def _errors(point: Point, outcome: Outcome) -> Iterator[Row]:
    for runs, index in zip(outcome.errors.T, outcome.held.tolist(), strict=True):
        yield _row(
            point,
            outcome,
            x=point.trial.population.first_value + index,
            quantity="absolute percentage error",
            runs=runs,
            expected=float(outcome.expected_error[index] / outcome.truth[index]),
            negative_share=float((outcome.estimates[:, index] < 0).mean()),
        )


def _mape(point: Point, outcome: Outcome) -> Iterator[Row]:
    yield _row(
        point,
        outcome,
        x=0 if point.x is None else point.x,
        quantity="MAPE",
        runs=outcome.mape,
        expected=outcome.expected_mape,
        negative_share=outcome.negative_share,
    )


def _row(
    point: Point,
    outcome: Outcome,
    *,
    x: float,
    quantity: str,
    runs: NDArray[np.float64],
    expected: float,
    negative_share: float,
    truth: int | None = None,
    one_run: float | None = None,
) -> Row:
    trial, population, guarantee = point.trial, point.trial.population, point.trial.guarantee
    return Row(
        panel=point.panel,
        series=point.series,
        mechanism=trial.mechanism,
        guarantee=DISCLOSING if guarantee is None else guarantee.kind,
        disclosing=trial.disclosing,
        epsilon=trial.epsilon,
        bins=trial.bins,
        smallest_bin=Binning(population.domain_size, trial.bins).smallest,
        records=population.records,
        domain_size=population.domain_size,
        departments=population.departments,
        repeats=outcome.repeats,
        x=x,
        quantity=quantity,
        truth=truth,
        one_run=one_run,
        mean=float(runs.mean()),
        sd=float(runs.std(ddof=1)),
        expected=expected,
        negative_share=negative_share,
    )
