"""The auditor: its bounds are exact, honest mechanisms pass, and every planted fault is found from reports alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import e, exp, inf, log

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from deterministic import Named
from tallyveil.audit import (
    CONFIDENCE,
    REPEATED_RECORDS,
    Audit,
    BlackBox,
    Claim,
    OneRecordTables,
    audit,
    claim_of,
    exact_epsilon,
    share_coins,
)
from tallyveil.audit.binomial import beta_cdf, clopper_pearson
from tallyveil.audit.search import worst_event
from tallyveil.binning import Binning
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import Mechanism, create
from tallyveil.mechanisms.histogram_laplace import HistogramLaplace
from tallyveil.mechanisms.response import draw_below
from tallyveil.randomness import Keystream, Randomness
from tallyveil.survey import BINNED, MECHANISMS

SEED = b"a public hash seed for the tests"
FULL_DRAWS, FULL_MARGIN = 10_000_000, 0.05
DRAWS = 400_000
MARGIN = FULL_MARGIN * (FULL_DRAWS / DRAWS) ** 0.5
EPSILONS = (0.2, 1, 2, 4)

Values = NDArray[np.int64]


def mechanism(name: str, epsilon: float, domain_size: int, coins: Randomness | None = None) -> Mechanism:
    bins = 4 if name in BINNED else 1
    return create(name, domain_size=domain_size, epsilon=epsilon, bins=bins, hash_seed=SEED, randomness=coins)


def black_box(name: str, epsilon: float, domain_size: int, coins: Randomness | None = None) -> BlackBox:
    made = mechanism(name, epsilon, domain_size, coins)
    return OneRecordTables(made, coins) if isinstance(made, HistogramLaplace) else made


def every_time(label: str, make: Callable[[Randomness], BlackBox]) -> Callable[[], BlackBox]:
    """Makes it with coins that are the same in every run of the tests and differ from one making to the next."""
    numbers = count()
    return lambda: make(Named(f"{label}-{next(numbers)}"))


def audited(name: str, epsilon: float, domain_size: int, draws: int, claim: Claim | None = None) -> Audit:
    claim = claim or claim_of(mechanism(name, epsilon, domain_size))
    make = every_time(f"audit-{name}-{epsilon}-{domain_size}", partial(black_box, name, epsilon, domain_size))
    return audit(make, claim, draws)


def whole(epsilon: float, domain_size: int) -> Claim:
    return Claim(epsilon, Binning(domain_size, 1))


# Bounds


@pytest.mark.parametrize("tail", [0.025, 2.5e-6, 1e-9])
@pytest.mark.parametrize(
    ("successes", "trials"),
    [(0, 1), (1, 1), (0, 50), (50, 50), (1, 50), (49, 50), (20, 57), (3, 10_000), (9_990, 10_000), (14_320, 1_000_000)],
)
def test_bounds_are_those_of_clopper_and_pearson(successes: int, trials: int, tail: float) -> None:
    low, high = clopper_pearson(successes, trials, tail)
    expected_low = stats.beta.ppf(tail, successes, trials - successes + 1) if successes else 0
    expected_high = stats.beta.isf(tail, successes + 1, trials - successes) if successes < trials else 1
    assert low == pytest.approx(expected_low, rel=1e-8) and high == pytest.approx(expected_high, rel=1e-8)


@pytest.mark.parametrize("successes", [0, 1, 400, 90_000, 50_000_000])
def test_bounds_stay_exact_at_a_hundred_million_trials(successes: int) -> None:
    low, high = clopper_pearson(successes, 100_000_000, 1e-6)
    assert stats.binom.sf(successes - 1, 100_000_000, low) == pytest.approx(1e-6 if successes else 1, rel=1e-4)
    assert stats.binom.cdf(successes, 100_000_000, high) == pytest.approx(1e-6, rel=1e-4)


def test_the_incomplete_beta_function_agrees_with_scipy() -> None:
    for a, b in ((0.5, 3), (1, 1), (3, 900), (5e4, 2e5), (1e7, 1.0)):
        for x in (0.0, 1e-6, 0.003, 0.2, 0.5, 0.999, 1.0):
            assert beta_cdf(x, a, b) == pytest.approx(float(stats.beta.cdf(x, a, b)), rel=1e-6, abs=1e-14)


@pytest.mark.parametrize(("successes", "trials", "tail"), [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 2, 0.0)])
def test_what_no_experiment_can_give_is_refused(successes: int, trials: int, tail: float) -> None:
    with pytest.raises(ConfigurationError):
        clopper_pearson(successes, trials, tail)


# Honest mechanisms


def require_honest(result: Audit, realised: float, draws: int, margin: float) -> None:
    lower, upper = result.main.bounds
    assert result.conclusive and not result.exceeded and result.repeated == ()
    assert lower <= result.main.estimate <= upper <= realised + margin
    assert sum(result.main.records) + sum(result.between.records if result.between else ()) <= draws // 2


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_an_honest_mechanism_keeps_its_realised_epsilon(name: str, epsilon: float) -> None:
    size = 4 if name == "histogram-laplace" else 16
    result, realised = audited(name, epsilon, size, DRAWS), mechanism(name, epsilon, size).guarantee.realised_epsilon
    lower, upper = result.main.bounds
    assert upper <= realised + MARGIN and not result.exceeded and result.repeated == ()
    if name != "rappor":  # its permanent response is never seen alone
        assert lower >= realised - MARGIN


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_ten_million_draws_hold_the_worst_event_to_within_a_twentieth(name: str, epsilon: float) -> None:
    size = 4 if name == "histogram-laplace" else 16
    result = audited(name, epsilon, size, FULL_DRAWS)
    require_honest(result, mechanism(name, epsilon, size).guarantee.realised_epsilon, FULL_DRAWS, FULL_MARGIN)


@pytest.mark.parametrize("name", ["grr", "brr", "brr-sealed", "ss", "sue", "oue", "hr"])
def test_the_exact_channel_of_a_small_domain_has_the_realised_epsilon(name: str) -> None:
    made = mechanism(name, 1.5, 8)
    assert exact_epsilon(made) == pytest.approx(made.guarantee.realised_epsilon, abs=1e-8)


def test_a_channel_too_large_to_write_down_is_left_out() -> None:
    assert exact_epsilon(mechanism("oue", 1, 64)) is None and exact_epsilon(mechanism("olh", 1, 4)) is None


def test_a_large_domain_is_audited_at_values_of_its_ends_and_middle() -> None:
    result = audited("oue", 2, 5_000, 100_000)
    assert {0, 1, 4_998, 4_999} < set(result.claim.compared) and len(result.claim.compared) <= 16
    assert result.main.half_width < 1 and not result.exceeded


# Bins


def test_disclosed_bins_have_a_bound_within_and_none_between() -> None:
    result = audited("brr", 1, 64, DRAWS)
    assert result.main.scope == "within a bin" and not result.exceeded and result.conclusive
    assert result.between is not None and result.unbounded_between
    assert result.between.estimate == inf and result.between.bounds[1] == inf and result.between.happened[1] == 0
    few = audited("brr", 1, 64, DRAWS // 10)
    assert few.between is not None
    assert few.between.bounds[0] + 2 < result.between.bounds[0]  # it grows with the draws, as log n


@dataclass
class Clear:
    """Bins of one value: the truth."""

    def perturb(self, values: Values) -> ArrayLike:
        return values


@pytest.mark.parametrize("binning", [Binning(6, 1), Binning(6, 6)])
def test_bins_of_one_value_are_found_whatever_bins_are_claimed(binning: Binning) -> None:
    result = audit(Clear, Claim(2, binning), 100_000)
    assert result.exceeded and result.main.bounds[0] > 6 and result.main.bounds[1] == inf
    assert result.unbounded_between == (binning.bins > 1)


# Planted faults


@dataclass
class WrongBits:
    """Unary encoding with the symmetric encoding's p, a little more, beside the optimised one's q."""

    domain_size: int
    coins: Randomness
    p = 0.634
    q = 1 / (e + 1)

    def perturb(self, values: Values) -> ArrayLike:
        words = self.coins.words(values.size * self.domain_size, 64).reshape(values.size, self.domain_size)
        uniform = words / 2.0**64
        bits = uniform < self.q
        rows = np.arange(values.size)
        bits[rows, values] = uniform[rows, values] < self.p
        return bits.astype(np.uint8)


def test_bits_of_two_encodings_mixed_up_realise_more_than_is_claimed() -> None:
    realised = log(WrongBits.p * (1 - WrongBits.q) / ((1 - WrongBits.p) * WrongBits.q))
    assert realised == pytest.approx(1.55, abs=0.005)
    result = audit(every_time("wrong-bits", partial(WrongBits, 16)), whole(1, 16), DRAWS)
    assert result.exceeded and result.main.bounds[0] > 1.3
    assert not audit(every_time("wrong-bits", partial(WrongBits, 16)), whole(realised, 16), DRAWS).exceeded


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "rappor"])
def test_twice_the_claimed_epsilon_is_found(name: str) -> None:
    size = 4 if name == "histogram-laplace" else 16
    binning = mechanism(name, 1, size).binning
    result = audited(name, 2, size, DRAWS // 2, Claim(1, binning))
    assert result.exceeded and result.main.bounds[0] > 1.5


@dataclass
class HalfEnds:
    """Reports near the truth on a grid of 8 points, as if real numbers had been rounded: both ends have half a cell."""

    coins: Randomness
    epsilon = 2.0
    points = 8

    @property
    def channel(self) -> NDArray[np.float64]:
        cells = np.array([0.5, *[1.0] * (self.points - 2), 0.5])
        grid = np.arange(self.points)
        weights = cells * np.where(abs(grid[:, None] - grid) <= 1, exp(self.epsilon), 1)
        law: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return law

    def perturb(self, values: Values) -> ArrayLike:
        uniform = self.coins.words(values.size, 64) / 2.0**64
        places = (self.channel.cumsum(axis=1)[values] < uniform[:, None]).sum(axis=1)
        on_the_grid: NDArray[np.float64] = places / 3.5 - 1  # on [−1, 1]
        return on_the_grid


def test_half_cells_at_the_ends_of_a_numeric_grid_are_found() -> None:
    channel = HalfEnds(Named("law")).channel
    assert log((channel.max(axis=0) / channel.min(axis=0)).max()) == pytest.approx(2.45, abs=0.01)
    result = audit(every_time("half-ends", HalfEnds), whole(2, 8), DRAWS)
    assert result.exceeded and 2.2 < result.main.bounds[0] < 2.45 < result.main.bounds[1]


@dataclass
class SixteenBits:
    """Randomised response over many values with 16-bit words taken modulo the total of the weights."""

    coins: Randomness
    domain_size = 40_000
    keep = 7
    unbiased = False

    def perturb(self, values: Values) -> ArrayLike:
        total = self.keep + self.domain_size - 1
        if self.unbiased:
            numbers = draw_below(np.uint32(total), values.size, 32, Masked(self.coins, 0xFFFF)).astype(np.int64)
        else:
            numbers = self.coins.words(-(-values.size // 2), 32).view(np.uint16)[: values.size].astype(np.int64) % total
        reports: Values = (values + np.maximum(numbers - self.keep + 1, 0)) % self.domain_size
        return reports


@dataclass
class Masked:
    """Words with fewer bits."""

    coins: Randomness
    mask: int

    def words(self, count: int, bits: object) -> NDArray[np.uint32]:
        return self.coins.words(count, 32).astype(np.uint32) & np.uint32(self.mask)


def test_modulo_bias_of_sixteen_bit_words_is_found_in_a_domain_of_forty_thousand_values() -> None:
    claim = whole(2, SixteenBits.domain_size)
    assert log(SixteenBits.keep) < 2  # what the weights promise
    result = audit(every_time("sixteen-bits", SixteenBits), claim, 60_000_000)
    assert result.exceeded and result.main.bounds[1] > log(2 * SixteenBits.keep)


@dataclass
class Unbiased(SixteenBits):
    """The same without the fault."""

    unbiased = True


def test_the_same_words_without_bias_are_not_accused() -> None:
    claim = whole(2, SixteenBits.domain_size)
    assert not audit(every_time("unbiased", Unbiased), claim, 20_000_000).exceeded


# Coins that repeat


def fixed(name: str, size: int) -> BlackBox:
    return black_box(name, 1, size, Named("fixed"))


def test_a_fixed_seed_is_found_in_every_mechanism_that_has_one() -> None:
    for name in MECHANISMS:
        size = 4 if name == "histogram-laplace" else 16
        claim = claim_of(mechanism(name, 1, size))
        result = audit(partial(fixed, name, size), claim, 2_000)
        assert result.repeated == ("two mechanisms made alike",), name


@dataclass
class Reseeded:
    """The same coins at each call; hash functions, which are published, are fresh."""

    epsilon: float
    fresh: Keystream = field(default_factory=Keystream)

    def perturb(self, values: Values) -> ArrayLike:
        kept = Named("each call").words(values.size, 64) / 2.0**64 < exp(self.epsilon) / (exp(self.epsilon) + 1)
        return np.where(kept, values, 1 - values)


def test_a_seed_set_at_each_call_is_found() -> None:
    result = audit(partial(Reseeded, 1.0), whole(1, 2), 2_000)
    assert result.repeated == ("two calls of one mechanism", "two mechanisms made alike")


def test_repeated_coins_are_found_behind_fresh_hash_functions() -> None:
    def with_fixed_coins() -> BlackBox:
        made = create("olh", domain_size=16, epsilon=1)
        made._randomness = Named("coins")  # type: ignore[attr-defined]  # its public stream stays fresh
        return made

    assert "two mechanisms made alike" in audit(with_fixed_coins, whole(1, 16), 2_000).repeated


def test_streams_that_mostly_agree_by_chance_are_not_accused() -> None:
    sure = [create("grr", domain_size=2, epsilon=8, randomness=Named(f"sure-{number}")) for number in range(2)]
    zeros = np.zeros(REPEATED_RECORDS, dtype=np.int64)
    first, second = (made.perturb(zeros) for made in sure)
    assert (first == second).mean() > 0.99 and not share_coins(first, second)
    assert not share_coins(zeros, zeros)  # reports that never differ tell nothing


def test_a_stream_that_agrees_for_half_of_its_length_is_accused() -> None:
    made = create("oue", domain_size=8, epsilon=1, randomness=Named("partly"))
    zeros = np.zeros(REPEATED_RECORDS, dtype=np.int64)
    first, second = made.perturb(zeros), made.perturb(zeros).copy()
    assert not share_coins(first, second)
    second[: REPEATED_RECORDS // 2] = first[: REPEATED_RECORDS // 2]
    assert share_coins(first, second)


# Searching and measuring


@dataclass
class Deaf:
    """Reports that have nothing to do with the value."""

    coins: Randomness
    outcomes: int = 50_000

    def perturb(self, values: Values) -> ArrayLike:
        return self.coins.words(values.size, 32) % np.uint32(self.outcomes)


def test_what_was_chosen_for_looking_bad_is_measured_on_other_draws() -> None:
    box, size, values = Deaf(Named("deaf")), 20_000, np.zeros(20_000, dtype=np.int64)
    first, second = (np.bincount(np.asarray(box.perturb(values)), minlength=50_000) for _ in range(2))
    event = worst_event(first, second, (size, size))
    same_draws = (
        clopper_pearson(event.happened(first, size), size, 1e-6)[0],
        clopper_pearson(event.happened(second, size), size, 1e-6)[1],
    )
    result = audit(every_time("deaf-audit", Deaf), whole(0.05, 2), 40_000)
    assert log(same_draws[0] / same_draws[1]) > 0.3  # the fault that two halves avoid
    assert not result.exceeded and result.main.bounds[0] == 0


def test_outcomes_that_each_say_little_are_joined() -> None:
    rng = Named("joined")
    first = 30 + rng.words(1_000, 32).astype(np.int64) % 20
    second = first.copy()
    first[::2] *= 2
    event = worst_event(first, second, (int(first.sum()), int(first.sum())))
    assert event.outcomes.size > 400 and (event.outcomes % 2 == 0).mean() > 0.9


def test_opposites_are_tried_where_outcomes_cannot_be_joined() -> None:
    event = worst_event(np.array([99_000, 50_000]), np.array([99_900, 50_000]), (100_000, 100_000), exclusive=False)
    assert event.negated and event.outcomes.tolist() == [0] and event.happened(np.array([7, 1]), 10) == 3


@dataclass
class Continuous:
    """Logistic noise of scale 1/epsilon on a number."""

    epsilon: float
    coins: Randomness

    def perturb(self, values: Values) -> ArrayLike:
        uniform = (self.coins.words(values.size, 64) / 2 + 1) / 2.0**63
        return values + np.log(uniform / np.maximum(1 - uniform, 1e-18)) / self.epsilon


def test_real_numbers_are_told_apart_at_a_threshold() -> None:
    make = every_time("continuous", partial(Continuous, 1.0))
    assert not audit(make, whole(1, 2), DRAWS).exceeded
    assert audit(every_time("continuous", partial(Continuous, 2.0)), whole(1, 2), DRAWS).exceeded


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint16, np.int64, np.float32])
def test_numbers_of_any_kind_are_reports(kind: type[np.generic]) -> None:
    made = create("grr", domain_size=2, epsilon=1, randomness=Named(f"kind-{kind.__name__}"))

    def report(values: Values) -> ArrayLike:
        return np.asarray(made.perturb(values)).astype(kind)

    result = audit(lambda: Perturbing(report), whole(1, 2), 50_000)
    assert result.conclusive and not result.exceeded and result.main.bounds[0] > 0.8


@pytest.mark.parametrize("size", [3, 200, 300])
def test_reports_above_all_that_were_seen_first_still_count(size: int) -> None:
    for number in range(20):
        made = create("grr", domain_size=size, epsilon=1, randomness=Named(f"few-{size}-{number}"))
        assert not audit(partial(Perturbing, made.perturb), whole(1, size), 400).exceeded


@dataclass
class Perturbing:
    """By a function."""

    report: Callable[[Values], ArrayLike]

    def perturb(self, values: Values) -> ArrayLike:
        return self.report(values)


# Too little, and nonsense


@pytest.mark.parametrize("draws", [2, 100, 3_000])
def test_too_few_draws_conclude_nothing(draws: int) -> None:
    result = audited("oue", 1, 16, draws)
    assert not result.conclusive and not result.exceeded


def test_an_event_that_is_certain_under_both_values_concludes_nothing() -> None:
    result = audit(every_time("deaf-to-two", partial(Deaf, outcomes=2)), whole(1, 2), DRAWS)
    assert result.main.half_width < 0.1 and not result.conclusive


@pytest.mark.parametrize(
    ("one", "too_many"),
    [(0, True), ("text", False), (np.zeros((2, 2)), False), (np.full(40, 7.5), False)],
    ids=["too many", "text", "matrices", "vectors of real numbers"],
)
def test_reports_that_are_nothing_to_look_at_are_refused(one: object, too_many: bool) -> None:
    def report(values: Values) -> ArrayLike:
        return np.array([one] * (values.size + too_many))

    with pytest.raises(ConfigurationError):
        audit(lambda: Perturbing(report), whole(1, 4), 1_000)


@pytest.mark.parametrize("draws", [1, 0, -5, 10**12])
def test_impossible_numbers_of_draws_are_refused(draws: int) -> None:
    with pytest.raises(ConfigurationError):
        audited("grr", 1, 4, draws)


def test_the_stated_confidence_is_that_of_one_error_in_a_hundred_thousand() -> None:
    assert pytest.approx(1 - 1e-5) == CONFIDENCE
