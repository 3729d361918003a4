"""The integer weights of keep and lie: golden probabilities, and epsilon never exceeded, in exact arithmetic.

Not here: drawing with them (`test_randomised_response`).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import floor, log

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallyveil.binning import Binning
from tallyveil.epsilon import HIGHEST, LOWEST, NANO, NanoEpsilon, to_nano
from tallyveil.mechanisms import create
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.weights import LARGEST_LOSS, Weights, exp_bounds, response_weights

LN3 = 1.0986122886681098
SIZES = (2, 3, 5, 6, 85, 1024, 65_536)
EPSILONS = (0.01, 0.2, LN3, 2.0, 6.0, 16.0)
GRID = tuple(product(SIZES, (to_nano(epsilon) for epsilon in EPSILONS)))


def exponential(nano: int, bits: int = 512) -> tuple[Fraction, Fraction]:
    """Bounds of e^(nano/10^9) by Taylor's series in whole multiples of 2^-bits, independent of `decimal`.

    Every term is cut off, so the sum of n terms lies at most n units below; what follows the last term, once it is
    below half a unit and the terms fall by half or more, is at most one unit.
    """
    term = total = 1 << bits
    number = 0
    while term or number * NANO < 2 * nano:
        number += 1
        term = term * nano // (number * NANO)
        total += term
    return Fraction(total, 1 << bits), Fraction(total + 2 * number + 2, 1 << bits)


@pytest.mark.parametrize(
    ("size", "epsilon", "p", "q"),
    [
        (2, LN3, 0.75, 0.25),
        (85, 2.0, 0.0808527, 0.0109422),
        (6, 2.0, 0.5964180, 0.0807164),
        (5, 2.0, 0.6487856, None),
    ],
)
def test_golden_probabilities_hold(size: int, epsilon: float, p: float, q: float | None) -> None:
    weights = response_weights(size, to_nano(epsilon))
    assert float(weights.p) == pytest.approx(p, abs=5.1e-8)
    assert q is None or float(weights.q) == pytest.approx(q, abs=5.1e-8)


@pytest.mark.parametrize(("size", "nano"), GRID)
def test_the_ratio_is_never_above_e_to_the_epsilon_and_close_below_it(size: int, nano: NanoEpsilon) -> None:
    weights = response_weights(size, nano)
    low, high = exponential(nano)
    assert high - low < Fraction(1, 10**100)
    ratio = Fraction(weights.keep, weights.lie)
    assert ratio <= low
    assert low / ratio - 1 <= Fraction(1, 10**5)  # ln x <= x - 1
    assert weights.keep == floor(high * weights.lie) == floor(low * weights.lie)


@pytest.mark.parametrize(("size", "nano"), GRID)
def test_the_realised_epsilon_stays_within_its_bounds(size: int, nano: NanoEpsilon) -> None:
    weights = response_weights(size, nano)
    assert nano / NANO - LARGEST_LOSS <= weights.realised_epsilon <= nano / NANO
    assert weights.realised_epsilon == pytest.approx(log(weights.keep) - log(weights.lie), abs=1e-13)


@pytest.mark.parametrize(("size", "nano"), GRID)
def test_the_total_fits_the_word_and_wastes_little_of_it(size: int, nano: NanoEpsilon) -> None:
    weights = response_weights(size, nano)
    assert weights.bits in (32, 64)
    assert 2 ** (weights.bits - 1) < weights.total <= 2**weights.bits
    assert weights.keep >= weights.lie >= 1


@pytest.mark.parametrize(("size", "nano"), GRID)
def test_the_probabilities_are_a_law(size: int, nano: NanoEpsilon) -> None:
    weights = response_weights(size, nano)
    assert weights.p + (size - 1) * weights.q == 1
    assert weights.p > weights.q > 0


def test_wider_words_serve_where_narrow_ones_lose_too_much() -> None:
    assert response_weights(6, to_nano(2.0)).bits == 32
    assert response_weights(65_536, to_nano(0.02)).bits == 64


@given(st.integers(2, 65_536), st.integers(LOWEST, HIGHEST))
@example(65_536, 297_860_117)  # keep / lie as a float has a larger logarithm than epsilon
@settings(deadline=None)
def test_the_realised_epsilon_is_never_above_any_epsilon_asked_for(size: int, nano: int) -> None:
    weights = response_weights(size, NanoEpsilon(nano))
    assert nano / NANO - LARGEST_LOSS <= weights.realised_epsilon <= nano / NANO
    assert weights.total <= 2**weights.bits


@pytest.mark.parametrize("nano", [to_nano(epsilon) for epsilon in EPSILONS])
@pytest.mark.parametrize("digits", [20, 60, 120])
def test_the_interval_of_the_exponential_holds_it(nano: NanoEpsilon, digits: int) -> None:
    low, high = exp_bounds(nano, digits)
    least, most = exponential(nano)
    assert low <= least <= most <= high
    assert (high - low) / low < Fraction(1, 10 ** (digits - 2))


def test_a_callers_decimal_context_changes_nothing() -> None:
    """A process that rounds money to four digits must not thereby round epsilon up."""
    expected = response_weights(6, NanoEpsilon(1_234_567_890))
    with localcontext() as context:
        context.prec = 4
        response_weights.cache_clear()
        assert response_weights(6, NanoEpsilon(1_234_567_890)) == expected
        assert to_nano("1.23456789") == to_nano(Decimal("1.23456789")) == 1_234_567_890


@pytest.mark.parametrize("values,bins", [(85, 16), (85, 4), (85, 1), (1024, 3), (7, 3), (65_536, 5_000)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_bin_of_a_binning_keeps_within_epsilon(values: int, bins: int, epsilon: float) -> None:
    nano = to_nano(epsilon)
    low, _ = exponential(nano)
    binning = Binning(values, bins)
    blocks = Blocks(binning, nano)
    assert [weights.size for weights in blocks.weights] == binning.sizes.tolist()
    for weights in set(blocks.weights):
        ratio = Fraction(weights.keep, weights.lie)
        assert ratio <= low <= ratio * (1 + Fraction(1, 10**5))
        assert weights.total <= 2**weights.bits
        assert weights.p + (weights.size - 1) * weights.q == 1
    assert nano / NANO - LARGEST_LOSS <= blocks.realised_epsilon <= nano / NANO


def test_both_roles_take_the_same_probabilities_from_the_same_parameters() -> None:
    agent = create("brr", domain_size=85, bins=16, epsilon=2.0)
    aggregator = create("brr", domain_size=85, bins=16, epsilon=2.0)
    assert agent.blocks.weights == aggregator.blocks.weights
    assert all(isinstance(weights, Weights) for weights in agent.blocks.weights)
