"""Sealed bins and Hadamard response: exact channels, exact laws, and draws that follow them.

Not here: mechanisms that support values independently (`test_support_mechanisms`).
"""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

from deterministic import Named
from significance import bonferroni, chi_square_p
from tallyveil.binning import Binning
from tallyveil.epsilon import to_nano
from tallyveil.errors import ConfigurationError, InputError, PeerError
from tallyveil.mechanisms import Tally, create
from tallyveil.mechanisms.hadamard import transform, with_sign
from tallyveil.mechanisms.hr import HadamardResponse, best_shape
from tallyveil.mechanisms.nested_law import NestedCell, NestedLaw
from tallyveil.mechanisms.output_response import OutputResponse
from tallyveil.mechanisms.sealed_weights import sealed_weights

EPSILONS = (0.01, 0.5, log(3), 2.0, 6.0, 16.0)
SMALL = (("brr-sealed", 4, 2), ("brr-sealed", 7, 3), ("brr-sealed", 85, 16), ("hr", 2, 1), ("hr", 5, 1), ("hr", 21, 1))


def made(name: str, domain_size: int, bins: int, epsilon: float, label: str = "nested") -> OutputResponse:
    mechanism = create(
        name,
        domain_size=domain_size,
        bins=bins,
        epsilon=epsilon,
        randomness=Named(f"{label} {name} {domain_size} {epsilon}"),
    )
    assert isinstance(mechanism, OutputResponse)
    return mechanism


def contributions(mechanism: OutputResponse) -> NDArray[np.float64]:
    """What one report of each output adds to each estimate, shape (outputs, K)."""
    law = mechanism.law
    return np.array([law.corrected(Tally(1, row)) for row in np.eye(law.outputs, dtype=np.int64)])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("name", "size", "bins"), SMALL)
def test_the_channel_s_largest_ratio_is_the_realised_epsilon_and_never_above(
    name: str, size: int, bins: int, epsilon: float
) -> None:
    mechanism = made(name, size, bins, epsilon)
    channel = mechanism.channel()
    assert channel.shape == (size, mechanism.law.outputs)
    assert np.allclose(channel.sum(axis=1), 1, rtol=0, atol=1e-12)
    largest = float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())
    assert largest == pytest.approx(mechanism.guarantee.realised_epsilon, rel=1e-9)
    assert epsilon - 1.01e-5 <= mechanism.guarantee.realised_epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
