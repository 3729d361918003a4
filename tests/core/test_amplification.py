"""What a histogram adds to the protection of its reports is never overstated, and never more than the report's own.

Not here: the guarantee of one report (`test_guarantee`). The yardsticks are sums over every outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from itertools import pairwise
from math import comb, exp, inf, nextafter, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tallyveil.amplification import MOST_RECORDS, amplified, closed_form, histogram_text
from tallyveil.amplification.clones import Clones, clones
from tallyveil.epsilon import NANO, NanoEpsilon, to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import ADD_OR_REMOVE, at_department, full_ldp, within_bin

SIZES = [1, 2, 3, 5, 10, 30, 100, 300, 1000, 1715, 1716, 5000, 16_685, 99_999, 100_000, 100_001, 300_000, 10**6, 10**7]
EPSILONS = [to_nano(epsilon) for epsilon in (0.01, 0.5, 1, 2, 4, 8, 16)]
DIGITS = Context(prec=60)
SLACK = 1e-30
"""More than the yardsticks, computed with 60 digits, are away from real numbers."""


def growth(epsilon: NanoEpsilon) -> Decimal:
    return DIGITS.exp(Decimal(epsilon) / NANO)


def binomial(trials: int, chance: Decimal) -> list[Decimal]:
    return [comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]


def fraction_above(first: Iterable[Decimal], second: Iterable[Decimal], factor: Decimal) -> Decimal:
    """The hockey-stick divergence of two laws on the same outcomes."""
    return sum((max(p - factor * q, Decimal(0)) for p, q in zip(first, second, strict=True)), Decimal(0))


def convolved(first: list[Decimal], second: list[Decimal]) -> list[Decimal]:
    result = [Decimal(0)] * (len(first) + len(second) - 1)
    for i, p in enumerate(first):
        for j, q in enumerate(second):
            result[i + j] += p * q
    return result


def exact_two_values(epsilon: NanoEpsilon, records: int, epsilon_prime: NanoEpsilon) -> float:
    """The true divergence of the histogram of randomised response over two values, for the worst other records."""
    with localcontext(DIGITS):
        keep, factor, worst = growth(epsilon) / (growth(epsilon) + 1), growth(epsilon_prime), Decimal(0)
        for ones in range(records):
            others = convolved(binomial(ones, keep), binomial(records - 1 - ones, 1 - keep))
            zero, one = convolved([keep, 1 - keep], others), convolved([1 - keep, keep], others)
            worst = max(worst, fraction_above(zero, one, factor), fraction_above(one, zero, factor))
        return float(worst)


def exact_clones(epsilon: NanoEpsilon, records: int, epsilon_prime: NanoEpsilon) -> float:
    """The divergence of the pair of laws that the bound is about, outcome by outcome."""
    with localcontext(DIGITS):
        stays, factor, total = growth(epsilon) / (growth(epsilon) + 1), growth(epsilon_prime), Decimal(0)
        for clones_now, weight in enumerate(binomial(records - 1, 2 / (growth(epsilon) + 1))):
            coins = binomial(clones_now, Decimal("0.5"))
            pair = convolved([1 - stays, stays], coins), convolved([stays, 1 - stays], coins)
            total += weight * fraction_above(*pair, factor)
        return float(total)


def parts(epsilon: NanoEpsilon) -> list[NanoEpsilon]:
    return [NanoEpsilon(epsilon * percent // 100) for percent in (5, 30, 50, 80, 99)]


def test_the_closed_form_has_its_golden_values() -> None:
    assert closed_form(to_nano(2), 16_685, 1e-6) == pytest.approx(0.407, abs=5e-4)
    assert closed_form(to_nano(1), 16_685, 1e-6) == pytest.approx(0.169, abs=5e-4)


def test_the_closed_form_is_refused_where_its_theorem_does_not_hold() -> None:
    assert closed_form(to_nano(2), 1715, 1e-6) is None
    assert closed_form(to_nano(2), 1716, 1e-6) is not None


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("records", [10**3, 16_685, 10**6, 10**8])
def test_the_numerical_bound_is_never_above_the_closed_form(epsilon: NanoEpsilon, records: int) -> None:
    delta = min(1e-6, 1 / (10 * records))
    closed = closed_form(epsilon, records, delta)
    if closed is not None and closed * NANO < epsilon:
        assert clones(epsilon, records).divergence(NanoEpsilon(int(closed * NANO))) <= delta


@pytest.mark.parametrize("epsilon", EPSILONS[:-1])
@pytest.mark.parametrize("records", [2, 3, 8, 25])
def test_the_bound_is_never_below_the_truth_of_two_valued_randomised_response(
    epsilon: NanoEpsilon, records: int
) -> None:
    law = clones(epsilon, records)
    for epsilon_prime in parts(epsilon):
        assert law.divergence(epsilon_prime) >= exact_two_values(epsilon, records, epsilon_prime) - SLACK


def test_the_bound_is_close_to_the_truth_of_two_valued_randomised_response() -> None:
    """Among records that differ as much as they can, telling who is a clone gives away little."""
    epsilon, records, epsilon_prime = to_nano(0.5), 40, to_nano(0.15)
    exact = exact_two_values(epsilon, records, epsilon_prime)
    assert exact < clones(epsilon, records).divergence(epsilon_prime) < 3 * exact


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("records", [2, 3, 9, 70])
def test_the_bound_is_the_exact_divergence_of_its_two_laws_rounded_up(epsilon: NanoEpsilon, records: int) -> None:
    law = clones(epsilon, records)
    for epsilon_prime in parts(epsilon):
        exact = exact_clones(epsilon, records, epsilon_prime)
        bound = law.divergence(epsilon_prime)
        assert exact - SLACK <= bound <= exact * (1 + (1e-6 if epsilon <= 8 * NANO else 1e-2)) + 1e-12


@pytest.mark.parametrize(("epsilon", "records"), [(0.01, 10**4), (1, 10**4), (4, 10**5), (8, 10**6)])
def test_the_bound_agrees_with_an_independent_sum_for_many_records(epsilon: float, records: int) -> None:
    nano = to_nano(epsilon)
    epsilon_prime = amplified(nano, records).epsilon_nano
    high, factor = exp(epsilon), exp(epsilon_prime / NANO)
    stays, chance = high / (high + 1), 2 / (high + 1)
    centre, spread = (records - 1) * chance, sqrt((records - 1) * chance * (1 - chance))
    total = 0.0
    for clones_now in range(int(centre - 8 * spread), min(int(centre + 8 * spread), records - 1) + 1):
        reach = 4 * sqrt(clones_now) + 10
        first = np.arange(int(clones_now / 2 - reach), int(clones_now / 2 + reach), dtype=np.int64)
        without = binomial_law(first, clones_now, 0.5)
        with_it = binomial_law(first - 1, clones_now, 0.5)
        p, q = stays * with_it + (1 - stays) * without, (1 - stays) * with_it + stays * without
        weight = float(binomial_law(np.array([clones_now]), records - 1, chance)[0])
        total += weight * float(np.maximum(p - factor * q, 0).sum())
    assert clones(nano, records).divergence(epsilon_prime) == pytest.approx(total, rel=1e-5)


def binomial_law(counts: NDArray[np.int64], trials: int, chance: float) -> NDArray[np.float64]:
    return np.asarray(stats.binom.pmf(counts, trials, chance), dtype=np.float64)


def test_one_record_too_many_is_found_out() -> None:
    """The planted fault that counts a record among its own clones claims less than the truth."""
    epsilon, records = to_nano(1), 40
    for epsilon_prime in parts(epsilon):
        assert clones(epsilon, records + 1).divergence(epsilon_prime) < exact_clones(epsilon, records, epsilon_prime)


def cut(law: Clones, first: int, left_out: float) -> Clones:
    """The same law, looked at from a higher number of clones on."""
    kept = law.weights[first:]
    return replace(law, counts=law.counts[first:], weights=kept / kept.sum(), left_out=left_out)


def test_a_forgotten_tail_is_found_out_and_a_counted_one_is_safe() -> None:
    epsilon, records = to_nano(2), 60
    law, epsilon_prime = clones(epsilon, records), to_nano(1.6)
    exact = exact_clones(epsilon, records, epsilon_prime)
    first = 8
    assert cut(law, first, 0.0).divergence(epsilon_prime) < exact  # the planted fault
    assert cut(law, first, float(law.weights[:first].sum())).divergence(epsilon_prime) > exact


def test_what_is_left_out_covers_both_tails() -> None:
    law = clones(to_nano(1), 10**6)
    chance = 2 / (exp(1) + 1)
    low, high = int(law.counts[0]), int(law.counts[-1])
    outside = np.concatenate((np.arange(low - 1000, low), np.arange(high + 1, high + 1001)))
    tails = float(binomial_law(outside, 10**6 - 1, chance).sum())
    assert 0 < tails <= law.left_out < 1e-15


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_claimed_was_checked_and_never_rises_with_the_number_of_records(epsilon: NanoEpsilon) -> None:
    found = [amplified(epsilon, records) for records in SIZES]
    for item in found:
        assert item.epsilon_nano <= epsilon
        if item.method == "none":
            assert (item.epsilon_nano, item.delta) == (epsilon, 0.0)
            continue
        assert item.delta <= min(1e-6, nextafter(1 / (10 * item.records), inf))
        assert clones(epsilon, item.records).divergence(item.epsilon_nano) <= item.delta
    for before, after in pairwise(found):
        assert after.epsilon_nano <= before.epsilon_nano


def test_what_is_claimed_never_rises_from_one_record_to_the_next() -> None:
    for epsilon, start in ((2, 100), (2, 99_900), (1, 10), (8, 16_000), (8, 99_950)):
        found = [amplified(to_nano(epsilon), records).epsilon_nano for records in range(start, start + 100)]
        assert found == sorted(found, reverse=True)


def test_one_record_hides_among_nobody() -> None:
    for epsilon in EPSILONS:
        assert amplified(epsilon, 1).epsilon_nano == epsilon


def test_a_smaller_delta_costs_epsilon_and_a_larger_one_than_allowed_is_refused() -> None:
    epsilon = to_nano(2)
    assert amplified(epsilon, 10**4, 1e-9).epsilon_nano > amplified(epsilon, 10**4).epsilon_nano
    for records, delta in ((10**4, 1e-5), (10**6, 1e-6), (10**4, 0.0), (10**4, float("nan")), (0, None)):
        with pytest.raises(ConfigurationError):
            amplified(epsilon, records, delta)


def test_more_records_than_are_counted_on_claim_no_more() -> None:
    assert amplified(to_nano(2), 10**12) == amplified(to_nano(2), MOST_RECORDS)
    assert amplified(to_nano(2), 10**12).records == MOST_RECORDS


def test_the_same_integers_come_out_everywhere() -> None:
    """Frozen, since releases may hold them and every machine must find them again."""
    found = [amplified(to_nano(2), records).epsilon_nano for records in (100, 1716, 16_685, 10**6, 10**8)]
    assert found == [1_666_400_000, 295_600_000, 87_000_000, 11_400_000, 1_400_000]


def test_the_sentence_names_its_n_its_adversary_and_its_neighbours() -> None:
    text = histogram_text(full_ldp(to_nano(2), 2.0, 85), 16_685)
    assert text == (
        "Against whoever sees only the histogram, not the reports: (0.087, 1e-6)-DP with one record's value replaced "
        "by another, and for replacement only (n = 16685, the smallest histogram)."
    )


def test_the_sentence_of_disclosed_bins_stays_within_a_bin() -> None:
    text = histogram_text(within_bin(to_nano(2), 2.0, "16 bins of 5 or 6 values"), 300)
    assert text is not None
    assert "within a bin" in text
    assert "another of its bin" in text
    assert "the smallest histogram of one bin" in text
    assert "LDP" not in text


def test_the_sentence_claims_nothing_where_nothing_is_gained() -> None:
    text = histogram_text(full_ldp(to_nano(8), 8.0, 85), 10)
    assert text is not None
    assert text.startswith("Nothing is gained")


def test_noise_at_the_department_is_not_amplified() -> None:
    assert histogram_text(at_department(to_nano(2), ADD_OR_REMOVE), 10**5) is None


def test_a_delta_is_never_shown_smaller_than_it_is() -> None:
    text = histogram_text(full_ldp(to_nano(2), 2.0, 85), 168_000)  # 1/1,680,000 = 5.952…e-7
    assert text is not None
    assert "6.0e-7)" in text or "6e-7)" in text
