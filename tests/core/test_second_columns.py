"""Second columns: norm-sub by geometry, likelihood by certificates, bootstrap errors beside exact ones.

Not here: the raw column (`test_estimates`), which stays as it is beside each of these.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from deterministic import Named
from significance import ALPHA, bonferroni
from tallyveil.derived.channel import channel_of
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import Estimate, Mechanism, Tally, create
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.second_columns import (
    Stratum,
    bootstrap,
    em,
    em_column,
    keeps_histogram,
    norm_sub,
    norm_sub_column,
)
from tallyveil.second_columns.bootstrap import rounded
from tallyveil.second_columns.em import most_likely_in_bins

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HISTOGRAMS = (("grr", 1), ("brr", 4), ("brr-sealed", 4), ("hr", 1))
OTHERS = ("ss", "sue", "oue", "olh", "cms", "hcms", "rappor", "histogram-laplace")


def made(name: str, bins: int = 1, size: int = 20, epsilon: float = 1.0, label: str = "") -> Mechanism:
    coins = Named(f"second columns {name} {bins} {size} {epsilon} {label}")
    return create(name, domain_size=size, bins=bins, epsilon=epsilon, hash_seed=b"a seed of tests.", randomness=coins)


def zipf(records: int, size: int = 20) -> Ints:
    """How many records hold each value, as 1/rank^1.1."""
    shares = 1 / np.arange(1, size + 1) ** 1.1
    return rounded(shares / shares.sum() * records)


def drawn(mechanism: Mechanism, counts: Ints) -> Estimate:
    return mechanism.estimate(mechanism.perturb_and_tally(np.repeat(np.arange(counts.size), counts)))


# Norm-sub

fractions = st.fractions(-1000, 1000, max_denominator=97)


@given(st.lists(fractions, min_size=1, max_size=12), st.fractions(0, 3000, max_denominator=7))
@settings(deadline=None)
def test_norm_sub_is_the_nearest_vector_that_is_not_negative_and_has_the_total(
    estimates: list[Fraction], total: Fraction
) -> None:
    """Nearest of a convex set: no corner of it lies on the estimates' side. Exactly, in rationals."""
    column = norm_sub(estimates, total)
    assert sum(column) == total
    assert min(column) >= 0
    gaps = [raw - kept for raw, kept in zip(estimates, column, strict=True)]
    towards = sum((gap * kept for gap, kept in zip(gaps, column, strict=True)), Fraction(0))
    assert all(gap * total <= towards for gap in gaps)


def test_clipping_and_rescaling_is_not_the_nearest() -> None:
    """The planted fault, which keeps the total, too."""
    estimates, total = [Fraction(9), Fraction(5), Fraction(-4)], 10
    positive = [max(item, Fraction(0)) for item in estimates]
    scaled = [item * total / sum(positive) for item in positive]
    column = norm_sub(estimates, total)
    assert column == (Fraction(7), Fraction(3), Fraction(0))
    distances = [
        sum((raw - item) ** 2 for raw, item in zip(estimates, one, strict=True)) for one in (column, tuple(scaled))
    ]
    assert distances[0] < distances[1]


def test_norm_sub_leaves_what_needs_no_change() -> None:
    assert norm_sub([Fraction(1, 3), Fraction(0), Fraction(5, 3)], 2) == (Fraction(1, 3), Fraction(0), Fraction(5, 3))
    assert norm_sub([Fraction(-3), Fraction(-3)], 0) == (Fraction(0), Fraction(0))
    assert norm_sub([Fraction(-3)], 5) == (Fraction(5),)


@pytest.mark.parametrize(("estimates", "total"), [([], 1), ([Fraction(1)], -1)])
def test_norm_sub_without_estimates_or_to_a_negative_total_is_refused(estimates: list[Fraction], total: int) -> None:
    with pytest.raises(ConfigurationError):
        norm_sub(estimates, total)


