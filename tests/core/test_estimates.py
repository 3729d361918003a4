"""Estimates against the exact law of their channel: mean, covariance, sums and intervals, by algebra and enumeration.

Not here: drawing (`test_randomised_response`). Nothing is sampled: expectations are sums over every outcome that has
a probability worth counting.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deterministic import Named
from tallyveil.errors import ConfigurationError, PeerError
from tallyveil.mechanisms import Estimate, Tally, create
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.mechanisms.quality import quality_letter
from tallyveil.survey import BINNED, MECHANISMS

Floats = NDArray[np.float64]
Law = dict[tuple[int, ...], Fraction]

LEVEL = 0.95
DESIGNS = (
    ("grr", 2, 1, 0.2),
    ("grr", 3, 1, 1.0),
    ("grr", 5, 1, 2.0),
    ("brr", 5, 2, 2.0),
    ("brr", 7, 3, 0.5),
    ("brr", 11, 4, 6.0),
)


def counts_of(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.one_of(st.just(0), st.integers(0, 30), st.integers(0, 2**40)), min_size=size, max_size=size)


def design(values: tuple[str, int, int, float]) -> BlockResponse:
    name, size, bins, epsilon = values
    mechanism = create(name, domain_size=size, bins=bins, epsilon=epsilon)
    assert isinstance(mechanism, BlockResponse)
    return mechanism


BINNINGS = (("grr", 2, 1), ("grr", 9, 1), ("brr", 9, 2), ("brr", 9, 4), ("brr", 85, 16), ("grr", 300, 1))
mechanisms = st.sampled_from([design((*item, epsilon)) for item in BINNINGS for epsilon in (0.01, 0.3, 2.0, 6.0, 16.0)])


def exact_channel(mechanism: BlockResponse) -> list[list[Fraction]]:
    """The channel as rationals, built from the bins and their integer weights alone."""
    blocks, binning = mechanism.blocks, mechanism.blocks.binning
    rows: list[list[Fraction]] = []
    for truth in range(mechanism.domain_size):
        weights = blocks.weights[int(binning.bin_of[truth])]
        rows.append(
            [
                weights.p
                if report == truth
                else weights.q
                if binning.bin_of[report] == binning.bin_of[truth]
                else Fraction(0)
                for report in range(mechanism.domain_size)
            ]
        )
    return rows


def support_law(mechanism: BlockResponse, counts: tuple[int, ...]) -> Law:
    """The exact law of the support counts, record by record."""
    channel = exact_channel(mechanism)
    law: Law = {(0,) * mechanism.domain_size: Fraction(1)}
    for truth, count in enumerate(counts):
        for _ in range(count):
            grown: Law = {}
            for support, chance in law.items():
                for report, step in enumerate(channel[truth]):
                    if step:
                        key = (*support[:report], support[report] + 1, *support[report + 1 :])
                        grown[key] = grown.get(key, Fraction(0)) + chance * step
            law = grown
    return law


def estimate_of(mechanism: BlockResponse, support: tuple[int, ...]) -> Estimate:
    return mechanism.estimate(Tally.of(support))


SMALL = (
    (("grr", 2, 1, 0.2), (3, 2)),
    (("grr", 3, 1, 1.0), (4, 0, 1)),
    (("grr", 3, 1, 16.0), (1, 2, 0)),
    (("grr", 4, 1, 2.0), (2, 1, 0, 1)),
    (("brr", 5, 2, 2.0), (1, 0, 2, 1, 1)),
    (("brr", 4, 2, 0.01), (0, 0, 3, 1)),
)


@pytest.mark.parametrize(("values", "counts"), SMALL)
def test_estimates_and_their_variances_are_unbiased_under_the_exact_law(
    values: tuple[str, int, int, float], counts: tuple[int, ...]
) -> None:
    mechanism = design(values)
    law = support_law(mechanism, counts)
    assert sum(law.values()) == 1
    size = len(counts)
    mean, stated = [Fraction(0)] * size, [Fraction(0)] * size
    second = [[Fraction(0)] * size for _ in counts]
    for support, chance in law.items():
        estimate = estimate_of(mechanism, support)
        for v in range(size):
            mean[v] += chance * estimate.exact[v]
            stated[v] += chance * estimate.exact_variance[v]
            for w in range(size):
                second[v][w] += chance * estimate.exact[v] * estimate.exact[w]
    assert mean == list(counts)
    covariance = [[second[v][w] - mean[v] * mean[w] for w in range(size)] for v in range(size)]
    assert stated == [covariance[v][v] for v in range(size)]
    np.testing.assert_allclose(mechanism.covariance(counts), np.array(covariance, dtype=float), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mechanism.variance(counts), [float(item) for item in stated], rtol=1e-9)


@pytest.mark.parametrize(("values", "counts"), SMALL)
def test_the_estimated_covariance_is_unbiased_under_the_exact_law(
    values: tuple[str, int, int, float], counts: tuple[int, ...]
) -> None:
    mechanism = design(values)
    mean = np.zeros((len(counts), len(counts)))
    for support, chance in support_law(mechanism, counts).items():
        mean += float(chance) * estimate_of(mechanism, support).covariance()
    truth = mechanism.covariance(counts)
    np.testing.assert_allclose(mean, truth, rtol=1e-9, atol=1e-9 * float(np.abs(truth).max()))


@pytest.mark.parametrize("values", DESIGNS)
def test_covariance_follows_from_the_channel_by_algebra(values: tuple[str, int, int, float]) -> None:
    """Cov C = Σ_v c_v (diag P_v − P_v P_vᵀ); the estimates are a linear map A of C, so theirs is A Cov(C) Aᵀ."""
    mechanism = design(values)
    size, binning = mechanism.domain_size, mechanism.blocks.binning
    channel = exact_channel(mechanism)
    counts = [3 * value**2 + 1 if value % 3 else 0 for value in range(size)]
    support_covariance = [
        [
            sum(
                (
                    count * ((row[v] if v == w else 0) - row[v] * row[w])
                    for count, row in zip(counts, channel, strict=True)
                ),
                Fraction(0),
            )
            for w in range(size)
        ]
        for v in range(size)
    ]
    weights = [mechanism.blocks.weights[int(number)] for number in binning.bin_of]
    linear = np.array(
        [
            [
                (int(v == w) - (weights[v].q if binning.bin_of[v] == binning.bin_of[w] else 0))
                / (weights[v].p - weights[v].q)
                for w in range(size)
            ]
            for v in range(size)
        ],
        dtype=object,
    )
    expected = linear @ np.array(support_covariance, dtype=object) @ linear.T
    scale = float(np.abs(expected.astype(float)).max())
    np.testing.assert_allclose(mechanism.covariance(counts), expected.astype(float), rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(mechanism.variance(counts), np.diag(expected).astype(float), rtol=1e-9)
    mean = linear @ np.array(channel, dtype=object).T @ np.array(counts, dtype=object)
    assert mean.tolist() == counts


@pytest.mark.parametrize("values", DESIGNS)
def test_the_channel_is_the_exact_one_and_its_rows_sum_to_one(values: tuple[str, int, int, float]) -> None:
    mechanism = design(values)
    exact = exact_channel(mechanism)
    assert all(sum(row) == 1 for row in exact)
    np.testing.assert_allclose(mechanism.channel(), np.array(exact, dtype=float), rtol=1e-15)
    np.testing.assert_allclose(mechanism.channel().sum(axis=1), 1, rtol=1e-14)


def test_the_stated_variance_is_the_textbooks() -> None:
    mechanism = create("grr", domain_size=85, epsilon=2.0)
    p, q, n, c = 0.0808527, 0.0109422, 16_685, 2
    counts = np.zeros(85)
    counts[0], counts[1] = c, n - c
    expected = (c * p * (1 - p) + (n - c) * q * (1 - q)) / (p - q) ** 2
    assert mechanism.variance(counts)[0] == pytest.approx(expected, rel=2e-5)
    assert sqrt(mechanism.variance(counts)[0]) == pytest.approx(192.28, abs=0.01)  # by another program


def test_variances_of_real_valued_truths_are_linear() -> None:
    mechanism = create("brr", domain_size=7, bins=3, epsilon=1.0)
    a, b = np.linspace(0, 3, 7), np.linspace(5, 1, 7)
    np.testing.assert_allclose(
        mechanism.variance(0.25 * a + 0.75 * b), 0.25 * mechanism.variance(a) + 0.75 * mechanism.variance(b)
    )


@given(mechanisms, st.data())
@settings(deadline=None)
def test_estimates_of_a_bin_sum_to_its_records_exactly(mechanism: BlockResponse, data: st.DataObject) -> None:
    tally = Tally.of(data.draw(counts_of(mechanism.domain_size)))
    estimate, binning = mechanism.estimate(tally), mechanism.blocks.binning
    for start, size in zip(binning.starts.tolist(), binning.sizes.tolist(), strict=True):
        assert sum(estimate.exact[start : start + size]) == int(tally.counts[start : start + size].sum())


@given(mechanisms, st.data())
@settings(deadline=None)
def test_variances_are_never_negative_and_the_floats_agree(mechanism: BlockResponse, data: st.DataObject) -> None:
    estimate = mechanism.estimate(Tally.of(data.draw(counts_of(mechanism.domain_size))))
    assert min(estimate.exact_variance) >= 0
    np.testing.assert_allclose(estimate.variance, [float(item) for item in estimate.exact_variance], rtol=1e-15)
    np.testing.assert_allclose(estimate.standard_error**2, estimate.variance, rtol=1e-14)
    np.testing.assert_allclose(estimate.frequency, [float(item) for item in estimate.exact], rtol=1e-15)
    of_estimates = mechanism.variance(estimate.frequency)
    np.testing.assert_allclose(of_estimates, estimate.variance, rtol=1e-6, atol=1e-6 * float(estimate.variance.max()))


@given(mechanisms, st.data())
@settings(deadline=None, max_examples=40)
def test_the_covariance_of_a_whole_bin_is_nothing(mechanism: BlockResponse, data: st.DataObject) -> None:
    """The sum of a bin is known exactly, so rows of the covariance sum to zero within each bin."""
    estimate = mechanism.estimate(Tally.of(data.draw(counts_of(mechanism.domain_size))))
    matrix = estimate.covariance()
    sums = np.add.reduceat(matrix, mechanism.blocks.binning.starts, axis=1)
    assert np.abs(sums).max() <= 1e-6 * max(float(np.abs(matrix).max()), 1)
    np.testing.assert_allclose(np.diag(matrix), estimate.variance, rtol=1e-6, atol=1e-6 * float(np.diag(matrix).max()))


@given(mechanisms, st.data())
@settings(deadline=None, max_examples=60)
def test_estimates_of_added_tallies_and_added_estimates_are_the_sum(
    mechanism: BlockResponse, data: st.DataObject
) -> None:
    one, two = (Tally.of(data.draw(counts_of(mechanism.domain_size))) for _ in range(2))
    apart = mechanism.estimate(one) + mechanism.estimate(two)
    together = mechanism.estimate(one + two)
    assert apart.exact == together.exact
    assert apart.exact_variance == together.exact_variance
    np.testing.assert_array_equal(apart.frequency, together.frequency)


def test_estimates_of_different_epsilons_add_with_their_variances() -> None:
    strict, lax = (create("brr", domain_size=5, bins=2, epsilon=epsilon) for epsilon in (0.5, 2.0))
    one, two = strict.estimate(Tally.of([5, 3, 1, 0, 2])), lax.estimate(Tally.of([1, 0, 0, 9, 4]))
    total = one + two
    assert total.exact == tuple(a + b for a, b in zip(one.exact, two.exact, strict=True))
    assert total.exact_variance == tuple(a + b for a, b in zip(one.exact_variance, two.exact_variance, strict=True))
    np.testing.assert_allclose(total.covariance(), one.covariance() + two.covariance())


def test_tallies_add_compare_and_show_their_counts() -> None:
    one, two = Tally.of([1, 2, 0]), Tally.of(np.array([0, 0, 5]))
    assert one + two == Tally.of([1, 2, 5])
    assert (one + two).records == 8
    assert one != two
    assert one != "a tally"
    assert np.asarray(one).tolist() == [1, 2, 0]


@pytest.mark.parametrize("counts", [[1, -1], [2**53], [2**52, 2**52], [2**63], [-(2**70), 2**70], [2**53 - 1] * 2_049])
def test_a_tally_nobody_can_have_sent_is_refused(counts: list[int]) -> None:
    """Counts below 2^53 each may still add up to a small number in 64 bits; no sum may wrap round."""
    with pytest.raises(PeerError):
        Tally.of(counts)


def test_tallies_and_estimates_of_another_domain_are_refused() -> None:
    with pytest.raises(PeerError):
        _ = Tally.of([1, 2]) + Tally.of([1, 2, 3])
    with pytest.raises(PeerError):
        create("grr", domain_size=3, epsilon=1.0).estimate(Tally.of([1, 2]))
    small, large = (create("grr", domain_size=size, epsilon=1.0).estimate(Tally.of([1] * size)) for size in (2, 3))
    with pytest.raises(PeerError):
        _ = small + large


def test_matrices_of_a_huge_domain_are_refused_not_begun() -> None:
    mechanism = create("grr", domain_size=65_536, epsilon=1.0)
    for make in (mechanism.channel, lambda: mechanism.covariance(np.zeros(65_536))):
        with pytest.raises(ConfigurationError):
            make()


@pytest.mark.parametrize(
    ("estimate", "error", "letter"),
    [
        (100.0, 4.9, "A"),
        (100.0, 5.0, "B"),
        (100.0, 14.9, "B"),
        (100.0, 15.0, "C"),
        (100.0, 25.0, "D"),
        (100.0, 34.9, "D"),
        (100.0, 35.0, "E"),
        (0.0, 0.0, "E"),
        (-5.0, 0.1, "E"),
    ],
)
def test_quality_letters_change_where_the_design_says(estimate: float, error: float, letter: str) -> None:
    assert quality_letter(estimate, error) == letter


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_covariance_s_diagonal_is_the_variance(name: str) -> None:
    made = create(name, domain_size=8, epsilon=1.0, bins=2 if name in BINNED else 1, randomness=Named(f"cov {name}"))
    parts = [made.perturb_and_tally(np.arange(200) % 8) for _ in range(3)]
    estimate = made.estimate(parts[0] + parts[1] + parts[2])
    assert np.allclose(np.diag(estimate.covariance()), estimate.variance)
    assert (estimate.variance > 0).all()


def test_covariance_is_worked_out_at_n_and_not_at_the_estimates_own_sum() -> None:
    """At K = 1024 the sum of unary estimates strays from n by as much as n itself; the errors must not."""
    made = create("oue", domain_size=1024, epsilon=1.0, randomness=Named("stray sums"))
    counts = np.full(1024, 20)
    weights = (np.arange(1024) < 100).astype(np.float64)
    exact = float(weights @ made.covariance(counts) @ weights)
    for _ in range(3):
        estimate = made.estimate(made.perturb_and_tally(np.repeat(np.arange(1024), counts)))
        assert float(weights @ estimate.covariance() @ weights) == pytest.approx(exact, rel=0.02)
