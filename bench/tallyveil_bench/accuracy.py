"""Tables of what estimates are worth: bias, variance, coverage of intervals, and what non-negativity brings.

Not here: how each is measured (`spread`, `coverage`), and what they must be (the tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from tallyveil.cli.console import print_table, progress
from tallyveil.mechanisms.sketch_law import SketchLaw
from tallyveil.randomness import Keystream, Randomness
from tallyveil.second_columns import norm_sub_column
from tallyveil_bench import coverage, spread
from tallyveil_bench.populations import SKETCHES, Case, zipf
from tallyveil_bench.spread import Step

NORM_SUB = Case("oue", 1.0, "Zipf(1.1)", zipf(1024, 20_000))


@dataclass(frozen=True)
class RawColumn:
    """A mechanism's raw column over many repeats.

    Args:
        largest_bias: Of all cells and contrasts, in standard errors of the mean.
        compared: How many there were.
        variance_ratio: Total empirical over total stated variance.
        variance_ratio_error: Its standard error.
        contrast_ratios: The same of windows, mean and truth, each by itself; least and largest.
    """

    mechanism: str
    epsilon: float
    population: str
    domain_size: int
    bins: int
    records: int
    repeats: int
    largest_bias: float
    compared: int
    variance_ratio: float
    variance_ratio_error: float
    contrast_ratios: tuple[float, float]


@dataclass(frozen=True)
class SeedBias:
    """What one fixed hash seed adds to a sketch's estimates, exactly, in records.

    Args:
        root_mean_square: Over all values.
        largest: Of any value, without its sign.
        stated: Root of the mean square that the stated variance counts, over fresh seeds.
        coin_error: Root of the mean variance that the coins bring.
    """

    mechanism: str
    epsilon: float
    population: str
    domain_size: int
    records: int
    root_mean_square: float
    largest: float
    stated: float
    coin_error: float


@dataclass(frozen=True)
class NormSub:
    """Mean squared error of the raw and of the non-negative column, and their ratio."""

    repeats: int
    raw: float
    norm_sub: float
    ratio: float


@dataclass(frozen=True)
class Accuracy:
    """All of it."""

    raw_columns: tuple[RawColumn, ...]
    seed_biases: tuple[SeedBias, ...]
    coverages: tuple[coverage.Coverage, ...]
    norm_sub: NormSub


def measure_accuracy(repeats: int, cells: int) -> Accuracy:
    """Everything, with fresh coins.

    Args:
        repeats: Of each raw column.
        cells: At least so many have their intervals looked at, over all cases.
    """
    coins = Keystream()
    many = [coverage.repeats_for(case, cells) for case in coverage.CASES]
    with progress("drawing", repeats * len(spread.CASES) + sum(many) + _norm_sub_repeats(repeats)) as step:
        columns = tuple(measure_raw_column(case, repeats, coins, step) for case in spread.CASES)
        biases = tuple(seed_bias(case, coins) for case in spread.CASES if case.mechanism in SKETCHES)
        coverages = tuple(
            row
            for case, number in zip(coverage.CASES, many, strict=True)
            for row in coverage.measure(case, number, coins, step)
        )
        return Accuracy(columns, biases, coverages, measure_norm_sub(_norm_sub_repeats(repeats), coins, step))


def _norm_sub_repeats(repeats: int) -> int:
    return max(repeats // 5, 1)


def measure_raw_column(case: Case, repeats: int, randomness: Randomness, step: Step) -> RawColumn:
    """One case."""
    mechanism, errors = spread.draw_errors(case, repeats, randomness, step)
    found = spread.spread_of(errors, spread.Stated.by(mechanism, case.counts))
    ratios = found.contrast_ratios
    return RawColumn(
        case.mechanism,
        case.epsilon,
        case.population,
        case.domain_size,
        case.bins,
        case.records,
        repeats,
        found.largest_bias,
        found.bias.size,
        found.ratio,
        found.ratio_error,
        (float(ratios.min()), float(ratios.max())),
    )


def seed_bias(case: Case, randomness: Randomness) -> SeedBias:
    """Of one seed drawn from the source."""
    law = case.make(randomness).law
    if not isinstance(law, SketchLaw):
        raise TypeError("only sketches have a hash seed that biases them")
    bias, coins = spread.fixed_seed_bias(law, case.counts), law.support.variance(case.counts)
    collisions = law.variance(case.counts) - coins
    return SeedBias(
        case.mechanism,
        case.epsilon,
        case.population,
        case.domain_size,
        case.records,
        float(np.sqrt((bias**2).mean())),
        float(np.abs(bias).max()),
        float(np.sqrt(collisions.mean())),
        float(np.sqrt(coins.mean())),
    )


def measure_norm_sub(repeats: int, randomness: Randomness, step: Step) -> NormSub:
    """On `NORM_SUB`."""
    raw, mended, truth = list[float](), list[float](), NORM_SUB.counts
    for mechanism, tally in NORM_SUB.draw(repeats, randomness):
        estimate = mechanism.estimate(tally)
        column = np.array([float(count) for count in norm_sub_column(estimate)])
        raw.append(float(((estimate.frequency - truth) ** 2).mean()))
        mended.append(float(((column - truth) ** 2).mean()))
        step(1)
    before, after = float(np.mean(raw)), float(np.mean(mended))
    return NormSub(repeats, before, after, after / before)


def accuracy_report(found: Accuracy) -> dict[str, object]:
    """For machines."""
    return asdict(found)


def show_accuracy(found: Accuracy) -> None:
    """Tables in the terminal."""
    show_raw_columns(found.raw_columns)
    _show_seed_biases(found.seed_biases)
    _show_coverages(found.coverages)
    mended = found.norm_sub
    print(
        f"norm-sub beside the raw column: {NORM_SUB.mechanism}, {NORM_SUB.population}, K={NORM_SUB.domain_size},"
        f" n={NORM_SUB.records:,}, epsilon {NORM_SUB.epsilon:g}: mean squared error {mended.norm_sub:,.0f} and"
        f" {mended.raw:,.0f}, {mended.ratio:.4f} of it"
    )


def show_raw_columns(columns: Sequence[RawColumn]) -> None:
    """Bias and variance."""
    rows = [
        (
            column.mechanism,
            column.population,
            column.domain_size,
            column.bins,
            f"{column.records:,}",
            f"{column.epsilon:g}",
            f"{column.largest_bias:.2f}",
            f"{column.variance_ratio:.4f} ± {column.variance_ratio_error:.4f}",
            "{:.2f} to {:.2f}".format(*column.contrast_ratios),
        )
        for column in columns
    ]
    repeats, compared = columns[0].repeats, sum(column.compared for column in columns)
    headers = ("mechanism", "truth", "K", "bins", "n", "epsilon", "largest bias", "variance", "of sums")
    title = (
        f"Raw columns over {repeats:,} repeats: the largest of {compared:,} biases in standard errors of the mean;"
        " total empirical variance over the stated one, and the same of single sums"
    )
    print_table(headers, rows, title=title, right=headers[2:])


def _show_seed_biases(biases: Sequence[SeedBias]) -> None:
    rows = [
        (
            bias.mechanism,
            bias.population,
            bias.domain_size,
            f"{bias.epsilon:g}",
            f"{bias.root_mean_square:.1f}",
            f"{bias.largest:.1f}",
            f"{bias.stated:.1f}",
            f"{bias.coin_error:.1f}",
        )
        for bias in biases
    ]
    headers = ("mechanism", "truth", "K", "epsilon", "bias (rms)", "largest", "stated (rms)", "error of coins (rms)")
    title = "What one fixed hash seed adds to a sketch's estimates, in records; no more records lessen its share"
    print_table(headers, rows, title=title, right=headers[2:])


def _show_coverages(coverages: Sequence[coverage.Coverage]) -> None:
    rows = list[tuple[object, ...]]()
    kinds = list(coverage.KINDS)
    for row in sorted(coverages, key=lambda each: kinds.index(each.kind)):
        tight = "" if row.tight is None else f"{row.tight.covering:.2%}"
        rows.append(
            (
                row.kind,
                row.mechanism,
                row.population,
                row.domain_size,
                row.bins,
                f"{row.records:,}",
                f"{row.epsilon:g}",
                f"{row.all.intervals:,}",
                f"{row.all.covering:.2%} ± {row.all.error:.2%}",
                tight,
            )
        )
    headers = ("of", "mechanism", "truth", "K", "bins", "n", "epsilon", "intervals", "coverage", "where nearly normal")
    title = "95 % intervals: how often they cover the truth; on the right only those that the normal law is close to"
    print_table(headers, rows, title=title, right=headers[3:])
