"""Intervals of true counts: how often they cover, summed over every outcome of the exact law.

Not here: the estimates inside them (`test_estimates`). Nothing is sampled.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tallyveil.epsilon import to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import Tally, create
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.mechanisms.interval import count_interval, is_nearly_normal, normal_quantile
from tallyveil.mechanisms.weights import Weights, response_weights

Floats = NDArray[np.float64]

LEVEL = 0.95


@cache
def binomial(trials: int, chance: Fraction) -> Floats:
    """Exact to a rounding: each probability is a rational made a float."""
    return np.array([float(comb(trials, k) * chance**k * (1 - chance) ** (trials - k)) for k in range(trials + 1)])


def exact_law(records: int, count: int, weights: Weights) -> Floats:
    """The law of the support count of a value that `count` of `records` hold."""
    return np.convolve(binomial(count, weights.p), binomial(records - count, weights.q))


SIZES_AND_EPSILONS = tuple(
    (size, epsilon) for size, epsilon in product((2, 3, 5, 6, 85), (0.01, 0.2, 1.0, 2.0, 6.0, 16.0))
)


@pytest.mark.parametrize(("size", "epsilon"), SIZES_AND_EPSILONS)
def test_intervals_of_the_exact_law_cover_every_true_count(size: int, epsilon: float) -> None:
    weights = response_weights(size, to_nano(epsilon))
    for records in (1, 2, 3, 5, 8, 13, 30):
        bounds = [count_interval(support, records, weights, LEVEL) for support in range(records + 1)]
        for count in range(records + 1):
            law = exact_law(records, count, weights)
            covered = [low <= count <= high for low, high in bounds]
            assert float(law @ covered) >= LEVEL - 1e-9


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99, 0.999])
def test_intervals_of_other_levels_cover_as_often_as_asked(level: float) -> None:
    weights = response_weights(4, to_nano(1.0))
    bounds = [count_interval(support, 25, weights, level) for support in range(26)]
    for count in range(26):
        covered = [low <= count <= high for low, high in bounds]
        assert float(exact_law(25, count, weights) @ covered) >= level - 1e-9


def wide_law(records: int, count: int, weights: Weights) -> tuple[NDArray[np.int64], Floats]:
    """Support counts and probabilities that make up all but 1e-12 of the law, for many records."""

    def part(trials: int, chance: float) -> tuple[int, Floats]:
        law = stats.binom(trials, chance)
        low, high = (int(law.ppf(1e-13)), int(law.ppf(1 - 1e-13))) if trials else (0, 0)
        return low, np.asarray(law.pmf(np.arange(low, high + 1)), dtype=np.float64) if trials else np.ones(1)

    kept, first = part(count, float(weights.p))
    lied, second = part(records - count, float(weights.q))
    law = np.convolve(first, second)
    return kept + lied + np.arange(law.size), law


def covered_by(records: int, count: int, weights: Weights) -> float:
    """P(the interval covers count); bounds rise with the support (tested below), so its two ends tell which cover."""
    supports, law = wide_law(records, count, weights)
    within = range(supports.size)
    first = bisect_left(
        within, True, key=lambda i: count_interval(int(supports[i]), records, weights, LEVEL)[1] >= count
    )
    end = bisect_left(within, True, key=lambda i: count_interval(int(supports[i]), records, weights, LEVEL)[0] > count)
    return float(law[first:end].sum())


@pytest.mark.parametrize(
    ("size", "epsilon"), [(2, 0.2), (3, 1.0), (5, 2.0), (6, 6.0), (85, 2.0), (85, 0.2), (1024, 2.0)]
)
@pytest.mark.parametrize("times", [1.0, 1.3, 8.0])
def test_intervals_of_the_normal_law_cover_nearly_as_often(size: int, epsilon: float, times: float) -> None:
    weights = response_weights(size, to_nano(epsilon))
    q = float(weights.q)
    records = int(200 * times / (q * (1 - q))) + 1
    assert is_nearly_normal(records, weights)
    for count in sorted({0, 1, 7, records // 100, records // 3, records - 5, records}):
        assert covered_by(records, count, weights) >= 0.945


@pytest.mark.parametrize(("size", "epsilon"), [(3, 1.0), (85, 2.0), (85, 6.0)])
def test_intervals_cover_enough_on_the_exact_side_of_the_change_of_laws(size: int, epsilon: float) -> None:
    weights = response_weights(size, to_nano(epsilon))
    q = float(weights.q)
    records = int(200 / (q * (1 - q)))
    assert not is_nearly_normal(records, weights)
    for count in (0, 1, records // 50, records):
        assert covered_by(records, count, weights) >= LEVEL - 1e-9


@pytest.mark.parametrize("records", [0, 1, 2, 17, 150, 2_000, 5_000])
@pytest.mark.parametrize(("size", "epsilon"), [(2, 0.01), (5, 2.0), (85, 2.0), (6, 16.0)])
def test_intervals_lie_within_the_records_and_rise_with_the_support(records: int, size: int, epsilon: float) -> None:
    weights = response_weights(size, to_nano(epsilon))
    supports = sorted({*range(0, records + 1, max(records // 150, 1)), records})
    bounds = [count_interval(support, records, weights, LEVEL) for support in supports]
    assert all(0 <= low <= high <= records for low, high in bounds)
    lows, highs = zip(*bounds, strict=True)
    assert list(lows) == sorted(lows)
    assert list(highs) == sorted(highs)


@given(st.integers(0, 400), st.integers(0, 400), st.integers(2, 90), st.sampled_from([0.01, 0.5, 2.0, 6.0, 16.0]))
@settings(deadline=None)
def test_a_wider_level_never_gives_a_narrower_interval(support: int, more: int, size: int, epsilon: float) -> None:
    weights, records = response_weights(size, to_nano(epsilon)), support + more
    narrow, wide = (count_interval(support, records, weights, level) for level in (0.8, 0.99))
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_level_that_is_none_is_refused(level: float) -> None:
    with pytest.raises(ConfigurationError):
        create("grr", domain_size=3, epsilon=1.0).estimate(Tally.of([1, 2, 3])).interval(level)


@pytest.mark.parametrize("epsilons", [(2.0, 1.0), (2.0, 0.1), (6.0, 1.0), (2.0, 1.0, 0.5)])
@pytest.mark.parametrize("size", [2, 4, 85])
def test_intervals_of_sums_over_different_epsilons_cover_small_counts(epsilons: tuple[float, ...], size: int) -> None:
    """Departments that chose different epsilons, each with few records: no normal law holds."""
    every = [create("grr", domain_size=size, epsilon=epsilon) for epsilon in epsilons]
    for records in ((1,) * len(every), (4, 6, 2)[: len(every)], (0, 5, 1)[: len(every)]):
        outcomes = {
            supports: interval_of(every, records, supports) for supports in product(*(range(n + 1) for n in records))
        }
        for counts in product(*(sorted({0, 1, n // 2, n} & set(range(n + 1))) for n in records)):
            laws = [
                exact_law(n, c, mechanism.blocks.weights[0])
                for n, c, mechanism in zip(records, counts, every, strict=True)
            ]
            covered = sum(
                float(np.prod([law[s] for law, s in zip(laws, supports, strict=True)]))
                for supports, (low, high) in outcomes.items()
                if low <= sum(counts) <= high
            )
            assert covered >= LEVEL - 1e-9


def interval_of(every: list[BlockResponse], records: tuple[int, ...], supports: tuple[int, ...]) -> tuple[float, float]:
    """The interval of value 0, whose reports are `supports`; all other reports are of value 1."""
    parts = [
        mechanism.estimate(Tally.of([s, n - s, *[0] * (mechanism.domain_size - 2)]))
        for mechanism, n, s in zip(every, records, supports, strict=True)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    low, high = total.interval(LEVEL)
    assert np.all(low >= 0) and np.all(low <= high) and np.all(high <= sum(records))
    return float(low[0]), float(high[0])


@pytest.mark.parametrize(("size", "epsilons"), [(2, (2.0, 1.0)), (4, (2.0, 0.2)), (85, (2.0, 0.5)), (6, (6.0, 1.0))])
@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.01, 0.0), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0)])
def test_intervals_of_sums_over_different_epsilons_cover_large_counts(
    size: int, epsilons: tuple[float, float], shares: tuple[float, float]
) -> None:
    """Where the normal law holds for both parts: coverage by summation over the support counts of both."""
    weights = [response_weights(size, to_nano(epsilon)) for epsilon in epsilons]
    records = [int(200 / (float(item.q) * (1 - float(item.q)))) + 1 for item in weights]
    counts = [int(share * n) for share, n in zip(shares, records, strict=True)]
    grids: list[NDArray[np.floating[Any]]] = []
    laws: list[Floats] = []
    variances: list[Floats] = []
    for item, n, c in zip(weights, records, counts, strict=True):
        supports, law = wide_law(n, c, item)
        p, q = float(item.p), float(item.q)
        estimates = (supports - n * q) / (p - q)
        grids.append(estimates)
        variances.append((estimates * p * (1 - p) + (n - estimates) * q * (1 - q)) / (p - q) ** 2)
        laws.append(law)
    reach = normal_quantile(LEVEL) * np.sqrt(variances[0][:, None] + variances[1][None, :])
    off = np.abs(grids[0][:, None] + grids[1][None, :] - sum(counts))
    assert float(laws[0] @ (off <= reach) @ laws[1]) >= 0.945


def test_bounds_of_the_normal_law_leave_the_tails_they_should() -> None:
    """Without the continuity correction they would leave 0.0231 and 0.0274."""
    weights, records = response_weights(2, to_nano(0.2)), 809
    assert is_nearly_normal(records, weights)
    for count in (400, 500):
        support = round(count * float(weights.p) + (records - count) * float(weights.q))
        low, high = count_interval(support, records, weights, LEVEL)
        assert 0 < low < high < records
        for bound, sign in ((low, 1), (high, -1)):
            supports, law = wide_law(records, bound, weights)
            beyond = float(law[sign * supports >= sign * support].sum())
            assert beyond == pytest.approx(0.025, abs=0.0005)


def test_the_joint_interval_of_few_records_shares_its_level_among_the_parts() -> None:
    every = [create("grr", domain_size=4, epsilon=epsilon) for epsilon in (2.0, 1.0, 0.5)]
    records, supports = (30, 20, 0), (11, 9, 0)
    shares = [
        count_interval(support, n, mechanism.blocks.weights[0], 1 - 0.05 / 2)
        for mechanism, n, support in zip(every[:2], records, supports, strict=False)
    ]
    assert interval_of(every, records, supports) == (sum(low for low, _ in shares), sum(high for _, high in shares))


def test_the_joint_interval_of_many_records_is_the_normal_one() -> None:
    one, two = (create("grr", domain_size=4, epsilon=epsilon) for epsilon in (2.0, 1.0))
    total = one.estimate(Tally.of([900, 700, 800, 900])) + two.estimate(Tally.of([600, 500, 700, 900]))
    low, high = total.interval(LEVEL)
    reach = 1.959963984540054 * total.standard_error
    np.testing.assert_allclose(low, total.frequency - reach)
    np.testing.assert_allclose(high, total.frequency + reach)
