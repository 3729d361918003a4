"""Derived statistics against exact laws: values, variances with their covariances, and how often bounds hold.

Not here: estimates of single values (`test_estimates`, `test_intervals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from deterministic import Named
from significance import bonferroni
from tallyveil.derived import LinearStatistics, linear, mean, points_of, quantile, range_total
from tallyveil.derived.bounds import bounded_reach, laplace_reach
from tallyveil.derived.channel import channel_of
from tallyveil.discrete_laplace import probability
from tallyveil.domain import parse_domain
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import Estimate, Mechanism, Tally, create

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVEL = 0.95
LEAST = 0.945
SUMMING = (("grr", 1), ("brr", 4), ("brr-sealed", 4), ("ss", 1))
"""Mechanisms, with their bins, whose estimates sum to n."""
EVERY = (*SUMMING, ("sue", 1), ("oue", 1), ("olh", 1), ("hr", 1), ("cms", 1), ("hcms", 1), ("histogram-laplace", 1))


def made(name: str, bins: int, size: int = 20, epsilon: float = 1.0, label: str = "") -> Mechanism:
    coins = Named(f"derived {name} {bins} {size} {epsilon} {label}")
    return create(name, domain_size=size, bins=bins, epsilon=epsilon, hash_seed=b"a seed of tests.", randomness=coins)


def zipf(records: int, size: int = 20) -> Ints:
    """Values whose shares fall as 1/rank^1.1."""
    shares = np.cumsum(1 / np.arange(1, size + 1) ** 1.1)
    return np.searchsorted(shares / shares[-1], (np.arange(records) + 0.5) / records).astype(np.int64)


def drawn(name: str, bins: int, records: int = 500) -> Estimate:
    mechanism = made(name, bins)
    return mechanism.estimate(mechanism.perturb_and_tally(zipf(records)))


# Values and variances


def tallies_of_outputs(mechanism: Mechanism) -> Ints:
    """What one report of each of the channel's outputs adds to the counts, shape (outputs, counts)."""
    size, outputs = mechanism.domain_size, mechanism.channel().shape[1]
    if mechanism.name == "oue":
        return np.array(list(product((0, 1), repeat=size)), dtype=np.int64)
    if mechanism.name == "ss":
        members = next(d for d in range(1, size) if comb(size, d) == outputs)
        return np.array([[int(v in chosen) for v in range(size)] for chosen in combinations(range(size), members)])
    return np.eye(outputs, dtype=np.int64)


def outcomes(mechanism: Mechanism, truth: tuple[int, ...]) -> Iterator[tuple[float, Estimate]]:
    """Every outcome of perturbing these records, with its probability."""
    channel, added = mechanism.channel(), tallies_of_outputs(mechanism)
    for reports in product(range(channel.shape[1]), repeat=len(truth)):
        chance = float(np.prod([channel[value, report] for value, report in zip(truth, reports, strict=True)]))
        if chance:
            yield chance, mechanism.estimate(Tally(len(truth), added[list(reports)].sum(axis=0)))


ENUMERATED = (
    ("grr", 1, 4, (0, 2, 2)),
    ("brr", 2, 5, (0, 2, 3, 4)),
    ("brr-sealed", 2, 5, (0, 1, 4)),
    ("ss", 1, 5, (0, 3)),
    ("oue", 1, 3, (0, 2)),
    ("hr", 1, 5, (0, 3)),
)


@pytest.mark.parametrize(("name", "bins", "size", "truth"), ENUMERATED)
@pytest.mark.parametrize("weights", [(3, -1, 0, 2, Fraction(5, 2)), (1, 1, 0, 0, 0), (1, 0, 0, 0, -1)])
def test_linear_statistics_and_their_variances_are_unbiased_and_covariance_is_needed_for_it(
    name: str, bins: int, size: int, truth: tuple[int, ...], weights: tuple[int | Fraction, ...]
) -> None:
    mechanism, weights = made(name, bins, size), weights[:size]
    first = second = stated = apart = 0.0
    for chance, estimate in outcomes(mechanism, truth):
        found = linear(estimate, weights)
        assert found.exact == sum(w * c for w, c in zip(weights, estimate.exact, strict=True))
        first += chance * found.value
        second += chance * found.value**2
        stated += chance * float(found.variance)
        apart += chance * float(np.array(weights, dtype=float) ** 2 @ estimate.variance)
    assert first == pytest.approx(float(sum(weights[value] for value in truth)), abs=1e-9)
    variance = second - first**2
    if name == "hr":  # two reports: the estimate of the variance is sometimes not above 0, and replaced
        assert variance - 1e-9 <= stated <= 1.5 * variance
    else:
        assert stated == pytest.approx(variance, rel=1e-9, abs=1e-9)
    if name != "oue" and weights[1] == -1:  # bits of oue are independent
        assert apart != pytest.approx(variance, rel=1e-3)  # the planted fault: a sum of variances


