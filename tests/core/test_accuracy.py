"""Every raw column is unbiased with the variance it states, and every interval covers as often as it says.

Not here: the exact laws (`test_intervals` and the mechanisms' own tests). Every report here is drawn by the mechanism.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accuracy import FULL_REPEATS, faults_of, miscovered
from deterministic import Named
from tallyveil.mechanisms import Estimate, create
from tallyveil.mechanisms.sketch_law import SketchLaw
from tallyveil.survey import MECHANISMS
from tallyveil_bench import coverage, spread
from tallyveil_bench.accuracy import NORM_SUB, measure_norm_sub
from tallyveil_bench.coverage import Bounds
from tallyveil_bench.populations import SKETCHES, Case, Counts, heads_by_age, zipf
from tallyveil_bench.spread import Spread, Stated, draw_errors, fixed_seed_bias, spread_of

FAST = ("grr", "brr", "brr-sealed", "hr", "histogram-laplace")
HEADS = Case("brr", 2.0, "FIES ages", heads_by_age(), 16)
CROWDED = Case("hcms", 2.0, "Zipf(1.1)", zipf(16, 20_000))
"""Sixteen buckets in a row: much of the error is collisions."""


def quiet(steps: int) -> None:
    """No progress is shown."""


def label(case: Case) -> str:
    return f"{case.mechanism}-{case.domain_size}-{case.records}"


def spread_over(case: Case, repeats: int) -> Spread:
    mechanism, errors = draw_errors(case, repeats, Named(f"spread {label(case)}"), quiet)
    return spread_of(errors, Stated.by(mechanism, case.counts))


def faults_over(case: Case, repeats: int) -> list[str]:
    return faults_of(spread_over(case, repeats), windows_only=case.mechanism == "histogram-laplace")


@pytest.mark.parametrize("case", spread.CASES, ids=label)
def test_a_raw_column_is_unbiased_and_varies_as_stated(case: Case) -> None:
    few = 50 if case.domain_size < 1000 else 15
    assert not faults_over(case, 400 if case.mechanism in FAST else few)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", spread.CASES, ids=label)
def test_a_raw_column_is_unbiased_and_varies_as_stated_over_4000_repeats(case: Case) -> None:
    assert not faults_over(case, FULL_REPEATS)


def test_the_sizes_are_the_ones_the_figures_are_for() -> None:
    assert (HEADS.records, HEADS.domain_size) == (16_685, 85)
    wanted = {(name, size) for name in MECHANISMS for size in (85, 1024)} - {("rappor", 1024)}
    assert {(case.mechanism, case.domain_size) for case in spread.CASES} == wanted
    assert {case.mechanism for case in coverage.CASES} == set(MECHANISMS)


@pytest.fixture(scope="module")
def heads() -> tuple[Stated, spread.Floats]:
    mechanism, errors = draw_errors(HEADS, FULL_REPEATS, Named("heads"), quiet)
    return Stated.by(mechanism, HEADS.counts), errors


def test_a_right_column_passes_over_4000_repeats(heads: tuple[Stated, spread.Floats]) -> None:
    stated, errors = heads
    assert not faults_of(spread_of(errors, stated))


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_a_p_that_is_off_by_one_percent_is_a_bias(heads: tuple[Stated, spread.Floats], factor: float) -> None:
    stated, errors = heads
    blocks = create("brr", domain_size=HEADS.domain_size, bins=HEADS.bins, epsilon=HEADS.epsilon).blocks
    p, q = np.array([(float(each.p), float(each.q)) for each in blocks.weights])[blocks.binning.bin_of].T
    biased = (errors + HEADS.counts) * (p - q) / (factor * p - q) - HEADS.counts
    assert "bias" in faults_of(spread_of(biased, stated))


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_variance_that_is_off_by_five_percent_is_noticed(heads: tuple[Stated, spread.Floats], factor: float) -> None:
    stated, errors = heads
    wrong = replace(stated, variance=factor * stated.variance)
    assert faults_of(spread_of(errors, wrong)) == ["variance"]


def test_variances_of_sums_without_the_covariance_are_noticed(heads: tuple[Stated, spread.Floats]) -> None:
    stated, errors = heads
    wrong = replace(stated, covariance=np.diag(stated.variance))
    assert faults_of(spread_of(errors, wrong)) == ["sums"]


def test_a_sketch_whose_variance_leaves_out_collisions_is_noticed() -> None:
    mechanism, errors = draw_errors(CROWDED, 1_000, Named("collisions"), quiet)
    stated, law = Stated.by(mechanism, CROWDED.counts), mechanism.law
    assert isinstance(law, SketchLaw)
    assert "variance" not in faults_of(spread_of(errors, stated))
    wrong = replace(stated, variance=law.support.variance(CROWDED.counts))
    assert "variance" in faults_of(spread_of(errors, wrong))


@pytest.mark.parametrize("name", SKETCHES)
def test_the_bias_of_one_hash_seed_is_the_one_that_is_printed(name: str) -> None:
    case = replace(CROWDED, mechanism=name)
    mechanism, repeats = case.make(Named(f"one seed {name}")), 300
    assert isinstance(mechanism.law, SketchLaw)
    bias = fixed_seed_bias(mechanism.law, case.counts)
    values = np.repeat(np.arange(case.domain_size), case.counts)
    estimates = np.array([mechanism.law.corrected(mechanism.perturb_and_tally(values)) for _ in range(repeats)])
    means, errors = estimates.mean(axis=0), estimates.std(axis=0) / repeats**0.5
    z_of_alpha = 7  # P(|Z| > 7) is below ALPHA over all the values of both sketches
    assert np.abs((means - case.counts - bias) / errors).max() < z_of_alpha
    assert np.abs((means - case.counts) / errors).max() > z_of_alpha


def test_biases_of_hash_seeds_are_as_large_as_the_stated_variance_says() -> None:
    randomness = Named("many seeds")
    laws = [law for _ in range(500) if isinstance(law := CROWDED.make(randomness).law, SketchLaw)]
    stated = laws[0].variance(CROWDED.counts) - laws[0].support.variance(CROWDED.counts)
    array = np.array([fixed_seed_bias(law, CROWDED.counts) for law in laws])
    assert float((array**2).mean() / stated.mean()) == pytest.approx(1, abs=0.1)
    assert np.abs(array.mean(axis=0) / np.sqrt(stated / 500)).max() < 6


def coverage_of(name: str, cells: int, largest: int) -> list[coverage.Coverage]:
    return [
        row
        for case in coverage.CASES
        if case.mechanism == name and case.domain_size <= largest
        for row in coverage.measure(case, coverage.repeats_for(case, cells), Named(f"coverage {label(case)}"), quiet)
    ]


@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_cover_as_often_as_they_say(name: str) -> None:
    rows = coverage_of(name, 60_000, largest=16 if name == "rappor" else 85)
    assert {row.kind for row in rows} == {"cells", "ranges", "means"}
    assert not miscovered(rows)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_of_many_cells_cover_as_often_as_they_say(name: str) -> None:
    rows = coverage_of(name, 200_000 * len(MECHANISMS), largest=1024)
    assert sum(row.all.intervals for row in rows if row.kind == "cells") >= 100_000
    assert not miscovered(rows)


def test_intervals_of_half_the_width_do_not_cover() -> None:
    def halved(estimate: Estimate, counts: Counts) -> Bounds:
        right = coverage.of_cells(estimate, counts)
        middle, half = (right.low + right.high) / 2, (right.high - right.low) / 4
        return replace(right, low=middle - half, high=middle + half)

    case = replace(HEADS, mechanism="oue", bins=1)
    right = coverage.measure(case, 40, Named("halved"), quiet, {"cells": coverage.of_cells})
    wrong = coverage.measure(case, 40, Named("halved"), quiet, {"cells": halved})
    assert not miscovered(right)
    assert miscovered(wrong) == wrong
    assert wrong[0].all.covering < 0.75


def test_intervals_of_twice_the_width_cover_too_much() -> None:
    def doubled(estimate: Estimate, counts: Counts) -> Bounds:
        right = coverage.of_cells(estimate, counts)
        middle, width = (right.low + right.high) / 2, right.high - right.low
        return replace(right, low=middle - width, high=middle + width)

    case = replace(HEADS, mechanism="oue", bins=1)
    wrong = coverage.measure(case, 100, Named("doubled"), quiet, {"cells": doubled})
    assert miscovered(wrong) == wrong


def test_norm_sub_has_a_tenth_of_the_raw_columns_squared_error_at_most() -> None:
    assert (NORM_SUB.mechanism, NORM_SUB.domain_size, NORM_SUB.records, NORM_SUB.epsilon) == ("oue", 1024, 20_000, 1.0)
    assert measure_norm_sub(5, Named("norm-sub"), quiet).ratio <= 0.1
