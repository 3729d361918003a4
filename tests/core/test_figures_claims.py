"""What the paper claims about its mechanism's error, on expectations: nothing is drawn, so nothing fails by chance."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tallyveil.binning import Binning
from tallyveil.mechanisms import create
from tallyveil_reproduce.figures import BINS_SWEPT, COPIES_SWEPT, EPSILONS_SWEPT, VALUES_SWEPT
from tallyveil_reproduce.mean_error import MEAN_OF_NORMAL_SIZE, mean_deviation, mean_size_of_noise
from tallyveil_reproduce.outcomes import expected_mape
from tallyveil_reproduce.populations import FORMULAS, Population, Shape, high_income_heads, made_up
from tallyveil_reproduce.trials import Name, Trial

ORACLE = Path(__file__).parents[3] / "shared" / "oracle" / "brr_reference_fies.csv"
FIES = high_income_heads()
SHAPES: list[Shape] = list(FORMULAS)


def brr(population: Population, bins: int, epsilon: float = 2.0) -> float:
    return expected_mape(Trial(population, "brr", epsilon, bins))


def grr(population: Population, epsilon: float = 2.0) -> float:
    return expected_mape(Trial(population, "grr", epsilon))


@pytest.mark.parametrize(
    ("copies", "bins", "expected", "error"),
    [
        (1, 1, 9.16, 0.16),
        (1, 4, 1.18, 0.03),
        (1, 8, 0.416, 0.003),
        (1, 16, 0.214, 0.002),
        (1, 32, 0.113, 0.001),
        (20, 16, 0.048, 0.0005),
        (20, 1, 2.05, 0.02),
    ],
)
def test_expected_errors_on_fies_are_the_known_ones(copies: int, bins: int, expected: float, error: float) -> None:
    assert brr(high_income_heads(copies), bins) == pytest.approx(expected, abs=error)


def test_every_expected_error_agrees_with_an_independent_simulation() -> None:
    if not ORACLE.exists():
        pytest.skip("the reference table is not part of the repository")
    with ORACLE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        population = high_income_heads(int(row["n"]) // 16_685)
        expected = brr(population, int(row["fxs"]), float(row["eps"]))
        error = float(row["mape_sd"]) / 400**0.5
        assert abs(expected - float(row["mape_mean"])) <= 5.5 * error + 0.00006, row  # the table has four decimals


@pytest.mark.parametrize("epsilon", [0.01, *EPSILONS_SWEPT])
@pytest.mark.parametrize("bins", [2, 4, 8, 16, 32])
def test_brr_errs_less_than_grr_at_every_epsilon_up_to_5(epsilon: float, bins: int) -> None:
    assert brr(FIES, bins, epsilon) < grr(FIES, epsilon)


def test_the_gain_in_error_is_largest_for_epsilon_below_three_and_a_half() -> None:
    gains = {epsilon: grr(FIES, epsilon) - brr(FIES, 8, epsilon) for epsilon in EPSILONS_SWEPT}
    assert all(earlier > later for earlier, later in pairwise(gains.values()))
    assert min(gain for epsilon, gain in gains.items() if epsilon < 3.5) > 2 * gains[4.5]


@pytest.mark.parametrize("shape", SHAPES)
def test_brr_errs_less_than_grr_on_every_made_up_population(shape: Shape) -> None:
    for size in VALUES_SWEPT:
        assert brr(made_up(shape, size), 8) < grr(made_up(shape, size))


def test_more_bins_err_less_down_to_nothing() -> None:
    errors = [brr(FIES, bins) for bins in BINS_SWEPT]
    assert all(earlier > later for earlier, later in pairwise(errors))
    assert errors[-1] < 0.01
    assert brr(FIES, FIES.domain_size) == 0.0


def test_one_bin_is_grr() -> None:
    assert brr(FIES, 1) == grr(FIES)


@pytest.mark.parametrize(("mechanism", "bins"), [("grr", 1), ("brr", 16), ("ss", 1), ("brr-sealed", 16)])
def test_more_records_err_less_as_one_over_their_root(mechanism: Name, bins: int) -> None:
    errors = [expected_mape(Trial(high_income_heads(copies), mechanism, 2.0, bins)) for copies in COPIES_SWEPT]
    for copies, error in zip(COPIES_SWEPT, errors, strict=True):
        assert error == pytest.approx(errors[0] / copies**0.5, rel=0.01)


@pytest.mark.parametrize("shape", ["Zipf", "uniform"])
@pytest.mark.parametrize(("mechanism", "bins"), [("grr", 1), ("brr", 8), ("ss", 1), ("brr-sealed", 8)])
def test_more_values_err_more(shape: Shape, mechanism: Name, bins: int) -> None:
    errors = [expected_mape(Trial(made_up(shape, size), mechanism, 2.0, bins)) for size in VALUES_SWEPT]
    assert all(earlier < later for earlier, later in pairwise(errors))


@pytest.mark.parametrize("mechanism", ["grr", "ss", "histogram-laplace"])
def test_more_epsilon_errs_less(mechanism: Name) -> None:
    errors = [expected_mape(Trial(FIES, mechanism, epsilon)) for epsilon in EPSILONS_SWEPT]
    assert all(earlier > later for earlier, later in pairwise(errors))


def test_full_ldp_at_the_same_epsilon_pays_for_hiding_the_bin() -> None:
    assert brr(FIES, 16) < expected_mape(Trial(FIES, "ss", 2.0)) < grr(FIES)
    assert expected_mape(Trial(FIES, "brr-sealed", 2.0, 16)) > expected_mape(Trial(FIES, "ss", 2.0))


def test_a_variance_that_forgets_the_bins_would_be_noticed() -> None:
    """The planted fault: GRR's variance over the whole domain in place of that inside a bin."""
    wrong = create("grr", domain_size=85, epsilon=2.0).variance(FIES.counts)
    right = create("brr", domain_size=85, bins=16, epsilon=2.0).variance(FIES.counts)
    faulty, true = (
        float((MEAN_OF_NORMAL_SIZE * np.sqrt(variance) / FIES.counts).mean()) for variance in (wrong, right)
    )
    assert true == pytest.approx(0.214, abs=0.002)
    assert faulty > 40 * true