@pytest.mark.parametrize(("name", "bins"), EVERY)
def test_the_variance_is_that_of_the_covariance_matrix(name: str, bins: int) -> None:
    """By another way, at exact counts: the matrix of many records, to which the estimated one is close."""
    mechanism = made(name, bins, epsilon=4.0)
    values = np.tile(zipf(20_000), 10)
    tally = mechanism.perturb_and_tally(values)
    weights = np.array([-3.0, 1, 4, 1, -5, 9, 2, 6, 5, 3, -5, 8, 9, 7, 9, 3, 2, 3, 8, 4])
    matrix = mechanism.covariance(np.bincount(values, minlength=20))
    found = linear(mechanism.estimate(tally), weights)
    assert found.standard_error == pytest.approx(sqrt(weights @ matrix @ weights), rel=0.05)
    assert found.value == pytest.approx(float(weights @ mechanism.estimate(tally).frequency), rel=1e-9)


@given(st.sampled_from(SUMMING), st.lists(st.integers(-(2**70), 2**70), min_size=20, max_size=20))
@settings(deadline=None, max_examples=40)
def test_weights_of_any_size_are_exact(design: tuple[str, int], weights: list[int]) -> None:
    estimate = drawn(*design, records=60)
    found = linear(estimate, weights)
    assert found.exact == sum(w * c for w, c in zip(weights, estimate.exact, strict=True))
    assert found.variance >= 0


def test_a_statistic_of_several_epsilons_adds_their_variances() -> None:
    estimates = [
        mechanism.estimate(mechanism.perturb_and_tally(zipf(900)))
        for mechanism in (made("grr", 1), made("grr", 1, epsilon=2.0))
    ]
    weights = list(range(20))
    both, apart = linear(estimates[0] + estimates[1], weights), [linear(one, weights) for one in estimates]
    assert both.exact == sum(one.exact for one in apart)
    assert both.variance == sum(one.variance for one in apart)


# What is known exactly


@pytest.mark.parametrize(("name", "bins"), EVERY)
def test_the_whole_domain_has_no_error(name: str, bins: int) -> None:
    found = range_total(drawn(name, bins), 0, 19)
    assert found.exact == 500
    assert found.standard_error == 0
    assert (found.low, found.high) == (500.0, 500.0)


@pytest.mark.parametrize(("first", "last"), [(0, 4), (5, 9), (5, 14), (15, 19), (0, 14)])
def test_whole_disclosed_bins_have_no_error(first: int, last: int) -> None:
    found, values = range_total(drawn("brr", 4), first, last), zipf(500)
    held = int(((values >= first) & (values <= last)).sum())
    assert found.exact == held
    assert found.standard_error == 0
    assert found.low == found.high == held


@pytest.mark.parametrize(("name", "bins"), SUMMING)
def test_estimates_that_sum_to_n_show_no_error_in_their_sum(name: str, bins: int) -> None:
    found = linear(drawn(name, bins), [1] * 20)
    assert found.exact == 500
    assert found.standard_error == 0


@pytest.mark.parametrize(("name", "bins"), EVERY)
@pytest.mark.parametrize("last", [0, 3, 9, 11, 18])
def test_a_range_and_its_complement_sum_to_n(name: str, bins: int, last: int) -> None:
    estimate = drawn(name, bins)
    one, other = range_total(estimate, 0, last), range_total(estimate, last + 1, 19)
    assert one.exact + other.exact == 500
    assert one.standard_error == other.standard_error
    if (name, bins) in SUMMING:
        assert one.exact == sum(estimate.exact[: last + 1])


@pytest.mark.parametrize(("name", "bins"), EVERY)
def test_a_range_of_one_value_is_that_value(name: str, bins: int) -> None:
    estimate = drawn(name, bins)
    low, high = estimate.interval(LEVEL)
    for place in (0, 7, 19):
        found = range_total(estimate, place, place)
        assert found.exact == estimate.exact[place]
        assert float(found.variance) == pytest.approx(estimate.variance[place], rel=1e-12)
        assert (found.low, found.high) == (low[place], high[place])