@pytest.mark.parametrize("name", ["grr", "brr", "brr-sealed", *OTHERS])
def test_norm_sub_keeps_the_known_totals_and_the_raw_column(name: str) -> None:
    bins = 4 if name.startswith("brr") else 1
    mechanism = made(name, bins)
    estimate = drawn(mechanism, zipf(400))
    before = estimate.exact
    column = norm_sub_column(estimate)
    assert sum(column) == 400
    assert min(column) >= 0
    assert name == "histogram-laplace" or min(before) < 0
    assert estimate.exact == before
    if isinstance(mechanism.law, Blocks):
        counts = zipf(400)
        for start in range(0, 20, 20 // bins):
            assert sum(column[start : start + 20 // bins]) == int(counts[start : start + 20 // bins].sum())


def test_norm_sub_follows_the_noisy_total_where_n_is_not_told() -> None:
    mechanism = create("histogram-laplace", domain_size=5, epsilon=1.0, neighbours="add-or-remove")
    assert sum(norm_sub_column(mechanism.estimate(Tally(0, np.array([4, -9, 2, 8, 1]), 1)))) == 6
    assert sum(norm_sub_column(mechanism.estimate(Tally(0, np.array([4, -9, 2, 0, 1]), 1)))) == 0


def test_norm_sub_has_a_tenth_of_the_raw_error_of_many_rare_values() -> None:
    """OUE, Zipf(1.1), K = 1,024, n = 20,000, epsilon 1: a tenth lies above a one-sided bound at ALPHA."""
    counts, ratios = zipf(20_000, 1024), list[float]()
    for run in range(12):
        estimate = drawn(made("oue", 1, 1024, label=str(run)), counts)
        raw = float(((estimate.frequency - counts) ** 2).mean())
        column = np.array([float(item) for item in norm_sub_column(estimate)])
        ratios.append(float(((column - counts) ** 2).mean()) / raw)
        assert raw == pytest.approx(float(made("oue", 1, 1024).variance(counts).mean()), rel=0.3)
        assert (estimate.frequency < 0).mean() > 0.3  # the raw column, as it is
    error = float(np.std(ratios, ddof=1)) / len(ratios) ** 0.5
    assert float(np.mean(ratios)) + float(stats.t.isf(ALPHA, len(ratios) - 1)) * error <= 0.1


# Likelihood


def log_likelihood(matrix: Floats, histogram: Ints, counts: Floats) -> float:
    seen = histogram > 0
    return float(histogram[seen] @ np.log((counts @ matrix)[seen]))


@pytest.mark.parametrize(("name", "bins"), HISTOGRAMS)
def test_no_other_counts_are_more_likely_by_more_than_the_gap(name: str, bins: int) -> None:
    mechanism, counts = made(name, bins), zipf(2000)
    tally = mechanism.perturb_and_tally(np.repeat(np.arange(20), counts))
    fit, matrix = em_column(mechanism.estimate(tally)), mechanism.channel()
    assert fit.gap <= 0.01
    assert fit.counts.sum() == pytest.approx(2000)
    assert fit.counts.min() >= 0
    best = log_likelihood(matrix, tally.counts, fit.counts)
    others = [counts.astype(float), np.full(20, 100.0), rounded(np.maximum(fit.counts - 3, 0)) * 1.0]
    others += [0.99 * fit.counts + 0.01 * 2000 * np.eye(20)[value] for value in range(20)]
    for other in others:
        assert log_likelihood(matrix, tally.counts, other * 2000 / other.sum()) <= best + fit.gap + 1e-9


@pytest.mark.parametrize(("name", "bins", "epsilon"), [("grr", 1, 1.0), ("brr", 4, 1.0), ("brr", 3, 2.0)])
def test_passes_lead_to_the_maximum_that_is_known_outright(name: str, bins: int, epsilon: float) -> None:
    mechanism = made(name, bins, epsilon=epsilon)
    tally, law = mechanism.perturb_and_tally(np.repeat(np.arange(20), zipf(800))), mechanism.law
    assert isinstance(law, Blocks)
    known = most_likely_in_bins(law, tally.counts)
    channel = channel_of(law)
    assert channel is not None
    fit = em(channel, tally.counts, gap=1e-7)
    assert fit.passes > 0
    assert fit.gap <= 1e-7
    np.testing.assert_allclose(fit.counts, known, atol=1.0)
    assert em(channel, tally.counts, start=known).passes == 0
    for start, size in zip(law.binning.starts.tolist(), law.binning.sizes.tolist(), strict=True):
        inside = slice(start, start + size)
        assert known[inside].sum() == pytest.approx(float(tally.counts[inside].sum()))


def test_the_most_likely_counts_are_the_raw_ones_where_none_is_negative() -> None:
    mechanism = made("grr", epsilon=3.0)
    estimate = mechanism.estimate(Tally.of([100 + 3 * value for value in range(20)]))
    assert min(estimate.exact) > 0
    np.testing.assert_allclose(em_column(estimate).counts, estimate.frequency, rtol=1e-9)


@pytest.mark.parametrize(("name", "bins"), HISTOGRAMS)
def test_a_matrix_gives_what_its_channel_gives(name: str, bins: int) -> None:
    mechanism = made(name, bins, epsilon=2.0)
    tally, channel = mechanism.perturb_and_tally(np.repeat(np.arange(20), zipf(800))), channel_of(mechanism.law)
    assert channel is not None
    one, other = (em(item, tally.counts, gap=1e-4) for item in (channel, mechanism.channel()))
    np.testing.assert_allclose(one.counts, other.counts, atol=0.5)


def test_the_gap_is_told_where_passes_run_out() -> None:
    mechanism = made("hr", epsilon=0.5)
    tally = mechanism.perturb_and_tally(np.repeat(np.arange(20), zipf(800)))
    fit = em(mechanism.channel(), tally.counts, gap=1e-9, passes=2)
    assert fit.passes == 2
    assert fit.gap > 1e-9


def test_likelihoods_of_parts_add_up() -> None:
    one, two = (drawn(made("grr", epsilon=epsilon), zipf(500)) for epsilon in (1.0, 2.0))
    np.testing.assert_allclose(em_column(one + two).counts, em_column(one).counts + em_column(two).counts)


def test_nothing_has_no_likely_counts() -> None:
    assert em_column(drawn(made("grr"), np.zeros(20, dtype=np.int64))).counts.sum() == 0


@pytest.mark.parametrize("name", OTHERS)
def test_tallies_that_are_no_histogram_of_reports_have_no_likelihood(name: str) -> None:
    mechanism = made(name)
    assert not keeps_histogram(mechanism.law)
    with pytest.raises(ConfigurationError, match="norm-sub"):
        em_column(drawn(mechanism, zipf(50)))


@pytest.mark.parametrize("settings_of_it", [{"gap": 0.0}, {"gap": float("nan")}, {"passes": 0}])
def test_a_likelihood_without_a_stopping_rule_is_refused(settings_of_it: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        em(np.eye(2), [1, 2], gap=settings_of_it.get("gap", 1.0), passes=int(settings_of_it.get("passes", 1)))


# Bootstrap


def raw(estimate: Estimate) -> Floats:
    return estimate.frequency


def norm_subbed(estimate: Estimate) -> list[float]:
    return [float(item) for item in norm_sub_column(estimate)]


@pytest.mark.parametrize(("name", "bins"), [*HISTOGRAMS, ("ss", 1), ("oue", 1), ("histogram-laplace", 1)])
def test_the_bootstrap_of_the_raw_column_finds_its_exact_error(name: str, bins: int) -> None:
    mechanism, counts, repeats = made(name, bins, 8, label="raw"), zipf(300, 8), 120
    found = bootstrap([Stratum(mechanism, counts)], raw, repeats)
    exact = mechanism.variance(counts)
    tail = bonferroni(2 * 7 * 8)
    ratios = found.standard_error**2 / exact * (repeats - 1)
    # Binomials of hundreds of records are near enough to normal ones for these tails, twice as wide.
    assert stats.chi2.ppf(tail / 2, repeats - 1) < ratios.min()
    assert ratios.max() < stats.chi2.isf(tail / 2, repeats - 1)
    faulty = found.standard_error**2 / (4 * exact) * (repeats - 1)  # the planted fault: an error twice as large
    assert not stats.chi2.ppf(tail / 2, repeats - 1) < faulty.min()


def test_a_bootstrap_is_repeated_by_its_coins() -> None:
    first, second, third = (
        bootstrap([Stratum(made("grr", label=label), zipf(200))], norm_subbed, 20) for label in ("one", "one", "two")
    )
    np.testing.assert_array_equal(first.standard_error, second.standard_error)
    np.testing.assert_array_equal(first.high, second.high)
    assert not np.array_equal(first.standard_error, third.standard_error)


def test_a_bootstrap_shows_the_bias_that_shrinking_brings() -> None:
    counts = np.array([900, 60, 20, 10, 5, 3, 2, 0])
    found = bootstrap([Stratum(made("grr", 1, 8, label="bias"), counts)], norm_subbed, 150)
    assert found.bias[-1] > 0
    assert found.bias.sum() == pytest.approx(0, abs=1e-6)
    assert found.low.min() >= 0
    assert (found.low <= counts).all() and (counts <= found.high).all()
    assert (found.standard_error < np.sqrt(made("grr", 1, 8).variance(counts))).all()


def test_strata_of_several_epsilons_are_drawn_together() -> None:
    strata = [Stratum(made("grr", 1, 8, epsilon, "strata"), zipf(300, 8)) for epsilon in (1.0, 2.0)]
    found, repeats = bootstrap(strata, raw, 120), 120
    exact = np.sum([stratum.mechanism.variance(stratum.counts) for stratum in strata], axis=0)
    ratios = found.standard_error**2 / exact * (repeats - 1)
    assert stats.chi2.ppf(bonferroni(16), repeats - 1) < ratios.min()
    assert ratios.max() < stats.chi2.isf(bonferroni(16), repeats - 1)


def test_departments_that_add_noise_each_are_drawn_each() -> None:
    mechanism, repeats = made("histogram-laplace", 1, 6, label="departments"), 120
    found = bootstrap([Stratum(mechanism, zipf(300, 6), histograms=5)], raw, repeats)
    ratios = found.standard_error**2 / (5 * mechanism.variance(np.zeros(6))) * (repeats - 1)
    assert stats.chi2.ppf(bonferroni(12), repeats - 1) < ratios.min()
    assert ratios.max() < stats.chi2.isf(bonferroni(12), repeats - 1)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
@settings(deadline=None)
def test_rounded_counts_are_near_and_keep_the_sum(counts: list[float]) -> None:
    whole = rounded(counts)
    assert abs(int(whole.sum()) - sum(counts)) <= 0.5 + 1e-6
    assert np.abs(whole - np.array(counts)).max() <= 1


def test_a_bootstrap_of_nothing_or_of_negative_counts_is_refused() -> None:
    mechanism = made("grr", 1, 3)
    for strata, repeats, level in (
        ([], 10, 0.95),
        ([Stratum(mechanism, [1, 2, 3])], 1, 0.95),
        ([Stratum(mechanism, [1, 2, 3])], 10, 1.0),
        ([Stratum(mechanism, [1, -2, 3])], 10, 0.95),
    ):
        with pytest.raises(ConfigurationError):
            bootstrap(strata, raw, repeats, level)
