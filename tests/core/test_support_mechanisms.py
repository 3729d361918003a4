"""Mechanisms whose reports support several values: their exact channels, laws and draws.

Not here: `grr` and `brr` (`test_randomised_response`, `test_estimates`).
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deterministic import Named
from significance import ALPHA, binomial_p, bonferroni, chi_square_p
from tallyveil.errors import ConfigurationError, InputError, PeerError
from tallyveil.mechanisms import Mechanism, Tally, create
from tallyveil.mechanisms.ss import SubsetSelection, best_size
from tallyveil.mechanisms.subset import column_sums, draw_members, draw_uniform
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.support_response import SupportResponse

NAMES = ("ss", "sue", "oue")
EPSILONS = (0.01, 0.2, log(3), 2.0, 6.0, 16.0)


def made(name: str, domain_size: int, epsilon: float, label: str = "support") -> SupportResponse:
    mechanism = create(
        name, domain_size=domain_size, epsilon=epsilon, randomness=Named(f"{label} {name} {domain_size}")
    )
    assert isinstance(mechanism, SupportResponse)
    return mechanism


def supports_of_outputs(mechanism: Mechanism) -> NDArray[np.float64]:
    """Which values each output of the channel supports, shape (outputs, K)."""
    size = mechanism.domain_size
    if mechanism.name != "ss":
        return np.array(list(product((0.0, 1.0), repeat=size)))
    assert isinstance(mechanism, SubsetSelection)
    return np.array(
        [[float(v in chosen) for v in range(size)] for chosen in combinations(range(size), mechanism.width)]
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 5, 9])
@pytest.mark.parametrize("name", NAMES)
def test_the_channel_s_largest_ratio_is_the_realised_epsilon_and_never_above(
    name: str, size: int, epsilon: float
) -> None:
    mechanism = made(name, size, epsilon)
    channel = mechanism.channel()
    assert np.allclose(channel.sum(axis=1), 1, rtol=0, atol=1e-12)
    largest = float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())
    realised = mechanism.guarantee.realised_epsilon
    assert largest == pytest.approx(realised, rel=1e-9)
    assert epsilon - 1e-5 <= realised <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [64, 1024, 65_536])
@pytest.mark.parametrize("name", NAMES)
def test_large_domains_realise_epsilon_too(name: str, size: int, epsilon: float) -> None:
    assert epsilon - 1e-5 <= made(name, size, epsilon).realised_epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
@pytest.mark.parametrize("size", [2, 5, 9])
@pytest.mark.parametrize("name", NAMES)
def test_the_law_is_that_of_the_channel(name: str, size: int, epsilon: float) -> None:
    """Mean and covariance of the estimates, by algebra over all outputs."""
    mechanism = made(name, size, epsilon)
    channel, supports, law = mechanism.channel(), supports_of_outputs(mechanism), mechanism.law
    p, q = float(law.p), float(law.q)
    counts = np.arange(size) * 3.0 + 1
    estimates_of_one = (supports - q) / (p - q)
    mean, second = np.zeros(size), np.zeros((size, size))
    for truth, count in enumerate(counts):
        expected = channel[truth] @ estimates_of_one
        spread = (estimates_of_one * channel[truth][:, None]).T @ estimates_of_one - np.outer(expected, expected)
        mean += count * expected
        second += count * spread
    assert np.allclose(mean, counts, rtol=1e-9, atol=1e-9)
    assert np.allclose(mechanism.covariance(counts), second, rtol=1e-9, atol=1e-9 * second.max())
    assert np.allclose(mechanism.variance(counts), np.diag(second), rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 6.0])
@pytest.mark.parametrize("size", [2, 4, 16, 64, 85, 256])
def test_subset_selection_has_the_size_of_least_variance(size: int, epsilon: float) -> None:
    def total(d: int) -> float:
        p = d * exp(epsilon) / (d * exp(epsilon) + size - d)
        q = (p * (d - 1) + (1 - p) * d) / (size - 1)
        return (p * (1 - p) + (size - 1) * q * (1 - q)) / (p - q) ** 2

    chosen = made("ss", size, epsilon)
    assert total(chosen.width) == pytest.approx(min(total(d) for d in range(1, size)), rel=1e-7)
    assert best_size(size, chosen.epsilon) == chosen.width


def test_subset_selection_of_size_one_is_grr() -> None:
    ss, grr = made("ss", 3, 2.0), create("grr", domain_size=3, epsilon=2.0)
    assert ss.width == 1
    assert np.allclose(ss.channel(), grr.channel())
    assert np.allclose(ss.variance([5, 6, 7]), grr.variance([5, 6, 7]))


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
@pytest.mark.parametrize("size", [2, 6, 85])
@pytest.mark.parametrize("name", NAMES)
def test_reports_support_the_truth_with_p_and_others_with_q(name: str, size: int, epsilon: float) -> None:
    records, truth = 40_000, size // 2
    mechanism = made(name, size, epsilon)
    counts = mechanism.tally(mechanism.perturb(np.full(records, truth))).counts
    level = bonferroni(2 * 3 * 3 * size)
    for value, count in enumerate(counts.tolist()):
        chance = mechanism.law.p if value == truth else mechanism.law.q
        assert binomial_p(count, records, float(chance)) > level, value
        wrong = float(chance) * 1.2
        if float(chance) > 0.1 and wrong < 1:
            assert binomial_p(count, records, wrong) < level, "the test would not see a wrong chance"


def test_every_subset_is_as_likely_as_the_channel_says() -> None:
    mechanism, records = made("ss", 7, 0.5), 300_000
    reports = mechanism.perturb(np.full(records, 3))
    sets = list(combinations(range(7), mechanism.width))
    assert mechanism.width == 3
    index = {chosen: number for number, chosen in enumerate(sets)}
    seen = np.bincount([index[tuple(row)] for row in reports.tolist()], minlength=len(sets))
    assert chi_square_p(seen, mechanism.channel()[3] * records) > ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_perturbing_and_tallying_at_once_is_doing_one_after_the_other(name: str) -> None:
    values = np.arange(5_000) % 40
    apart = made(name, 40, 1.0, "same")
    together = made(name, 40, 1.0, "same").perturb_and_tally(values)
    assert together == apart.tally(apart.perturb(values))
    assert together.records == 5_000


@pytest.mark.parametrize("name", NAMES)
def test_values_outside_the_domain_are_refused_before_anything_is_drawn(name: str) -> None:
    mechanism = made(name, 5, 1.0)
    for values in ([5], [-1], [0.5]):
        with pytest.raises(InputError):
            mechanism.perturb(values)
    assert mechanism.perturb(np.empty(0, dtype=int)).shape == (0, mechanism.width)
    assert mechanism.perturb([[1, 2], [3, 4]]).shape == (2, 2, mechanism.width)


@pytest.mark.parametrize("name", NAMES)
def test_impossible_tallies_are_refused(name: str) -> None:
    mechanism = made(name, 9, 0.5)
    possible = mechanism.perturb_and_tally([0] * 20)
    mechanism.estimate(possible)
    above = possible.counts.copy()
    above[:2] += (21, -21) if name == "ss" else (21, 0)
    wrong = [Tally(20, above), Tally(20, possible.counts[:-1]), Tally(20, possible.counts - 30)]
    if name == "ss":
        wrong.append(Tally(21, possible.counts))
    for tally in wrong:
        with pytest.raises(PeerError):
            mechanism.estimate(tally)


@given(st.data())
def test_variances_are_never_negative_and_intervals_stay_inside(data: st.DataObject) -> None:
    mechanism = made(data.draw(st.sampled_from(NAMES)), 6, data.draw(st.sampled_from(EPSILONS)))
    values = data.draw(st.lists(st.integers(0, 5), max_size=60))
    tally = mechanism.perturb_and_tally(np.array(values, dtype=np.int64))
    estimate = mechanism.estimate(tally)
    assert min(estimate.exact_variance) >= 0
    low, high = estimate.interval(0.95)
    assert (low >= 0).all() and (low <= high).all() and (high <= len(values)).all()
    assert np.allclose(mechanism.law.corrected(tally), estimate.frequency)


def test_estimates_of_subset_selection_sum_to_the_records_exactly() -> None:
    mechanism = made("ss", 85, 2.0)
    assert sum(mechanism.estimate(mechanism.perturb_and_tally(np.arange(1_000) % 85)).exact) == 1_000


def test_channels_that_are_too_large_are_refused_not_begun() -> None:
    for name in NAMES:
        with pytest.raises(ConfigurationError, match="at most"):
            made(name, 1024, 0.5).channel()
    assert comb(85, 10) > 20_000


@pytest.mark.parametrize("name", NAMES)
def test_the_guarantee_is_over_the_whole_domain_and_names_what_is_not_protected(name: str) -> None:
    mechanism = made(name, 85, 2.0)
    assert mechanism.guarantee.kind == "epsilon-LDP"
    assert mechanism.binning.bins == 1
    assert any("being in the table" in item for item in mechanism.guarantee.not_protected)
    assert isinstance(mechanism.law, SupportLaw)
    assert {"p", "q"} <= mechanism.law.parameters[0].keys()


@pytest.mark.parametrize("small", [0.0, 1.0])
@pytest.mark.parametrize("size", [0, 1, 3, 5, 6])
def test_every_subset_without_the_barred_value_is_equally_likely(
    small: float, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallyveil.mechanisms.subset.SMALL", small)
    count, values, barred = 60_000, 7, 2
    sizes = np.full(count, size)
    members = draw_members(sizes, np.full(count, barred), values, Named(f"subsets {small} {size}"))
    assert (members.sum(axis=1) == size).all() and not members[:, barred].any() and not members[:, values:].any()
    seen = np.bincount(members[:, :values] @ (1 << np.arange(values)), minlength=1 << values)
    possible = [number for number in range(1 << values) if number.bit_count() == size and not number >> barred & 1]
    assert seen.sum() == seen[possible].sum() == count
    if len(possible) > 1:
        assert chi_square_p(seen[possible], np.full(len(possible), count / len(possible))) >= bonferroni(10)


def test_subsets_of_different_sizes_may_be_drawn_together() -> None:
    sizes = np.array([0, 1, 5, 9] * 500)
    members = draw_members(sizes, np.arange(2000) % 10, 10, Named("mixed"))
    assert members.sum(axis=1).tolist() == sizes.tolist()


@pytest.mark.parametrize("below", [1, 2, 3, 10, 65_537])
def test_uniform_numbers_are_uniform(below: int) -> None:
    drawn = draw_uniform(below, 200_000, Named(f"uniform {below}"))
    assert int(drawn.min()) >= 0 and int(drawn.max()) < below
    cells = min(below, 10)
    seen = np.bincount(drawn % cells, minlength=cells)
    share = np.array([len(range(cell, below, cells)) for cell in range(cells)]) / below
    if below > 1:
        assert chi_square_p(seen, share * 200_000) >= bonferroni(5)


def test_column_sums_are_the_sums_however_many_rows() -> None:
    for rows in (0, 1, 127, 128, 129, 700):
        table = Named(f"sums {rows}").words(rows * 9, 32).reshape(rows, 9) % 2 == 1
        assert column_sums(table).tolist() == table.sum(axis=0).tolist()
