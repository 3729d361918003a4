"""Discrete Laplace noise: draws follow the exact law, variants that nearly do are caught, and so is every bound on it.

Not here: what it is added to (`test_histogram_laplace`). Expected laws come from scipy, closed forms or convolution.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, expm1, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from deterministic import Named
from significance import ALPHA, binomial_p, bonferroni, chi_square_p
from tallyveil.discrete_laplace import draw, half_width, probability, scale_for, tail, variance, within
from tallyveil.discrete_laplace.sampler import bernoulli_exp, uniform_below
from tallyveil.discrete_laplace.sums import LARGEST_DEVIATION
from tallyveil.epsilon import NANO, NanoEpsilon
from tallyveil.errors import ConfigurationError

WORDS = (Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**4), Fraction(2 * NANO, 123_456_789))
BEYOND_WORDS = (
    Fraction(2**57 + 1, 2**56),
    Fraction(2**62 - 1, 2**61 + 3),
    Fraction(2**64, 2**58 + 1),
    Fraction(7 * 2**70 + 1, 2**69),
)
SUMS = [(scale, copies) for scale in (Fraction(1, 3), Fraction(1), Fraction(15, 2)) for copies in (2, 3, 17)]
LEVELS = (0.5, 0.9, 0.95, 0.99, 1 - 1e-9)
POSITIVE = st.fractions(Fraction(1, 64), 2**40)


def fit(draws: NDArray[np.generic], scale: Fraction) -> float:
    """p-value of the draws under the exact law: zero is a cell of its own, the others hold about one part in 40."""
    law = stats.dlaplace(1 / float(scale))
    edges = np.unique([*law.ppf(np.arange(1, 40) / 40), -1, 0])  # a cell ends at its edge, included
    below = np.concatenate(([0.0], law.cdf(edges), [1.0]))
    observed = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    return chi_square_p(observed, np.diff(below) * draws.size)


def geometric(scale: Fraction, count: int, label: str) -> NDArray[np.int64]:
    """Sizes before their sign, from the sampler's own coins: P(k) in proportion to exp(−k/t) for a whole t."""
    coins, t = Named(label), scale.numerator
    fine = uniform_below(t, 2 * count, coins)
    fine = fine[bernoulli_exp(fine, t, coins)][:count]
    runs = np.zeros(fine.size, dtype=np.int64)
    running = np.arange(fine.size)
    while running.size:
        running = running[bernoulli_exp(np.ones(running.size, dtype=np.uint64), 1, coins)]
        runs[running] += 1
    return fine.astype(np.int64) + t * runs


@pytest.mark.parametrize("scale", WORDS, ids=str)
def test_draws_follow_the_exact_law(scale: Fraction) -> None:
    assert fit(draw(scale, 200_000, Named(f"draws {scale}")), scale) >= bonferroni(len(WORDS))


@pytest.mark.parametrize("scale", BEYOND_WORDS, ids=str)
def test_draws_follow_the_exact_law_where_a_term_passes_64_bits(scale: Fraction) -> None:
    assert fit(draw(scale, 20_000, Named(f"draws {scale}")), scale) >= bonferroni(len(BEYOND_WORDS))


def test_the_largest_scale_fits_and_follows_the_law() -> None:
    scale = Fraction(2**56)
    parts = stats.laplace(scale=float(scale)).cdf(draw(scale, 20_000, Named("largest")))
    assert chi_square_p(np.bincount((parts * 20).astype(int), minlength=20), np.full(20, 1_000.0)) >= ALPHA


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10)], ids=str)
def test_a_sign_drawn_for_zero_too_is_caught(scale: Fraction) -> None:
    sizes = geometric(scale, 50_000, "signs")
    signs = 1 - 2 * uniform_below(2, sizes.size, Named("more signs")).astype(np.int64)
    standing = (sizes > 0) | (signs > 0)
    assert fit((signs * sizes)[standing], scale) >= ALPHA
    assert fit(signs * sizes, scale) < ALPHA


def test_continuous_noise_rounded_is_caught() -> None:
    uniform = (Named("continuous").words(200_000, 64) >> np.uint64(11)) / 2.0**53
    rounded = np.rint(stats.laplace.ppf(uniform)).astype(np.int64)
    assert fit(rounded, Fraction(1)) < ALPHA


def test_a_fine_part_that_is_never_rejected_is_caught() -> None:
    sizes = geometric(Fraction(10), 50_000, "fine")
    flat = sizes // 10 * 10 + uniform_below(10, sizes.size, Named("flat")).astype(np.int64)
    for parts, passes in ((sizes, True), (flat, False)):
        signs = 1 - 2 * uniform_below(2, parts.size, Named("signs of the fine")).astype(np.int64)
        assert (fit((signs * parts)[(parts > 0) | (signs > 0)], Fraction(10)) >= ALPHA) == passes


def test_one_label_gives_one_sequence_of_draws_and_another_label_another() -> None:
    first, again, other = (draw(Fraction(10), 40_000, Named(label)) for label in ("one", "one", "other"))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert first.dtype == np.int64 and first.shape == (40_000,)
    assert draw(Fraction(10), 0, Named("one")).shape == (0,)