@pytest.mark.parametrize(
    ("holders", "records", "p", "q"),
    [(2, 33, 0.6, 0.08), (0, 5, 0.88, 0.12), (7, 7, 0.5, 0.2), (300, 16_685, 0.08, 0.011), (1, 2, 0.9933, 0.0067)],
)
def test_the_mean_deviation_of_a_support_count_is_that_of_its_two_binomials(
    holders: int, records: int, p: float, q: float
) -> None:
    mine = stats.binom.pmf(np.arange(holders + 1), holders, p)
    others = stats.binom.pmf(np.arange(records - holders + 1), records - holders, q)
    law = np.convolve(mine, others)
    mean = holders * p + (records - holders) * q
    assert mean_deviation(holders, records, p, q) == pytest.approx(float(law @ np.abs(np.arange(law.size) - mean)))


@pytest.mark.parametrize("scale", [0.4, 1.0, 20.0])
def test_the_mean_size_of_noise_is_that_of_the_discrete_laplace_law(scale: float) -> None:
    places = np.arange(-2_000, 2_001)
    single = stats.dlaplace.pmf(places, 1 / scale)
    assert mean_size_of_noise(scale) == pytest.approx(float(single @ np.abs(places)))
    double = np.convolve(single, single)
    assert mean_size_of_noise(scale, 2) == pytest.approx(float(double @ np.abs(np.arange(-4_000, 4_001))))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [16, 100, 512])
def test_a_made_up_population_follows_its_formula_to_the_record(shape: Shape, size: int) -> None:
    values = np.arange(size)
    law = {
        "Zipf": 1.0 / np.arange(1, size + 1),
        "uniform": np.ones(size),
        "normal": stats.norm.pdf(values, (size - 1) / 2, size / 8),
        "geometric": stats.geom.pmf(values + 1, 5 / size),
    }[shape]
    counts = made_up(shape, size).counts
    assert int(counts.sum()) == 100_000
    assert float(np.abs(counts - 100_000 * law / law.sum()).max()) <= 1.0


def test_fies_is_the_table_of_the_paper() -> None:
    assert (FIES.records, FIES.domain_size, FIES.departments) == (16_685, 85, 17)
    assert [int(FIES.counts[age - FIES.first_value]) for age in (15, 17, 89, 96, 98)] == [2, 4, 5, 3, 4]
    assert [high_income_heads(copies).records for copies in (4, 20)] == [66_740, 333_700]


def test_bins_of_one_value_appear_where_the_figure_marks_them() -> None:
    marked = [bins for bins in BINS_SWEPT if Trial(FIES, "brr", 2.0, bins).disclosing]
    assert marked == [43, 56, 84] == [bins for bins in BINS_SWEPT if Binning(85, bins).smallest < 2]