def test_a_range_of_sets_of_values_is_counted_as_one_value_is() -> None:
    """Under grr the records of a range are a value of a coarser response: same law as a cell with p and q raised."""
    mechanism = made("grr", 1, 4)
    channel = mechanism.channel()
    for records in (2, 10, 17):
        for held in range(records + 1):
            p, q = channel[0, :2].sum(), channel[2, :2].sum()
            law: Floats = np.convolve(_binomial(held, float(p)), _binomial(records - held, float(q)))
            hit = 0.0
            for support, chance in enumerate(law.tolist()):
                found = range_total(mechanism.estimate(Tally.of([support, 0, records - support, 0])), 0, 1)
                hit += chance * (found.low <= held <= found.high)
            assert hit >= LEVEL - 1e-9


def _binomial(trials: int, chance: float) -> Floats:
    return np.asarray(stats.binom.pmf(np.arange(trials + 1), trials, chance))


# Bounds


def test_bounds_of_bounded_contributions_hold_for_the_worst_binomials() -> None:
    for records in (1, 2, 10, 17, 200):
        for chance in (0.001, 0.03, 0.2, 0.5):
            variance = records * chance * (1 - chance)
            for level in (0.9, 0.95, 0.99):
                reach = bounded_reach(variance, 1.0, float(records), level)
                law = stats.binom(records, chance)
                off = np.abs(np.arange(records + 1) - records * chance)
                assert float(law.pmf(np.arange(records + 1))[off <= reach + 1e-12].sum()) >= level


@pytest.mark.parametrize("weights", [(1.0, 2.0), (1.0, 0.1), (3.0, -1.0), (1.0, 1.0)])
@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(9)])
def test_bounds_of_unequal_laplace_noise_hold_by_the_exact_law(weights: tuple[float, float], scale: Fraction) -> None:
    places = np.arange(-300, 301)
    law = np.array([probability(scale, int(place)) for place in places])
    sums = np.abs(np.add.outer(weights[0] * places, weights[1] * places))
    reach = laplace_reach(scale, 1, np.array(weights), LEVEL)
    assert float(np.outer(law, law)[sums <= reach + 1e-9].sum()) >= LEVEL


Truth = Callable[[int], Ints]
TRUTHS: tuple[tuple[str, Truth], ...] = (
    ("zipf", zipf),
    ("lowest", lambda records: np.zeros(records, dtype=np.int64)),
    ("between", lambda records: np.arange(records) % 2 + 7),
)


