# pyright: standard
"""`tallyveil simulate`: its numbers beside an independent reference, and what it refuses."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from deterministic import Named
from significance import bonferroni, two_sample_z_p
from tallyveil.cli import dispatch
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms import create
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.brr import BinnedRandomisedResponse
from tallyveil.randomness import Words
from tallyveil.survey import BINNED, MECHANISMS
from tallyveil_client.simulate.simulation import Simulation, simulate

VECTORS = Path(__file__).parents[1] / "vectors"
ORACLE = Path(__file__).parents[3] / "shared" / "oracle" / "brr_reference_fies.csv"
LOWEST_AGE = 15
CANARY = "canary-4711"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


REFERENCE = {int(row["fxs"]): row for row in rows_of(VECTORS / "brr_reference.csv")}


@pytest.fixture(scope="module")
def ages() -> NDArray[np.int64]:
    """True counts of the 85 ages."""
    return np.array([int(row["count"]) for row in rows_of(VECTORS / "fies_age_counts.csv")])


@pytest.fixture(scope="module")
def ages_file(ages: NDArray[np.int64], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a department's table: one line per head of household."""
    path = tmp_path_factory.mktemp("ages") / "heads.csv"
    expanded = np.repeat(np.arange(ages.size) + LOWEST_AGE, ages)
    path.write_text("id,age\n" + "".join(f"{number},{age}\n" for number, age in enumerate(expanded)))
    return path


def p_value(mean: float, error: float, fxs: int) -> float:
    """Of "the reference measures the same MAPE", which has an error of its own."""
    row = REFERENCE[fxs]
    return two_sample_z_p(mean, error, float(row["mape_mean"]), float(row["mape_sd"]) / int(row["repeats"]) ** 0.5)


def p_value_of(result: Simulation, fxs: int) -> float:
    assert result.mape_error is not None
    return p_value(result.mape_mean, result.mape_error, fxs)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, Any]]:
    """Run `tallyveil simulate` on a file: its exit code, and its JSON."""
    monkeypatch.setenv("COLUMNS", "200")

    def go(path: Path, **changes: str) -> tuple[int, Any]:
        options = {"column": "age", "domain": "15..99", "bins": "16", "epsilon": "2", "mechanism": "brr", "repeat": "3"}
        arguments = ["simulate", "--input", str(path), "--json"]
        for name, value in (options | changes).items():
            arguments += ["--" + name.replace("_", "-"), value]
        code = dispatch.run(arguments)
        return code, json.loads(capsys.readouterr().out)

    return go


@pytest.mark.parametrize("fxs", REFERENCE)
def test_mape_on_the_fies_ages_is_that_of_the_independent_reference(
    run: Callable[..., tuple[int, Any]], ages_file: Path, fxs: int
) -> None:
    code, result = run(ages_file, bins=str(fxs), repeat="400")
    assert code == 0
    assert (result["records"], result["cells"], result["values"], result["bins"]) == (16_685, 85, 85, fxs)
    assert p_value(result["mape_mean"], result["mape_standard_error"], fxs) >= bonferroni(len(REFERENCE))
    assert result["mape_sd"] == pytest.approx(float(REFERENCE[fxs]["mape_sd"]), rel=0.4)
    assert result["negative_share"] == pytest.approx(float(REFERENCE[fxs]["negative_share"]), abs=0.02)


@pytest.mark.skipif(not ORACLE.exists(), reason="the reference's own file is not beside this checkout")
def test_the_rows_kept_here_are_the_references_own() -> None:
    rows = {int(row["fxs"]): row for row in rows_of(ORACLE) if row["case"] == "fig7 bins"}
    for fxs, row in REFERENCE.items():
        theirs = rows[fxs]
        assert (row["mape_mean"], row["mape_sd"], row["negative_share"]) == (
            theirs["mape_mean"],
            theirs["mape_sd"],
            theirs["frac_negative"],
        )


class LiesThatAreTrue(BinnedRandomisedResponse):
    """The planted fault of lies drawn over all values: every third one is the truth after all."""

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Words:
        reports = super()._respond(truth)
        lies = np.flatnonzero(reports != truth)[::3]
        reports[lies] = truth[lies]
        return reports


def test_a_mechanism_that_keeps_the_truth_too_often_fails_the_comparison(ages: NDArray[np.int64]) -> None:
    faulty = LiesThatAreTrue(85, 32, create("grr", domain_size=85, epsilon=2.0).epsilon)
    assert p_value_of(simulate(faulty, ages, 400), 32) < bonferroni(len(REFERENCE))