@pytest.mark.parametrize(("name", "size", "bins"), SMALL)
def test_estimates_are_unbiased_and_their_covariance_is_the_channel_s(
    name: str, size: int, bins: int, epsilon: float
) -> None:
    mechanism = made(name, size, bins, epsilon)
    counts = np.arange(size) * 3.0 + 1
    per_report, channel = contributions(mechanism), mechanism.channel()
    assert np.allclose(channel @ per_report, np.eye(size), atol=1e-8)
    # Σ over records of E[contribution·contribution'] less what an unbiased record is for sure.
    expected = per_report.T @ ((counts @ channel)[:, None] * per_report) - np.diag(counts)
    assert np.allclose(mechanism.covariance(counts), expected, rtol=1e-7, atol=1e-6)
    assert np.allclose(mechanism.variance(counts), np.diag(expected), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(("name", "size", "bins"), SMALL)
def test_draws_follow_the_channel(name: str, size: int, bins: int) -> None:
    mechanism = made(name, size, bins, 2.0)
    channel, level = mechanism.channel(), bonferroni(2 * len(SMALL))
    for value in (0, size - 1):
        drawn = np.bincount(mechanism.perturb(np.full(200_000, value)), minlength=channel.shape[1])
        assert chi_square_p(drawn, channel[value] * 200_000) >= level
        if name == "brr-sealed":  # one output too likely by a seventh would be seen
            wrong = channel[value] * (1 + 0.15 * np.eye(channel.shape[1])[value])
            assert chi_square_p(drawn, wrong / wrong.sum() * 200_000) < level


@pytest.mark.parametrize(("name", "size", "bins"), SMALL)
def test_the_stated_variance_is_an_unbiased_estimate_and_never_negative(name: str, size: int, bins: int) -> None:
    law = made(name, size, bins, 2.0).law
    counts = np.arange(size) * 3 + 1
    channel = made(name, size, bins, 2.0).channel()
    per_output = np.array(
        [[float(cell.variance) for cell in law.cells(Tally(1, row))] for row in np.eye(law.outputs, dtype=np.int64)]
    )
    assert np.allclose(counts @ channel @ per_output, law.variance(counts), rtol=1e-7)  # linear in the reports
    assert per_output.min() >= 0


@pytest.mark.parametrize(("size", "bins"), [(4, 2), (7, 3), (85, 16)])
def test_sealed_estimates_of_a_bin_sum_to_the_bin_s_estimate_exactly(size: int, bins: int) -> None:
    mechanism = made("brr-sealed", size, bins, 2.0)
    tally = mechanism.perturb_and_tally(np.arange(1000) % size)
    law = mechanism.law
    estimates = mechanism.estimate(tally).exact
    totals = law.group_totals(tally).tolist()
    for start, length, total in zip(law.groups.starts, law.groups.sizes, totals, strict=True):
        expected = (total - tally.records * law.stray) / (law.kept - law.stray)
        assert sum(estimates[int(start) : int(start + length)], Fraction(0)) == expected


def test_the_chosen_pair_is_the_best_of_all_candidates_and_spends_the_whole_epsilon() -> None:
    binning, epsilon = Binning(85, 16), to_nano(2)
    chosen = sealed_weights(binning, epsilon)
    assert 0 < chosen.inner.realised_epsilon < 2 < chosen.inner.realised_epsilon + chosen.outer.realised_epsilon
    counts = np.ones(85)
    in_bin = binning.bin_of[:, None] == binning.bin_of[None, :]
    sealed, plain = (
        create(name, domain_size=85, bins=bins, epsilon=2.0).covariance(counts)
        for name, bins in (("brr-sealed", 16), ("grr", 1))
    )
    # Values alone favour plain randomised response; values and bins together do not.
    assert np.trace(sealed) > np.trace(plain)
    assert np.trace(sealed) + sealed[in_bin].sum() < np.trace(plain) + plain[in_bin].sum()


@pytest.mark.parametrize(("size", "bins"), [(85, 1), (85, 43), (3, 2)])
def test_sealed_bins_are_at_least_two_of_at_least_two_values(size: int, bins: int) -> None:
    with pytest.raises(ConfigurationError, match="at least two"):
        create("brr-sealed", domain_size=size, bins=bins, epsilon=2.0)


@pytest.mark.parametrize(("size", "epsilon"), [(2, 0.5), (64, 2.0), (1024, 6.0), (4096, 0.1), (65_536, 1.0)])
def test_hadamard_blocks_hold_all_values_and_outputs_stay_few(size: int, epsilon: float) -> None:
    shape = best_shape(size, to_nano(epsilon))
    assert shape.groups.domain_size == size
    assert int(shape.groups.sizes.max()) < shape.columns == 1 << (shape.columns.bit_length() - 1)
    assert shape.outputs <= 4 * size


def test_the_transform_is_the_matrix_and_a_sign_is_asked_for_one_to_one() -> None:
    signs = np.array([[-1 if (a & b).bit_count() % 2 else 1 for b in range(16)] for a in range(16)])
    vector = np.arange(16, dtype=np.int64) ** 2
    assert transform(vector).tolist() == (signs @ vector).tolist()
    columns = np.arange(16, dtype=np.uint32)
    for row in range(1, 16):
        for negative in (False, True):
            drawn = with_sign(columns, np.full(16, row, dtype=np.uint32), np.full(16, negative))
            twice = [2 * (sign == (-1 if negative else 1)) for sign in signs[row]]
            assert np.bincount(drawn, minlength=16).tolist() == twice


def test_a_hadamard_law_that_forgot_the_block_would_be_biased() -> None:
    mechanism = made("hr", 21, 1, 2.0)
    assert isinstance(mechanism, HadamardResponse) and mechanism.shape.groups.bins > 1
    law, channel = mechanism.law, mechanism.channel()
    item = law.chances[0]
    supports = np.array([law.supports(Tally(1, row)) for row in np.eye(law.outputs, dtype=np.int64)])
    naive = (channel @ supports - float(item.far)) / float(item.own - item.far)
    assert np.abs(naive - np.eye(21)).max() > 0.1


@pytest.mark.parametrize("records", [2, 10, 17, 60])
def test_intervals_of_few_records_hold_whatever_bins_the_others_are_in(records: int) -> None:
    mechanism = made("brr-sealed", 12, 3, 2.0, f"few {records}")
    law = mechanism.law
    for others_near in (True, False):
        truth = np.full(records, 1 if others_near else 11)
        truth[0] = 0
        misses, repeats = 0, 400
        for _ in range(repeats):
            cell = law.cells(mechanism.perturb_and_tally(truth))[0]
            low, high = cell.interval(0.95)
            misses += not low <= 1 <= high
        assert misses <= 0.05 * repeats + 5 * np.sqrt(0.05 * 0.95 * repeats)


@pytest.mark.parametrize(("name", "bins"), [("brr-sealed", 3), ("hr", 1)])
def test_what_no_reports_can_have_made_is_refused(name: str, bins: int) -> None:
    mechanism = made(name, 12, bins, 2.0)
    law = mechanism.law
    good = mechanism.perturb_and_tally(np.arange(12))
    law.check(good)
    for wrong in (
        Tally(11, good.counts),
        Tally(12, good.counts[:-1]),
        Tally(12, good.counts - np.eye(law.outputs, dtype=np.int64)[0] * 20),
    ):
        with pytest.raises(PeerError):
            law.check(wrong)
    with pytest.raises(InputError):
        mechanism.tally([law.outputs])
    with pytest.raises(InputError):
        mechanism.perturb([12])


def test_a_cell_adds_up_what_reports_say() -> None:
    law = made("brr-sealed", 7, 3, 1.0).law
    assert isinstance(law, NestedLaw)
    cell = law.cells(Tally(5, np.array([1, 2, 0, 0, 1, 0, 1])))[1]
    assert isinstance(cell, NestedCell) and (cell.support, cell.in_group, cell.records) == (2, 3, 5)
    n_bin = (3 - 5 * law.stray) / (law.kept - law.stray)
    item = law.chances[0]
    assert cell.corrected == (2 - n_bin * item.near - (5 - n_bin) * item.far) / (item.own - item.near)