def covered(mechanism: Mechanism, values: Ints, repeats: int) -> Counter[str]:
    """How often the bounds of each statistic hold."""
    ranked, records = np.sort(values), values.size
    hits = Counter[str]()
    for _ in range(repeats):
        estimate = mechanism.estimate(mechanism.perturb_and_tally(values))
        numbers = {
            "range": (range_total(estimate, 2, 6), float(((values >= 2) & (values <= 6)).sum())),
            "wide range": (range_total(estimate, 0, 12), float((values <= 12).sum())),
            "mean": (mean(estimate, range(20)), float(values.mean())),
        }
        for name, (found, true) in numbers.items():
            hits[name] += found is None or found.low - 1e-9 <= true <= found.high + 1e-9
        for name, share in (("median", Fraction(1, 2)), ("last tenth", Fraction(9, 10))):
            place = quantile(estimate, share)
            true_place = int(ranked[-int(-share * records // 1) - 1])
            hits[name] += place is None or place.low <= true_place <= place.high
    return hits


def check_coverage(name: str, bins: int, records: int, repeats: int) -> None:
    for label, truth in TRUTHS:
        hits = covered(made(name, bins, label=f"{label} {records} {repeats}"), truth(records), repeats)
        for statistic, count in hits.items():
            chance = float(stats.binom.cdf(count, repeats, LEAST))
            assert chance >= bonferroni(200), f"{statistic} of {label}: {count} of {repeats}"


@pytest.mark.parametrize("records", [2, 10, 17, 200, 2000])
@pytest.mark.parametrize(("name", "bins"), [("grr", 1), ("brr", 4), ("ss", 1), ("oue", 1)])
def test_bounds_hold_often_enough_in_cells_of_any_size(name: str, bins: int, records: int) -> None:
    check_coverage(name, bins, records, 20)


@pytest.mark.nightly
@pytest.mark.parametrize("records", [2, 10, 17, 200, 2000])
@pytest.mark.parametrize(("name", "bins"), [item for item in EVERY if item[0] not in ("cms", "hcms")])
def test_bounds_hold_often_enough_in_cells_of_any_size_by_many_draws(name: str, bins: int, records: int) -> None:
    check_coverage(name, bins, records, 400)


def test_ignoring_covariance_would_be_seen_in_coverage() -> None:
    """The difference of two values: the planted fault adds variances only, and its bounds are too narrow."""
    mechanism, values, repeats = made("grr", 1, 2, label="difference"), zipf(3000, 2), 400
    true = float((values == 0).sum() - (values == 1).sum())
    hits, faulty = 0, 0
    for _ in range(repeats):
        estimate = mechanism.estimate(mechanism.perturb_and_tally(values))
        found = linear(estimate, [1, -1])
        hits += found.low <= true <= found.high
        faulty += abs(found.value - true) <= 1.96 * sqrt(estimate.variance.sum())
    assert stats.binom.cdf(hits, repeats, LEAST) >= bonferroni(2)
    assert stats.binom.cdf(faulty, repeats, LEAST) < bonferroni(2)


# Means


@pytest.mark.parametrize(("name", "bins"), EVERY)
def test_a_mean_moves_with_its_points(name: str, bins: int) -> None:
    estimate = drawn(name, bins)
    near, far = mean(estimate, range(20)), mean(estimate, [3 * place + 10**6 for place in range(20)])
    assert near is not None and far is not None
    assert far.exact == 3 * near.exact + 10**6
    assert far.standard_error == pytest.approx(3 * near.standard_error, rel=1e-9)
    assert far.low == pytest.approx(3 * near.low + 10**6, rel=1e-12)
    if (name, bins) in SUMMING:
        assert near.exact == sum(place * count for place, count in enumerate(estimate.exact)) / 500


def test_the_error_of_a_mean_without_the_known_total_would_be_far_larger() -> None:
    estimate = drawn("oue", 1)
    years = [1980 + place for place in range(20)]
    found = mean(estimate, years)
    assert found is not None
    assert found.standard_error < linear(estimate, years).standard_error / 500 / 100


def test_points_are_the_values_or_the_middles_of_intervals() -> None:
    assert points_of(parse_domain("15..99"))[:2] == (Fraction(15), Fraction(16))
    assert points_of(parse_domain("0..100:5"))[1] == Fraction(5)
    assert points_of(parse_domain("[0, 0.1, 10]")) == (Fraction(1, 20), Fraction(101, 20))
    with pytest.raises(ConfigurationError):
        points_of(parse_domain("a,b"))


def test_nothing_has_no_mean_and_no_quantile() -> None:
    for name, bins in EVERY[:-1]:
        mechanism = made(name, bins)
        empty = mechanism.estimate(mechanism.perturb_and_tally(np.zeros(0, dtype=np.int64)))
        assert mean(empty, range(20)) is None
        assert quantile(empty, 0.5) is None
        assert range_total(empty, 0, 5).high == 0


def without_count(records: int, label: str) -> tuple[Mechanism, Ints]:
    coins = Named(f"derived without a count {label}")
    mechanism = create("histogram-laplace", domain_size=20, epsilon=0.5, neighbours="add-or-remove", randomness=coins)
    return mechanism, zipf(records)


@pytest.mark.parametrize("records", [2, 17, 200, 2000])
def test_where_n_is_not_told_bounds_of_ratios_hold(records: int) -> None:
    mechanism, values = without_count(records, str(records))
    repeats = 40
    for name, count in covered(mechanism, values, repeats).items():
        assert stats.binom.cdf(count, repeats, LEAST) >= bonferroni(20), name


def test_the_error_of_a_ratio_is_that_of_both_its_parts() -> None:
    mechanism, values = without_count(3000, "delta")
    found = [mean(mechanism.estimate(mechanism.perturb_and_tally(values)), range(100, 120)) for _ in range(100)]
    numbers = np.array([item.value for item in found if item is not None])
    stated = sum(float(item.variance) for item in found if item is not None) / 100
    ratio = float(numbers.var(ddof=1)) / stated * 99
    tail = bonferroni(2)
    assert numbers.size == 100
    assert stats.chi2.ppf(tail, 99) < ratio < stats.chi2.isf(tail, 99)
    numerator_alone = 20 * 8 * 110**2 / 3000**2  # the planted fault: as if n were exact
    assert not stats.chi2.ppf(tail, 99) < float(numbers.var(ddof=1)) / numerator_alone * 99


# Quantiles


def test_quantiles_of_nearly_clear_reports_are_those_of_the_records() -> None:
    mechanism, values = made("grr", 1, epsilon=16.0), np.sort(zipf(1000))
    estimate = mechanism.estimate(mechanism.perturb_and_tally(values))
    for share in (0.1, 0.25, 0.5, 0.9, 0.99):
        found = quantile(estimate, share)
        assert found is not None
        assert found.low <= found.index <= found.high
        assert found.index == values[-int(-share * 1000 // 1) - 1]
        assert found.high - found.low <= 1


def test_a_quantile_is_the_first_place_the_running_maximum_reaches() -> None:
    estimate = drawn("brr-sealed", 4)
    sums = np.maximum.accumulate(np.cumsum(estimate.frequency))
    for share in np.arange(0.05, 1, 0.09).tolist():
        found = quantile(estimate, share)
        assert found is not None
        assert found.index == int(np.searchsorted(sums, share * 500))


def test_the_upper_bound_at_the_first_crossing_would_not_hold_often_enough() -> None:
    """The planted fault: lower bounds of many places, and one of them too high by chance suffices."""
    mechanism, repeats, size, wanted, level = made("oue", 1, 40, 0.5, label="crossing"), 150, 40, 1200, 0.5
    place = size // 2 - 1
    values = np.repeat([0, place], [wanted - 1, 4000])  # up to the quantile's place one record is missing
    hits, faulty = 0, 0
    for _ in range(repeats):
        estimate = mechanism.estimate(mechanism.perturb_and_tally(values))
        found = quantile(estimate, Fraction(wanted, values.size), level)
        assert found is not None
        hits += place <= found.high
        statistics = LinearStatistics(estimate)
        faulty += not any(range_total(statistics, 0, before, level).low >= wanted for before in range(place))
    assert stats.binom.cdf(hits, repeats, 1 - (1 - level) / 2) >= bonferroni(2)
    assert stats.binom.cdf(faulty, repeats, 1 - (1 - level) / 2) < bonferroni(2)


# Large domains, channels, refusals


@pytest.mark.parametrize(("name", "bins"), [("grr", 1), ("brr", 50), ("oue", 1), ("hr", 1), ("histogram-laplace", 1)])
def test_domains_too_large_for_a_matrix_need_none(name: str, bins: int) -> None:
    mechanism = made(name, bins, 5000, 4.0)
    estimate = mechanism.estimate(mechanism.perturb_and_tally(zipf(2000, 5000)))
    found = linear(estimate, np.arange(5000))
    assert found.standard_error > 0
    assert found.low <= found.value <= found.high or found.low == 0


def test_laws_that_need_the_matrix_say_so_where_it_is_too_large() -> None:
    mechanism = made("cms", 1, 4100)
    with pytest.raises(ConfigurationError, match="4096"):
        linear(mechanism.estimate(mechanism.perturb_and_tally(zipf(50, 4100))), np.arange(4100))


@pytest.mark.parametrize(
    ("name", "bins", "size"), [("grr", 1, 7), ("brr", 3, 11), ("brr-sealed", 3, 11), ("hr", 1, 11), ("hr", 1, 40)]
)
def test_channels_without_a_matrix_are_those_with_one(name: str, bins: int, size: int) -> None:
    mechanism = made(name, bins, size)
    channel = channel_of(mechanism.law)
    matrix: Floats = mechanism.channel()
    assert channel is not None
    counts, worth = np.linspace(1, 5, size) ** 2, np.linspace(-1, 2, matrix.shape[1]) ** 3
    np.testing.assert_allclose(channel.expected(counts), counts @ matrix, rtol=1e-12)
    np.testing.assert_allclose(channel.average(worth), matrix @ worth, rtol=1e-10, atol=1e-14)


REFUSED: tuple[Callable[[Estimate], Any], ...] = (
    lambda estimate: linear(estimate, [1, 2]),
    lambda estimate: linear(estimate, [float("nan")] * 20),
    lambda estimate: linear(estimate, [float("inf")] * 20),
    lambda estimate: linear(estimate, [1] * 20, level=1.0),
    lambda estimate: range_total(estimate, 3, 2),
    lambda estimate: range_total(estimate, -1, 2),
    lambda estimate: range_total(estimate, 0, 20),
    lambda estimate: mean(estimate, [1, 2]),
    lambda estimate: quantile(estimate, 1.0),
    lambda estimate: quantile(estimate, 0.0),
)


@pytest.mark.parametrize("asked", REFUSED)
def test_questions_without_an_answer_are_refused(asked: Callable[[Estimate], Any]) -> None:
    with pytest.raises(ConfigurationError):
        asked(drawn("grr", 1))
