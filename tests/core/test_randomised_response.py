"""The law of what is reported: how often the truth, and that the lies are uniform; faults that must not pass.

Not here: the weights themselves (`test_weights`) and what reports are worth (`test_estimates`). The check is one
function of truths and reports, so that planted faults go through the very check that the mechanisms pass.
"""

from __future__ import annotations

import copy
import os
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from math import exp, inf, nan
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from deterministic import Named, Scripted
from significance import binomial_p, bonferroni, chi_square_p
from tallyveil import canonical
from tallyveil.binning import Binning
from tallyveil.epsilon import checked_nano, to_nano
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms import create, for_survey
from tallyveil.mechanisms.indices import checked_indices
from tallyveil.mechanisms.response_base import CHUNK_RECORDS
from tallyveil.mechanisms.weights import response_weights
from tallyveil.randomness import Keystream
from tallyveil.survey import Survey, survey_from_json

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
LN3 = 1.0986122886681098
SIZES = (2, 3, 5, 6, 85, 1024)
EPSILONS = (0.2, LN3, 2.0, 6.0)
BINNINGS = ((85, 16), (85, 4), (7, 3), (5, 2))
COMPARISONS = 200
"""More than all p-values this file asks for, so that `LEVEL` holds for the whole of it."""
LEVEL = bonferroni(COMPARISONS)

Indices = NDArray[np.integer[Any]]


def records(size: int) -> int:
    """Enough that one per cent more keeps at K = 6, or one of 1,023 lies doubled, cannot hide."""
    return 4_000_000 if size <= 6 else 1_200_000


def p_values(truths: Indices, reports: Indices, size: int, epsilon: float) -> dict[str, float]:
    """The check: each p-value is that of the law of randomised response over `size` values.

    ``keep`` is exact, for the number of reports that equal their truth; ``lies`` is chi-square, for the cyclic
    distances of the others from their truths, which are uniform whatever the truths are.
    """
    counts = np.bincount((reports.astype(np.int64) - truths) % size, minlength=size)
    kept, lies = int(counts[0]), counts[1:]
    law = np.full(size - 1, lies.sum() / (size - 1))
    return {
        "keep": binomial_p(kept, int(counts.sum()), 1 / (1 + (size - 1) * exp(-epsilon))),
        "lies": chi_square_p(lies, law) if size > 2 else 1.0,
    }


def fies() -> NDArray[np.int64]:
    """The 85 true counts of ages 15..99."""
    table: NDArray[np.int64] = np.loadtxt(
        VECTORS / "fies_age_counts.csv", delimiter=",", skiprows=3, usecols=1, dtype=np.int64
    )
    return table


def sample_survey() -> Survey:
    return survey_from_json(canonical.decode((VECTORS / "core_survey.json").read_bytes()))