def test_draws_that_follow_each_other_are_independent() -> None:
    draws = draw(Fraction(1), 100_000, Named("pairs")).reshape(-1, 2).clip(-2, 2) + 2
    pairs = np.bincount(5 * draws[:, 0] + draws[:, 1], minlength=25)
    single = np.array([probability(Fraction(1), value) for value in (1, 0, 1)])
    outer = (1 - within(Fraction(1), 1)) / 2
    law = np.concatenate(([outer], single, [outer]))
    assert chi_square_p(pairs, 50_000 * np.outer(law, law).ravel()) >= ALPHA


@pytest.mark.parametrize("unit", [1, 2**50, 2**62, 2**80], ids=["small", "words", "mixed", "integers"])
def test_a_coin_of_chance_exp_minus_gamma_has_it(unit: int) -> None:
    trials, gammas = (100_000 if unit < 2**60 else 10_000), (Fraction(1, 1000), Fraction(1, 16), Fraction(1, 3), 1)
    for gamma in gammas:
        top, bottom = Fraction(gamma).numerator * unit, Fraction(gamma).denominator * unit
        tops = np.full(trials, top, dtype=np.uint64 if bottom < 2**64 else object)
        heads = int(bernoulli_exp(tops, bottom, Named(f"coin {gamma} {unit}")).sum())
        assert binomial_p(heads, trials, exp(-gamma)) >= bonferroni(4 * len(gammas))
    nothing = np.zeros(100, dtype=np.uint64)
    assert bernoulli_exp(nothing, 1000 * unit, Named("nothing")).all()


def test_a_coin_from_the_first_terms_of_the_series_is_caught() -> None:
    """1 − γ, and 1 − γ + γ²/2 without what follows."""
    trials, eighths = 200_000, np.full(200_000, 3, dtype=np.uint64)
    heads = int(bernoulli_exp(eighths, 8, Named("series")).sum())
    assert binomial_p(heads, trials, exp(-3 / 8)) >= ALPHA
    assert binomial_p(heads, trials, 1 - 3 / 8) < ALPHA
    assert binomial_p(heads, trials, 1 - 3 / 8 + 9 / 128) < ALPHA