@pytest.mark.parametrize("fxs", [4, 8, 16, 32])
def test_a_correction_with_the_wrong_number_of_records_fails_the_comparison(
    ages: NDArray[np.int64], monkeypatch: pytest.MonkeyPatch, fxs: int
) -> None:
    def equal_share(self: Blocks, counts: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(counts, dtype=np.float64)
        return np.full(values.size, values.sum() / self.binning.bins)

    monkeypatch.setattr(Blocks, "bin_totals", equal_share)
    result = simulate(create("brr", domain_size=85, bins=fxs, epsilon=2.0), ages, 400)
    assert p_value_of(result, fxs) < bonferroni(len(REFERENCE))


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 2.0, 16.0])
@pytest.mark.parametrize(("values", "bins"), [(2, 1), (85, 1), (85, 16), (85, 32), (1024, 100), (3000, 1)])
def test_estimates_in_floats_are_the_mechanisms_exact_ones(values: int, bins: int, epsilon: float) -> None:
    words = Named(f"float estimates {values} {bins} {epsilon}")
    mechanism = create("brr", domain_size=values, bins=bins, epsilon=epsilon, randomness=words)
    truth = words.words(20_000, 32) % 7919 % values
    tally = mechanism.tally(mechanism.perturb(truth.astype(np.int64)))
    estimate = mechanism.estimate(tally)
    assert np.allclose(mechanism.law.corrected(tally), estimate.frequency, rtol=1e-9, atol=1e-9 * 20_000)


def test_an_empty_bin_is_estimated_as_empty_and_never_as_negative() -> None:
    counts = np.zeros(8, dtype=np.int64)
    counts[0] = 5
    result = simulate(create("brr", domain_size=8, bins=2, epsilon=16.0), counts, 50)
    assert (result.records, result.cells) == (5, 1)
    mechanism = create("brr", domain_size=8, bins=2, epsilon=2.0)
    estimates = mechanism.law.corrected(mechanism.tally(np.zeros(5, dtype=np.int64)))
    assert estimates[4:].tolist() == [0.0] * 4


def same_coins(name: str, ages: NDArray[np.int64], **parameters: Any) -> Simulation:
    mechanism = create(name, domain_size=85, epsilon=2.0, randomness=Named("same coins"), **parameters)
    return simulate(mechanism, ages, 5)


def test_brr_of_one_bin_is_grr_bit_for_bit(ages: NDArray[np.int64]) -> None:
    binned, plain = same_coins("brr", ages, bins=1), same_coins("grr", ages)
    assert binned.mape.tolist() == plain.mape.tolist()
    assert binned.negative_share == plain.negative_share


def test_each_repeat_draws_anew_and_is_told(ages: NDArray[np.int64]) -> None:
    steps: list[int] = []
    result = simulate(create("brr", domain_size=85, bins=16, epsilon=2.0), ages, 20, steps.append)
    assert steps == [1] * 20
    assert len(set(result.mape.tolist())) == 20


def test_the_mean_is_over_values_with_a_true_count_only() -> None:
    counts = np.array([1000, 0, 1000, 0])
    result = simulate(create("grr", domain_size=4, epsilon=16.0), counts, 10)
    assert result.cells == 2
    assert result.mape_mean < 0.01


def test_one_repeat_has_no_spread() -> None:
    result = simulate(create("grr", domain_size=4, epsilon=1.0), np.array([9, 9, 9, 9]), 1)
    assert result.mape_sd is None
    assert result.mape_error is None


@pytest.mark.parametrize("repeats", [0, -1, 1_000_001])
def test_repeats_out_of_range_are_refused(repeats: int) -> None:
    with pytest.raises(ConfigurationError):
        simulate(create("grr", domain_size=2, epsilon=1.0), [1, 1], repeats)


@pytest.mark.parametrize("counts", [[0, 0], [1], [1, 1, 1], [-1, 2]])
def test_counts_that_are_none_are_refused(counts: list[int]) -> None:
    with pytest.raises(InputError):
        simulate(create("grr", domain_size=2, epsilon=1.0), counts, 1)


def test_more_records_than_a_chunk_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallyveil_client.simulate.simulation.CHUNK_RECORDS", 7)
    mechanism: BlockResponse = create("grr", domain_size=3, epsilon=16.0)
    result = simulate(mechanism, [50, 20, 30], 5)
    assert result.records == 100
    assert result.mape_mean < 0.05


Run = Callable[..., tuple[int, Any]]


def test_the_json_says_what_was_read_and_what_is_not_protected(run: Run, ages_file: Path) -> None:
    code, result = run(ages_file)
    assert code == 0
    assert (result["read"], result["filtered"], result["rejected"]) == (16_685, 0, {})
    assert (result["mechanism"], result["epsilon"], result["smallest_bin"], result["repeats"]) == ("brr", 2.0, 5, 3)
    assert result["guarantee"]["kind"] == "epsilon-LDP within bin, bin disclosed"
    assert len(result["guarantee"]["not_protected"]) == 2