@pytest.mark.parametrize(("size", "epsilon"), list(product(SIZES, EPSILONS)))
def test_one_truth_is_kept_and_lied_about_as_the_law_says(size: int, epsilon: float) -> None:
    truths = np.full(records(size), size // 2)
    mechanism = create("grr", domain_size=size, epsilon=epsilon, randomness=Named(f"one truth {size} {epsilon}"))
    assert min(p_values(truths, mechanism.perturb(truths), size, epsilon).values()) >= LEVEL


@pytest.mark.parametrize(("size", "epsilon"), [(2, 0.2), (3, LN3), (5, 2.0), (6, 6.0), (85, 2.0), (1024, 2.0)])
def test_all_truths_mixed_are_kept_and_lied_about_alike(size: int, epsilon: float) -> None:
    truths = np.arange(1_200_000) % size
    mechanism = create("grr", domain_size=size, epsilon=epsilon, randomness=Named(f"all truths {size} {epsilon}"))
    assert min(p_values(truths, mechanism.perturb(truths), size, epsilon).values()) >= LEVEL


@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_every_row_of_a_small_channel_is_drawn_as_stated(size: int) -> None:
    mechanism = create("grr", domain_size=size, epsilon=2.0, randomness=Named(f"rows {size}"))
    for truth, row in enumerate(mechanism.channel()):
        counts = mechanism.tally(mechanism.perturb(np.full(200_000, truth))).counts
        assert chi_square_p(counts, row * 200_000) >= LEVEL


@pytest.mark.parametrize(("values", "bins"), BINNINGS)
def test_brr_draws_the_same_law_inside_every_bin_and_never_leaves_it(values: int, bins: int) -> None:
    binning = Binning(values, bins)
    mechanism = create("brr", domain_size=values, bins=bins, epsilon=2.0, randomness=Named(f"bins {values} {bins}"))
    assert len(set(binning.sizes.tolist())) == 2
    truths = np.arange(2_000_000) % values
    reports = mechanism.perturb(truths)
    assert np.array_equal(binning.bin_of[reports], binning.bin_of[truths])
    for number, (start, size) in enumerate(zip(binning.starts, binning.sizes, strict=True)):
        here = binning.bin_of[truths] == number
        assert min(p_values(truths[here] - start, reports[here] - start, int(size), 2.0).values()) >= LEVEL


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_keep_probability_one_per_cent_too_high_is_found(epsilon: float) -> None:
    size, truths = 6, np.full(records(6), 3)
    honest = create("grr", domain_size=size, epsilon=epsilon, randomness=Named(f"keep {epsilon}")).perturb(truths)
    keep = 1 / (1 + (size - 1) * exp(-epsilon))
    turned = coin(min(0.01 * keep / (1 - keep), 1), truths.size, f"turned {epsilon}")
    assert min(p_values(truths, honest, size, epsilon).values()) >= LEVEL
    assert p_values(truths, np.where(turned, truths, honest), size, epsilon)["keep"] < LEVEL


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_lie_told_twice_as_often_is_found(epsilon: float) -> None:
    size, truths = 1024, np.full(records(1024), 700)
    honest = create("grr", domain_size=size, epsilon=epsilon, randomness=Named(f"lie {epsilon}")).perturb(truths)
    turned = coin(exp(-epsilon), truths.size, f"doubled {epsilon}") & (honest == truths)
    assert min(p_values(truths, honest, size, epsilon).values()) >= LEVEL
    assert p_values(truths, np.where(turned, 11, honest), size, epsilon)["lies"] < LEVEL


def coin(chance: float, count: int, label: str) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = Named(label).words(count, 32) < int(chance * 2**32)
    return result


@pytest.mark.parametrize("size", [2, 3, 6])
def test_a_lie_that_may_equal_the_truth_is_found(size: int) -> None:
    """Fault 8: "otherwise a uniform value" keeps the truth more often than p."""
    truths = np.full(1_000_000, 1)
    keep = coin(1 / (1 + (size - 1) * exp(-LN3)), truths.size, "naive keep")
    naive = np.where(keep, truths, Named("naive value").words(truths.size, 64) % size)
    assert p_values(truths, naive, size, LN3)["keep"] < LEVEL


def test_with_two_values_and_epsilon_ln_3_three_quarters_are_true() -> None:
    """Fault 8, as the list of cases states it."""
    reports = create("grr", domain_size=2, epsilon=LN3, randomness=Named("fault 8")).perturb(np.ones(10**6, dtype=int))
    assert np.mean(reports == 1) == pytest.approx(0.75, abs=0.0017)


@pytest.mark.parametrize("size", [2, 6, 85, 1024, 65_536])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_brr_with_one_bin_and_grr_agree_bit_for_bit(size: int, epsilon: float) -> None:
    truths = np.arange(3 * CHUNK_RECORDS + 7) % size
    grr = create("grr", domain_size=size, epsilon=epsilon, randomness=Named("same stream")).perturb(truths)
    brr = create("brr", domain_size=size, epsilon=epsilon, randomness=Named("same stream"), bins=1).perturb(truths)
    assert grr.dtype == brr.dtype
    assert grr.tobytes() == brr.tobytes()


def test_words_at_the_edges_fall_where_the_weights_say() -> None:
    size, truth = 6, 4
    weights = response_weights(size, to_nano(2.0))
    keep, lie = weights.keep, weights.lie
    edges = [0, keep - lie - 1, keep - lie, keep - 1, keep, keep + lie - 1, keep + lie, weights.total - 1]
    source = Scripted(edges)
    mechanism = create("grr", domain_size=size, epsilon=2.0, randomness=source)
    expected = [(truth + distance) % size for distance in (0, 0, 0, 0, 1, 1, 2, size - 1)]
    assert mechanism.perturb(np.full(len(edges), truth)).tolist() == expected
    assert source.exhausted


def test_words_beyond_the_total_are_drawn_again_until_one_is_below() -> None:
    weights = response_weights(6, to_nano(2.0))
    total, last = weights.total, 2**weights.bits - 1
    source = Scripted([0, total, last, total - 1], [last, 0], [weights.keep])
    mechanism = create("grr", domain_size=6, epsilon=2.0, randomness=source)
    assert mechanism.perturb(np.zeros(4, dtype=int)).tolist() == [0, 1, 0, 5]
    assert source.exhausted


def test_a_word_that_only_the_larger_bins_can_use_is_drawn_again_in_a_smaller_one() -> None:
    large, small = 0, 84  # value 0 is in a bin of 6, value 84 in a bin of 5
    sizes = Binning(85, 16).sizes
    assert (int(sizes[0]), int(sizes[-1])) == (6, 5)
    mechanism = create("brr", domain_size=85, bins=16, epsilon=2.0)
    weights = mechanism.blocks.weights
    word = weights[-1].total  # the first that a bin of five has no use for
    for truth, answers, report in ((large, ([word],), 5), (small, ([word], [word - 1]), 83)):
        source = Scripted(*answers)
        m = create("brr", domain_size=85, bins=16, epsilon=2.0, randomness=source)
        assert m.perturb([truth]).tolist() == [report]
        assert source.exhausted


def test_many_rejected_words_leave_the_law_as_it_is() -> None:
    """A source whose every other word is beyond the total."""

    class Wasteful(Named):
        def words(self, count: int, bits: Any) -> Any:
            words = super().words(count, bits).copy()
            words[1::2] = 2**bits - 1
            return words

    truths = np.full(400_000, 2)
    reports = create("grr", domain_size=5, epsilon=2.0, randomness=Wasteful("wasteful")).perturb(truths)
    assert min(p_values(truths, reports, 5, 2.0).values()) >= LEVEL


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize(("name", "values", "bins"), [("grr", 100, 1), ("brr", 100, 9), ("brr", 100, 10)])
def test_the_values_integer_type_changes_no_report(dtype: str, name: str, values: int, bins: int) -> None:
    def mechanism() -> Any:
        return create(name, domain_size=values, bins=bins, epsilon=2.0, randomness=Named("types"))

    truths = np.arange(values)
    reports = mechanism().perturb(truths.astype(dtype))
    assert np.array_equal(reports, mechanism().perturb(truths))
    assert reports.dtype == np.uint8
    assert np.array_equal(mechanism().tally(reports.astype(dtype)).counts, np.bincount(reports, minlength=values))


def test_reports_keep_the_shape_of_the_values() -> None:
    mechanism = create("brr", domain_size=85, bins=16, epsilon=2.0)
    for shape in ((), (0,), (3, 4), (0, 2), (2, 1, 5)):
        assert mechanism.perturb(np.zeros(shape, dtype=int)).shape == shape
    columns = np.arange(170).reshape(2, 85)[:, ::3] % 85
    binning = Binning(85, 16)
    assert np.array_equal(binning.bin_of[mechanism.perturb(columns)], binning.bin_of[columns])


@pytest.mark.parametrize("size", [2, 6, 256, 300])
@pytest.mark.parametrize("beyond", [-1, 0, 2**40])
def test_indices_outside_the_domain_are_refused_and_named_nowhere(size: int, beyond: int) -> None:
    mechanism = create("grr", domain_size=size, epsilon=2.0, randomness=Scripted())
    bad = np.array([0, 1, beyond + size if beyond >= 0 else beyond])
    for use in (mechanism.perturb, mechanism.tally):
        with pytest.raises(InputError) as caught:
            use(bad)
        assert str(2**40) not in str(caught.value)


def test_reports_beyond_the_domain_that_fit_their_type_are_refused() -> None:
    mechanism = create("grr", domain_size=85, epsilon=2.0)
    for dtype in (np.uint8, np.uint16, np.uint32):
        with pytest.raises(InputError):
            mechanism.tally(np.array([0, 85], dtype=dtype))


@pytest.mark.parametrize("values", [[0.0, 1.0], [True, False], ["0", "1"], [None, 1], [1 + 0j]])
def test_values_that_are_no_whole_numbers_are_refused(values: list[object]) -> None:
    mechanism = create("grr", domain_size=6, epsilon=2.0, randomness=Scripted())
    for use in (mechanism.perturb, mechanism.tally):
        with pytest.raises(InputError):
            use(np.array(values))


BAD_EPSILONS = (0, 0.0, -0.0, -1, nan, inf, -inf, 1e-320, 0.0099999, 16.000001, 710, 1e308, 10**400, "", "two", "nan")
NO_NUMBERS: tuple[object, ...] = (True, False, None, [], [2], (0, (2,), 0), {}, b"2", 2 + 0j)


@pytest.mark.parametrize("epsilon", [*BAD_EPSILONS, *NO_NUMBERS])
def test_an_epsilon_that_is_none_is_refused_by_every_door(epsilon: Any) -> None:
    """Fault 9."""
    survey = sample_survey()
    doors: list[Callable[[], object]] = [
        lambda: to_nano(epsilon),
        lambda: create("grr", domain_size=85, epsilon=epsilon),
        lambda: create("brr", domain_size=85, bins=16, epsilon=epsilon),
    ]
    for door in doors:
        with pytest.raises(ConfigurationError, match="epsilon"):
            door()
    body = survey.to_json()
    for key, value in (("epsilons_nano", [epsilon]), ("epsilon_floor_nano", epsilon)):
        with pytest.raises(ConfigurationError):
            survey_from_json(body | {key: value})


@pytest.mark.parametrize("nano", [0, -1, 9_999_999, 16 * 10**9 + 1, 2e9, nan, inf, "2000000000", True, None])
def test_a_survey_takes_epsilon_in_whole_nano_nats_of_the_permitted_range_only(nano: Any) -> None:
    """Fault 9."""
    for make in (
        lambda: checked_nano(nano),
        lambda: survey_from_json(sample_survey().to_json() | {"epsilons_nano": [nano]}),
        lambda: replace(sample_survey(), epsilons=(nano,)),
        lambda: replace(sample_survey(), epsilon_floor=nano),
    ):
        with pytest.raises(ConfigurationError):
            make()


@pytest.mark.parametrize("size", [1, 0, -5, 65_537, 10**30, nan, 85.0, "85", "", True, None])
def test_a_domain_size_that_is_none_is_refused(size: Any) -> None:
    """Fault 9: K = 1 and its like."""
    for name in ("grr", "brr"):
        with pytest.raises(ConfigurationError):
            create(name, domain_size=size, epsilon=2.0)


@pytest.mark.parametrize("bins", [0, -1, 43, 85, 86, 10**30, 16.0, "16", True, None])
def test_a_number_of_bins_that_is_none_or_shows_a_value_is_refused(bins: Any) -> None:
    with pytest.raises(ConfigurationError):
        create("brr", domain_size=85, bins=bins, epsilon=2.0)


def test_numbers_of_numpys_types_are_numbers() -> None:
    values, bins = cast(int, np.int64(85)), cast(int, np.uint8(16))
    mechanism = create("brr", domain_size=values, bins=bins, epsilon=np.float64(0.1))
    assert mechanism.epsilon == to_nano(0.1) == to_nano(np.float64(0.1)) == 100_000_000
    assert type(mechanism.domain_size) is int


def test_an_unknown_mechanism_and_bins_for_grr_are_refused() -> None:
    for name in ("", "GRR", "dump"):
        with pytest.raises(ConfigurationError, match="no such mechanism"):
            create(name, domain_size=85, epsilon=2.0)
    with pytest.raises(ConfigurationError, match="does not bin"):
        create("grr", domain_size=85, bins=2, epsilon=2.0)


@pytest.mark.parametrize("bins", [1, 16])
def test_raw_estimates_of_the_fies_counts_are_unbiased_and_clamped_ones_are_not(bins: int) -> None:
    """Fault 10."""
    counts, repeats = fies(), 200
    truths = np.repeat(np.arange(counts.size), counts)
    binning = Binning(counts.size, bins)
    per_bin = np.add.reduceat(counts, binning.starts).tolist()
    mechanism = create("brr", domain_size=85, bins=bins, epsilon=2.0, randomness=Named(f"fault 10 {bins}"))
    raw = np.empty((repeats, counts.size))
    for repeat in range(repeats):
        estimate = mechanism.estimate(mechanism.tally(mechanism.perturb(truths)))
        exact = np.array(estimate.exact, dtype=object)
        assert np.add.reduceat(exact, binning.starts).tolist() == per_bin
        raw[repeat] = estimate.frequency
    standard_error = np.sqrt(mechanism.variance(counts) / repeats)
    assert np.all(np.abs(raw.mean(axis=0) - counts) <= 4 * standard_error)
    assert abs(bias_of_rare_values(raw, counts)) <= 4
    assert bias_of_rare_values(np.maximum(raw, 0), counts) > 4


def bias_of_rare_values(estimates: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """Mean error of the sum over values with at most 20 holders, in standard errors of that mean."""
    errors = (estimates - counts)[:, counts <= 20].sum(axis=1)
    return float(errors.mean() / (errors.std(ddof=1) / np.sqrt(errors.size)))


def drawn_after_fork(draw: Callable[[], bytes]) -> bytes:
    """What a forked child draws."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where the test runner has threads
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, draw())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as stream:
        return stream.read()


def test_forked_workers_and_their_parent_draw_differently() -> None:
    """Fault 15, at the source and through a mechanism."""
    source = Keystream()
    mechanism = create("grr", domain_size=1024, epsilon=0.2)
    truths = np.zeros(40, dtype=int)
    draws: list[Callable[[], bytes]] = [
        lambda: source.words(16, 64).tobytes(),
        lambda: mechanism.perturb(truths).tobytes(),
    ]
    for draw in draws:
        seen = [draw()]
        seen += [drawn_after_fork(draw), drawn_after_fork(draw), draw()]
        seen += [drawn_after_fork(partial(drawn_after_fork, draw)), draw()]
        assert all(seen)
        assert len(set(seen)) == len(seen)


def test_copies_of_a_source_draw_differently() -> None:
    """Fault 15: a worker that gets its source by copy or through a pipe."""
    source = Keystream()
    source.words(1, 32)
    copies = [source, copy.copy(source), copy.deepcopy(source), pickle.loads(pickle.dumps(source)), Keystream()]
    streams = {item.words(8, 64).tobytes() for item in copies}
    assert len(streams) == len(copies)
    mechanism = create("grr", domain_size=1024, epsilon=0.2)
    again = [mechanism, copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))]
    assert len({item.perturb(np.zeros(40, dtype=int)).tobytes() for item in again}) == len(again)


def test_the_keystream_goes_on_and_never_repeats() -> None:
    source = Keystream()
    blocks = [source.words(count, 64).tobytes() for count in (2, 8_192, 8_193, 20_000, 2)]
    joined = b"".join(blocks)
    words = np.frombuffer(joined, dtype=np.uint64)
    assert np.unique(words).size == words.size
    assert source.words(5, 32).dtype == np.uint32
    assert source.words(0, 32).size == 0


def test_the_domain_is_the_surveys_whatever_the_data_hold() -> None:
    """Fault 17: no value is learnt from data, and none is forgotten because nobody holds it."""
    survey = sample_survey()
    common = np.full(20_000, 40 - 15)
    rare = np.append(common, 98 - 15)
    for truths in (common, rare, common[:0]):
        mechanism = for_survey(survey, survey.epsilons[0], Named("fault 17"))
        tally = mechanism.tally(mechanism.perturb(truths))
        assert tally.counts.shape == (survey.domain.size,) == (85,)
        assert mechanism.estimate(tally).frequency.shape == (85,)
        assert mechanism.channel().shape == (85, 85)
    bin_of = survey.binning.bin_of
    mechanism = for_survey(survey, survey.epsilons[0], Named("fault 17 support"))
    support = mechanism.tally(mechanism.perturb(rare)).counts
    unheld = (bin_of == bin_of[common[0]]) & (np.arange(85) != common[0])
    assert (support[unheld] > 0).all()
    with pytest.raises(InputError):
        mechanism.perturb(np.append(common, 85))
    assert survey.domain.index(100) is None


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u8", ">i8", ">u2"])
def test_indices_are_checked_in_every_type_and_order(kind: str) -> None:
    good = np.array([[0, 5, 3], [1, 2, 4]], dtype=kind)
    for array in (good, good.T, good[:, ::2]):
        assert np.array_equal(checked_indices(array, 6), array)
    for domain_size in (6, 65_536):
        if good.dtype.kind == "i":
            with pytest.raises(InputError):
                checked_indices(np.array([0, -100], dtype=kind), domain_size)
    with pytest.raises(InputError):
        checked_indices(np.array([0, 6], dtype=kind), 6)
