"""Noise at the department: once per histogram, with or without n, counts that may be negative.

Not here: the noise itself (`test_discrete_laplace`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deterministic import Named
from significance import ALPHA
from tallyveil.errors import ConfigurationError, InputError, PeerError
from tallyveil.guarantee import ADD_OR_REMOVE, KIND_AT_DEPARTMENT, REPLACE_ONE
from tallyveil.mechanisms import Tally, create
from tallyveil.mechanisms.histogram_laplace import HistogramLaplace
from tallyveil.mechanisms.payload import decode_tally, encode_tally

VALUES = np.repeat(np.arange(6), [50, 0, 1, 300, 7, 2])
TRUTH = np.bincount(VALUES)


def made(neighbours: str, epsilon: float = 1.0, label: str = "histogram") -> HistogramLaplace:
    mechanism = create(
        "histogram-laplace", domain_size=6, epsilon=epsilon, neighbours=neighbours, randomness=Named(label)
    )
    assert isinstance(mechanism, HistogramLaplace)
    return mechanism


@pytest.mark.parametrize(("neighbours", "scale"), [(REPLACE_ONE, Fraction(4)), (ADD_OR_REMOVE, Fraction(2))])
def test_the_scale_is_sensitivity_over_epsilon_and_n_is_told_only_where_it_may_be(
    neighbours: str, scale: Fraction
) -> None:
    mechanism = made(neighbours, 0.5)
    tally = mechanism.perturb_and_tally(VALUES)
    assert mechanism.law.scale == scale
    assert (tally.records, tally.histograms) == (VALUES.size if neighbours == REPLACE_ONE else 0, 1)
    expected = VALUES.size if neighbours == REPLACE_ONE else int(tally.counts.sum())
    assert mechanism.law.total(tally) == expected
    guarantee = mechanism.guarantee
    assert (guarantee.kind, guarantee.realised_epsilon) == (KIND_AT_DEPARTMENT, 0.5)
    assert any("being in the table" in text for text in guarantee.not_protected) == (neighbours == REPLACE_ONE)


def test_noise_is_added_once_however_many_pieces_the_records_come_in() -> None:
    mechanism = made(REPLACE_ONE)
    nothing = Tally(0, np.zeros(6, dtype=np.int64))
    gathered = sum((mechanism.gather(part) for part in np.array_split(VALUES, 7)), nothing)
    assert gathered.counts.tolist() == TRUTH.tolist() and gathered.histograms == 0
    assert mechanism.finish(gathered) == made(REPLACE_ONE).perturb_and_tally(VALUES)


def test_the_sum_of_departments_has_the_stated_variance_and_coverage() -> None:
    mechanism, repeats, departments = made(REPLACE_ONE, 2.0, "coverage"), 1000, 3
    inside = np.zeros(6)
    errors = np.empty((repeats, 6))
    for number in range(repeats):
        tallies = [mechanism.perturb_and_tally(VALUES) for _ in range(departments)]
        estimate = mechanism.estimate(tallies[0] + tallies[1] + tallies[2])
        low, high = estimate.interval()
        inside += (low <= departments * TRUTH) & (departments * TRUTH <= high)
        errors[number] = estimate.frequency - departments * TRUTH
    variance = float(departments * mechanism.law.noise_variance)
    assert np.allclose(errors.var() / variance, 1, atol=0.1)
    assert abs(errors.mean()) < 5 * np.sqrt(variance / errors.size)
    assert all(float(stats.binomtest(int(hits), repeats, 0.95, "less").pvalue) >= ALPHA for hits in inside)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=6, max_size=6))
def test_counts_that_may_be_negative_survive_the_wire(counts: list[int]) -> None:
    law = made(ADD_OR_REMOVE).law
    tally = Tally(0, np.array(counts, dtype=np.int64), 1)
    assert decode_tally(law, 0, encode_tally(law, tally)) == tally


def test_what_was_not_agreed_is_refused() -> None:
    hidden = made(ADD_OR_REMOVE).law
    with pytest.raises(PeerError):
        hidden.check(Tally(5, np.zeros(6, dtype=np.int64)))
    with pytest.raises(PeerError):
        hidden.check(Tally(0, np.zeros(5, dtype=np.int64)))
    with pytest.raises(PeerError):
        decode_tally(create("ss", domain_size=6, epsilon=1.0).law, 1, encode_tally(hidden, Tally(0, -TRUTH, 1)))
    for name, neighbours in (("ss", ADD_OR_REMOVE), ("histogram-laplace", "both")):
        with pytest.raises(ConfigurationError, match="neighbours"):
            create(name, domain_size=6, epsilon=1.0, neighbours=neighbours)
    with pytest.raises(ConfigurationError, match="no channel"):
        made(REPLACE_ONE).channel()
    with pytest.raises(InputError):
        made(REPLACE_ONE).gather([6])
    with pytest.raises(InputError):
        made(REPLACE_ONE).tally(np.zeros((2, 5), dtype=np.int64))
