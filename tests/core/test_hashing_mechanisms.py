"""Local hashing, sketches and RAPPOR: laws exact over hash functions, draws that follow them, seeds that are public.

Not here: mechanisms without hash functions.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from agent_world import SURVEY
from deterministic import Named
from significance import ALPHA, bonferroni
from tallyveil.epsilon import to_nano
from tallyveil.errors import ConfigurationError, InputError, PeerError
from tallyveil.mechanisms import Mechanism, Tally, create, for_survey
from tallyveil.mechanisms.bloom import Bloom, bloom_for
from tallyveil.mechanisms.hash_tables import hash_tables
from tallyveil.mechanisms.olh import OptimisedLocalHashing, best_weights
from tallyveil.mechanisms.polynomial import Buckets, count_hits, evaluate
from tallyveil.mechanisms.rappor import Rappor
from tallyveil.mechanisms.sketch_law import Sketch, SketchLaw
from tallyveil.mechanisms.sketches import CountMeanSketch, HadamardSketch, default_sketch
from tallyveil.mechanisms.weights import response_weights

SEED = bytes(range(32))
SKETCHES = (CountMeanSketch, HadamardSketch)
TRUTH = np.array([30, 5, 0, 12, 3])


@pytest.mark.parametrize("buckets", [2, 3, 4])
def test_support_probabilities_are_exact_over_every_polynomial_of_a_small_field(buckets: int) -> None:
    field, item = 11, response_weights(buckets, to_nano(1))
    cut = Buckets(buckets, field)
    polynomials = np.array(list(product(range(field), repeat=3)), dtype=np.uint32)
    places = evaluate(polynomials[:, None, :], np.array([0, 4, 7], dtype=np.uint32)[None, :], field)
    hashed = places.astype(np.int64) * buckets // field
    own = one = both = with_truth = Fraction(0)
    for truth, first, second in hashed:
        for shown in range(buckets):
            chance = (item.p if shown == truth else item.q) / len(polynomials)
            own += chance * int(truth == shown)
            one += chance * int(first == shown)
            both += chance * int(first == shown == second)
            with_truth += chance * int(truth == shown == first)
    assert own == item.p
    assert (one, both) == (cut.shown(item.p, item.q, 1), cut.shown(item.p, item.q, 2))
    assert with_truth == cut.shown_with_truth(item.p)
    assert one != Fraction(1, buckets)  # what unequal buckets change


def test_hits_are_counted_as_by_evaluating_every_polynomial_at_every_value() -> None:
    cut = Buckets(7)
    coins = Named("polynomials")
    polynomials = (coins.words(3 * 500, 32) % np.uint32(cut.field)).astype(np.uint32).reshape(500, 3)
    polynomials[:8] = list(product((0, cut.field - 1), repeat=3))
    shown = np.arange(500) % 7
    values = np.arange(300, dtype=np.uint32)
    places = evaluate(polynomials[:, None, :], values[None, :], cut.field).astype(object)
    direct = (places * 7 // cut.field == shown[:, None]).sum(axis=0)
    counted = count_hits(polynomials, cut.starts[shown], cut.sizes[shown], 300, cut.field)
    assert counted.tolist() == direct.tolist()


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 4.0, 16.0])
def test_the_number_of_buckets_is_the_best_of_its_neighbours(epsilon: float) -> None:
    mechanism = OptimisedLocalHashing(100, to_nano(epsilon))
    assert 2 <= mechanism.buckets <= 32_768
    assert epsilon - 1e-5 <= mechanism.guarantee.realised_epsilon <= epsilon
    assert mechanism.law.p > mechanism.law.q
    if epsilon <= 4:
        best = sum(mechanism.variance(np.ones(100)))
        unary = create("oue", domain_size=100, epsilon=epsilon)
        assert best <= 1.01 * sum(unary.variance(np.ones(100)))
        assert best_weights(100, to_nano(epsilon)).size in range(int(np.exp(epsilon)), int(np.exp(epsilon)) + 4)


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_sketch_s_channel_has_the_realised_epsilon_as_its_largest_ratio(
    kind: type[CountMeanSketch] | type[HadamardSketch], size: int
) -> None:
    for epsilon in (0.01, log(3), 4.0):
        mechanism = kind(Sketch(SEED, 2, 8, size), to_nano(epsilon))
        channel = mechanism.channel()
        assert np.allclose(channel.sum(axis=1), 1, atol=1e-12)
        largest = float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())
        assert largest <= epsilon
        assert largest == pytest.approx(mechanism.guarantee.realised_epsilon, rel=1e-8) or size < 5
        assert mechanism.guarantee.realised_epsilon >= epsilon - 1e-5


def tables_of(function: tuple[int, ...], *_: object) -> NDArray[np.int64]:
    """One row: the hash function itself."""
    return np.array([function])


@pytest.mark.parametrize("kind", SKETCHES)
def test_a_sketch_s_law_is_exact_over_every_hash_function(
    kind: type[CountMeanSketch] | type[HadamardSketch], monkeypatch: pytest.MonkeyPatch
) -> None:
    size, width, counts = 3, 4, np.array([3.0, 2.0, 4.0])
    mean, square = np.zeros(size), np.zeros((size, size))
    functions = list(product(range(width), repeat=size))
    law = kind(Sketch(SEED, 1, width, size), to_nano(1)).law
    for function in functions:
        monkeypatch.setattr("tallyveil.mechanisms.sketch_law.hash_tables", partial(tables_of, function))
        mechanism = kind(Sketch(SEED, 1, width, size), to_nano(1))
        channel = mechanism.channel()
        singles = np.array(list(product((0, 1), repeat=width))) if kind is CountMeanSketch else np.eye(8, dtype=int)
        per_output = np.array([mechanism.law.supports(Tally(1, row)) for row in singles])
        p, q = float(law.support.p), float(law.support.q)
        means = channel @ per_output
        estimate = (counts @ means - counts.sum() * q) / (p - q)
        spread = sum(
            count * ((per_output * row[:, None]).T @ per_output - np.outer(middle, middle))
            for count, row, middle in zip(counts, channel, means, strict=True)
        )
        mean += estimate / len(functions)
        square += (spread / (p - q) ** 2 + np.outer(estimate, estimate)) / len(functions)
    assert np.allclose(mean, counts)
    assert np.allclose(square - np.outer(mean, mean), law.covariance(counts))
    assert np.allclose(np.diag(law.covariance(counts)), law.variance(counts))
    assert not np.allclose(law.variance(counts), law.support.variance(counts))  # collisions count


def seeded(name: str, seed: bytes, label: object = "") -> Mechanism:
    return create(
        name, domain_size=TRUTH.size, epsilon=2.0, hash_seed=seed, randomness=Named(f"{name} {seed.hex()} {label}")
    )


@pytest.mark.parametrize("name", ["olh", "cms", "hcms", "rappor"])
def test_over_fresh_seeds_estimates_are_unbiased_with_the_stated_variance(name: str) -> None:
    values, repeats = np.repeat(np.arange(TRUTH.size), TRUTH), 1500
    draws = np.empty((repeats, TRUTH.size))
    stated = np.empty((repeats, TRUTH.size))
    variance = seeded(name, SEED).variance(TRUTH)
    for number in range(repeats):
        mechanism = seeded(name, number.to_bytes(32, "big") if name != "rappor" else SEED, number)
        estimate = mechanism.estimate(mechanism.perturb_and_tally(values))
        draws[number], stated[number] = estimate.frequency, estimate.variance
    z = (draws.mean(axis=0) - TRUTH) / np.sqrt(variance / repeats)
    assert 2 * float(stats.norm.sf(float(np.abs(z).max()))) >= bonferroni(4 * TRUTH.size)
    assert np.allclose(draws.var(axis=0, ddof=1) / variance, 1, atol=6 * np.sqrt(2 / repeats))
    assert np.allclose(stated.mean(axis=0) / variance, 1, atol=0.05)


@pytest.mark.parametrize("name", ["cms", "hcms", "rappor", "olh"])
def test_exact_and_float_estimates_agree_and_reports_add_up_to_the_tally(name: str) -> None:
    mechanism = seeded(name, SEED)
    again = seeded(name, SEED)
    values = np.repeat(np.arange(TRUTH.size), TRUTH)
    tally = mechanism.tally(mechanism.perturb(values))
    assert tally.records == values.size and tally.counts.size == mechanism.law.outputs
    assert tally == again.perturb_and_tally(values)  # the same coins
    mechanism.law.check(tally)
    assert np.allclose(mechanism.law.corrected(tally), mechanism.estimate(tally).frequency)
    low, high = mechanism.estimate(tally).interval()
    assert (low >= 0).all() and (low <= high).all() and (high <= values.size).all()


@pytest.mark.parametrize("name", ["cms", "hcms", "rappor", "olh"])
def test_what_no_reports_can_have_made_is_refused(name: str) -> None:
    mechanism = seeded(name, SEED)
    law, tally = mechanism.law, mechanism.perturb_and_tally([0, 1, 2, 3])
    place = np.eye(law.outputs, dtype=np.int64)[int(tally.counts.argmax())]
    for wrong in (
        Tally(4, tally.counts[:-1]),
        Tally(4, tally.counts + 5 * place),
        Tally(4, tally.counts - 5 * place),
    ):
        with pytest.raises(PeerError):
            law.check(wrong)
    with pytest.raises(InputError):
        mechanism.perturb([5])
    with pytest.raises(InputError):
        mechanism.tally(np.full_like(mechanism.perturb([0]), np.iinfo(mechanism.perturb([0]).dtype).max))


def test_hash_tables_follow_from_the_seed_and_are_uniform() -> None:
    tables = hash_tables(SEED, 64, 1000, 16)
    assert np.array_equal(tables, hash_tables(SEED, 64, 1000, 16))
    assert not np.array_equal(tables, hash_tables(bytes(32), 64, 1000, 16))
    spread = np.bincount(tables.reshape(-1), minlength=16)
    assert float(stats.chisquare(spread).pvalue) >= ALPHA
    sketch = default_sketch(SEED, 85)
    assert (sketch.rows, sketch.width) == (64, 128)


def test_a_survey_s_hash_functions_differ_by_survey_and_epsilon() -> None:
    survey = replace(SURVEY, mechanism="cms", bins=1, epsilons=(SURVEY.epsilons[0], to_nano(3)))
    other = replace(survey, title="Another one")
    chosen = [(survey, survey.epsilons[0]), (survey, to_nano(3)), (other, to_nano(3))]
    seeds = [for_survey(item, epsilon).law.parameters[0]["hash_seed"] for item, epsilon in chosen]
    assert len(set(map(str, seeds))) == 3
    assert seeds[0] == for_survey(survey, survey.epsilons[0]).law.parameters[0]["hash_seed"]


def test_a_filter_s_way_back_is_exact_and_look_alikes_are_told() -> None:
    bloom = bloom_for(SEED, 8, 16, 2, 12)
    assert bloom.inverse is not None
    numerators, denominator = bloom.inverse
    stacked = bloom.design.reshape(-1, 12).astype(object)
    assert np.array_equal(numerators @ stacked, np.eye(12, dtype=np.int64).astype(object) * denominator)
    assert Bloom(SEED, 1, 2, 2, 12).inverse is None  # two bits cannot tell twelve candidates apart


def test_rappor_charges_the_permanent_epsilon_and_shows_less_in_one_report() -> None:
    mechanism = Rappor(20, to_nano(2), SEED)
    assert 2 - 1e-9 <= mechanism.guarantee.realised_epsilon <= 2
    assert mechanism.report_epsilon < 1
    with pytest.raises(ConfigurationError, match="at most 128"):
        create("rappor", domain_size=129, epsilon=2.0)


def test_rappor_s_covariance_is_the_one_that_is_drawn() -> None:
    mechanism = Rappor(5, to_nano(4), SEED, Named("rappor covariance"))
    values = np.repeat(np.arange(5), TRUTH)
    draws: NDArray[np.float64] = np.array(
        [mechanism.law.corrected(mechanism.perturb_and_tally(values)) for _ in range(4000)]
    )
    expected = mechanism.covariance(TRUTH)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((np.cov(draws.T) - expected) / scale).max() < 6 * np.sqrt(2 / 4000)
    assert isinstance(seeded("cms", SEED).law, SketchLaw)