@pytest.mark.parametrize("limit", [3, 3 * 2**62, 3 * 2**63, 3 * 2**126], ids=str)
def test_integers_below_a_limit_are_uniform(limit: int) -> None:
    thirds = (uniform_below(limit, 30_000, Named(f"below {limit}")) // (limit // 3)).astype(np.int64)
    assert chi_square_p(np.bincount(thirds, minlength=3), [10_000.0] * 3) >= bonferroni(4)


def test_a_remainder_without_rejection_is_caught() -> None:
    limit = 3 * 2**62
    biased = (Named("biased").words(30_000, 64) % np.uint64(limit) // np.uint64(2**62)).astype(np.int64)
    assert chi_square_p(np.bincount(biased, minlength=3), [10_000.0] * 3) < ALPHA


def test_what_could_overflow_or_makes_no_sense_is_refused() -> None:
    scales = (Fraction(0), Fraction(-1), Fraction(1, 65), Fraction(2**56) + Fraction(1, 2**70), Fraction(2**60))
    for scale in scales:
        with pytest.raises(ConfigurationError, match="scale"):
            draw(scale, 1, Named("refused"))
        with pytest.raises(ConfigurationError, match="scale"):
            probability(scale, 0)
        with pytest.raises(ConfigurationError, match="scale"):
            variance(scale)
    with pytest.raises(ConfigurationError, match="not negative"):
        draw(Fraction(1), -1, Named("refused"))
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(ConfigurationError, match="level"):
            half_width(Fraction(1), 1, level)
    for function in (tail, within):
        with pytest.raises(ConfigurationError, match="not negative"):
            function(Fraction(1), 1, -1)
    for sensitivity, epsilon in ((0, NANO), (1, 0), (-1, NANO), (2**60, NANO)):
        with pytest.raises(ConfigurationError):
            scale_for(sensitivity, NanoEpsilon(epsilon))


@given(st.integers(1, 10**6), st.integers(10**7, 16 * NANO))
def test_the_realised_epsilon_is_the_one_asked_for(sensitivity: int, nano: int) -> None:
    scale = scale_for(sensitivity, NanoEpsilon(nano))
    assert sensitivity / scale == Fraction(nano, NANO)
    ratio = log(probability(scale, 0) / probability(scale, sensitivity))
    assert ratio == pytest.approx(nano / NANO, rel=1e-12, abs=1e-12)


def test_golden_values_of_scale_one() -> None:
    assert within(Fraction(1), 5) == pytest.approx(0.99638, abs=5e-6)
    assert probability(Fraction(1), 0) == pytest.approx(0.462117, abs=5e-7)
    assert half_width(Fraction(1), 1, 0.95) == 3
    assert float(variance(Fraction(1))) == pytest.approx(2 * exp(-1) / (1 - exp(-1)) ** 2, rel=1e-15)


@pytest.mark.parametrize("scale", WORDS, ids=str)
def test_the_law_is_scipys(scale: Fraction) -> None:
    law = stats.dlaplace(1 / float(scale))
    for value in (0, 1, -1, 7, -40):
        assert probability(scale, value) == pytest.approx(float(law.pmf(value)), rel=1e-12)
        assert within(scale, abs(value)) == pytest.approx(
            float(law.cdf(abs(value)) - law.cdf(-abs(value) - 1)), rel=1e-9
        )
        assert within(scale, abs(value)) + tail(scale, abs(value)) == pytest.approx(1, rel=1e-15)
    assert (within(scale, -1), tail(scale, -1)) == (0.0, 1.0)
    assert float(variance(scale)) == pytest.approx(float(law.var()), rel=1e-7)


@given(POSITIVE, st.floats(0.01, 1 - 1e-9))
def test_the_half_width_of_one_draw_is_the_smallest(scale: Fraction, level: float) -> None:
    width = half_width(scale, 1, level)
    assert within(scale, width) >= level
    assert width == 0 or within(scale, width - 1) < level + 1e-12


def brute_force(scale: Fraction, copies: int) -> NDArray[np.float64]:
    """P(|S| > k) for k = 0, 1, … by repeated convolution."""
    reach = int(45 * float(scale)) + 40
    single = np.array([probability(scale, value) for value in range(-reach, reach + 1)])
    law = single
    for _ in range(copies - 1):
        law = np.convolve(law, single)
    upper = law[law.size // 2 :]
    tails: NDArray[np.float64] = 2 * (np.cumsum(upper[::-1])[::-1] - upper)
    return tails


@pytest.mark.parametrize(("scale", "copies"), SUMS)
def test_the_law_of_a_sum_is_its_convolution(scale: Fraction, copies: int) -> None:
    tails = brute_force(scale, copies)
    assert max(abs(tail(scale, reach, copies) - tails[reach]) for reach in range(tails.size)) < 1e-13
    for level in LEVELS:
        assert half_width(scale, copies, level) == int(np.argmax(tails <= 1 - level))


def two_draws(scale: Fraction, reach: int) -> float:
    """P(|X + Y| > reach): Σ over k > reach of 2·((1−a)/(1+a))²·a^k·(k + c), c = (1 + a²)/(1 − a²)."""
    rate = 1 / float(scale)
    a, lack = exp(-rate), -expm1(-rate)
    c = (1 + a * a) / -expm1(-2 * rate)
    return 2 * (lack / (1 + a)) ** 2 * exp(-rate * (reach + 1)) * ((reach + 1 + c) / lack + a / lack**2)


@settings(deadline=None, max_examples=40)
@given(POSITIVE, st.sampled_from(LEVELS[:4]))
def test_a_sum_of_two_has_its_closed_form_at_every_scale(scale: Fraction, level: float) -> None:
    width = half_width(scale, 2, level)
    fine = 2 * float(variance(scale)) < 2.0**28
    assert abs(tail(scale, width, 2) - two_draws(scale, width)) < (1e-12 if fine else 1e-8)
    assert two_draws(scale, width) <= 1 - level + 1e-8
    assert width == 0 or two_draws(scale, width - slack(scale, 2)) > 1 - level - 1e-8


def slack(scale: Fraction, copies: int) -> int:
    """The smallest half-width lies less than this below the one returned: a step of the law it was read off."""
    deviation = sqrt(copies * float(variance(scale)))
    return 1 if deviation <= LARGEST_DEVIATION else ceil(deviation / LARGEST_DEVIATION) + 1


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10**3), Fraction(10**9)], ids=str)
def test_a_sum_of_very_many_is_normal_with_a_correction_for_continuity(scale: Fraction) -> None:
    copies = 10**7
    deviation = sqrt(copies * float(variance(scale)))
    for level in LEVELS[:4]:
        width = half_width(scale, copies, level)
        normal = 2 * float(stats.norm.sf((width + 0.5) / deviation))
        assert tail(scale, width, copies) == pytest.approx(normal, abs=1e-6)
        assert tail(scale, width, copies) <= 1 - level < tail(scale, width - slack(scale, copies), copies)


def test_a_sum_of_none_is_zero() -> None:
    assert half_width(Fraction(1), 0, 0.95) == 0
    assert (within(Fraction(1), 0, 0), tail(Fraction(1), 0, 0)) == (1.0, 0.0)


@pytest.mark.parametrize(("scale", "copies"), [(Fraction(1, 3), 2), (Fraction(1), 17), (Fraction(10**5), 5)])
def test_sums_of_draws_lie_within_the_half_width_as_often_as_stated(scale: Fraction, copies: int) -> None:
    sums = draw(scale, copies * 20_000, Named(f"sums {scale}")).reshape(copies, -1).sum(axis=0)
    width = half_width(scale, copies, 0.95)
    inside = int((np.abs(sums) <= width).sum())
    assert binomial_p(inside, sums.size, within(scale, width, copies)) >= bonferroni(3)
    assert tail(scale, width, copies) <= 1 - 0.95 < tail(scale, width - slack(scale, copies), copies)