def test_the_screen_shows_the_error_of_the_mean_and_what_is_not_protected(
    ages_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--column", "age", "--domain", "15..99", "--bins", "16", "--epsilon", "2", "--mechanism", "brr"]
    assert dispatch.run(["simulate", "--input", str(ages_file), *options]) == 0
    said = capsys.readouterr().out
    assert "standard error of the mean" in said
    assert "16 bins of 5 or 6 values" in said
    assert "NOT protected" in said
    assert dispatch.run(["simulate", "--input", str(ages_file), *options, "--repeat", "1"]) == 0
    assert "one repeat tells nothing" in capsys.readouterr().out


def test_a_filter_leaves_records_out_and_they_are_counted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "heads.csv"
    path.write_text("age,income\n" + "20,100\n" * 30 + "30,300000\n" * 12)
    code, result = run(path, filter="income >= 200000")
    assert (code, result["records"], result["filtered"], result["cells"]) == (0, 12, 30, 1)
    code, result = run(path, filter="age >= 30")
    assert (code, result["records"]) == (0, 12)


def test_an_sqlite_table_and_a_parquet_file_are_read_too(run: Run, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = [20] * 9 + [21] * 4
    pq.write_table(pa.table({"age": values}), tmp_path / "heads.parquet")
    connection = sqlite3.connect(tmp_path / "heads.db")
    with connection:
        connection.execute('CREATE TABLE "heads of households" (age INTEGER)')
        connection.executemany('INSERT INTO "heads of households" VALUES (?)', [(value,) for value in values])
    connection.close()
    assert run(tmp_path / "heads.parquet")[1]["records"] == 13
    assert run(tmp_path / "heads.db", table="heads of households")[1]["records"] == 13
    assert run(tmp_path / "heads.db")[0] == 2
    assert run(tmp_path / "heads.parquet", table="heads")[0] == 2


def test_records_that_cannot_be_used_stop_everything_or_are_counted_by_reason(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "heads.csv"
    path.write_text(f"age\n20\n{CANARY}\n14\n\n-9\n21\n")
    code, refused = run(path)
    assert (code, refused["error"]["kind"]) == (3, "input")
    assert "--on-invalid reject" in refused["error"]["next"]
    assert CANARY not in json.dumps(refused)
    code, result = run(path, on_invalid="reject")
    assert code == 0
    assert result["records"] == 2
    assert sum(result["rejected"].values()) == result["read"] - 2 == 4
    assert CANARY not in json.dumps(result)


BAD: dict[str, tuple[dict[str, str], str]] = {
    "epsilon 0": ({"epsilon": "0"}, "0.01 to 16"),
    "epsilon nan": ({"epsilon": "nan"}, "0.01 to 16"),
    "epsilon inf": ({"epsilon": "inf"}, "0.01 to 16"),
    "epsilon tiny": ({"epsilon": "1e-320"}, "0.01 to 16"),
    "epsilon 710": ({"epsilon": "710"}, "0.01 to 16"),
    "K = 1": ({"domain": "15..15"}, "low end below its high end"),
    "a bin of one value": ({"bins": "85"}, "a bin of one value would show that value"),
    "more bins than values": ({"bins": "500"}, "a bin of one value would show that value"),
    "no bin": ({"bins": "0"}, "at least 1"),
    "grr with bins": ({"mechanism": "grr"}, "grr does not bin"),
    "unknown mechanism": ({"mechanism": "magic"}, "no such mechanism"),
    "no repeat": ({"repeat": "0"}, "repeats are from 1"),
    "unknown column": ({"column": "agee"}, "has no column 'agee'"),
    "unreadable filter": ({"filter": "age ~ 3"}, "filter"),
    "no record left": ({"filter": "age > 1000"}, "no record"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_value_is_refused_in_words(run: Run, ages_file: Path, case: str) -> None:
    changes, says = BAD[case]
    code, said = run(ages_file, **changes)
    assert code in (2, 3)
    assert says in said["error"]["what"]
    assert "[sources" not in said["error"]["next"]


@pytest.mark.parametrize("name", ["absent.csv", "heads.doc", "heads"])
def test_a_file_that_is_not_there_or_of_no_known_format_is_named(run: Run, tmp_path: Path, name: str) -> None:
    code, said = run(tmp_path / name)
    assert code == 2
    assert name in said["error"]["what"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_simulated(name: str) -> None:
    counts = np.array([30, 5, 0, 12, 3, 9, 1, 40])
    made = create(
        name, domain_size=8, epsilon=2.0, bins=2 if name in BINNED else 1, randomness=Named(f"simulate {name}")
    )
    result = simulate(made, counts, 20)
    spread = np.sqrt(made.variance(counts))
    expected = float((spread * np.sqrt(2 / np.pi) / np.maximum(counts, 1))[counts > 0].mean())
    assert result.records == 100 and result.cells == 7
    assert expected / 2 < result.mape_mean < 2 * expected
