# pyright: standard
"""Whole records: each accepted, filtered out or rejected once, and nothing of them shown."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inputs import chain, read, reasons, source, survey
from tallyveil.errors import ConfigurationError, InputError
from tallyveil_client.agent.cells import Reason
from tallyveil_client.agent.encode import Encoder
from tallyveil_client.agent.scan import Progress, Summary, refuse_rejected, scan

COLUMNS = {"age": "Age", "sex": "Sex", "region": "Region", "income": "Income"}
TABLE = survey(dimensions={"sex": ["Female", "Male"], "region": ["CAR", "NCR", "ARMM"]})


def batch(*records: tuple[object, ...]) -> pa.RecordBatch:
    names = list(COLUMNS.values())
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*records, strict=True)], names=names)


def test_values_and_cells_are_indices_of_the_survey() -> None:
    encoder = Encoder(TABLE, source(columns=COLUMNS, path=Path("a.csv")))
    encoded = encoder.encode(batch((15, "Female", "CAR", 1), (98, "Male", "ARMM", 1), (43, " Male", "CAR", 1)))
    assert encoder.columns == ("Age", "Sex", "Region")
    assert encoded.values.tolist() == [0, 83, 28]
    assert [TABLE.cells[cell] for cell in encoded.cells.tolist()] == [
        ("Female", "CAR"),
        ("Male", "ARMM"),
        ("Male", "CAR"),
    ]
    assert (encoded.read, encoded.filtered, encoded.rejected) == (3, 0, reasons())


def test_a_dimension_without_a_known_value_rejects_the_record_with_its_own_reason() -> None:
    encoder = Encoder(TABLE, source(columns=COLUMNS, path=Path("a.csv")))
    first = encoder.encode(batch((15, None, "CAR", 1), (16, "Male", "XX", 1), (17, "Male", "NCR", 1)))
    second = encoder.encode(batch((0, "x", "x", 1), (16, "x", "CAR", 1), (18, "Male\0", "CAR", 1)))
    assert first.rejected == reasons(dimension_missing=1, dimension_not_in_codebook=1)
    assert second.rejected == reasons(out_of_domain=1, dimension_not_in_codebook=2)
    assert first.first_rejected == {Reason.DIMENSION_MISSING: 1, Reason.DIMENSION_NOT_IN_CODEBOOK: 2}
    assert second.first_rejected == {Reason.OUT_OF_DOMAIN: 4, Reason.DIMENSION_NOT_IN_CODEBOOK: 5}


def test_every_column_used_must_be_configured() -> None:
    with pytest.raises(ConfigurationError, match="says no column for 'region'"):
        Encoder(TABLE, source(columns={"age": "Age", "sex": "Sex"}, path=Path("a.csv")))


AGES = st.none() | st.sampled_from(["15", "98", "99", "43.5", "x", "80+", "\0", "NA", "43"])
SEXES = st.none() | st.sampled_from(["Female", "Male", "?"])
INCOMES = st.none() | st.sampled_from(["1", "200000", "x"])
RECORDS = st.lists(st.tuples(AGES, SEXES, st.just("CAR"), INCOMES), min_size=1)


@given(RECORDS)
def test_the_sums_always_agree_and_follow_the_records_one_by_one(records: list[tuple[str | None, ...]]) -> None:
    config = source(columns=COLUMNS, path=Path("a.csv"), where="income >= 10", missing=("NA",))
    together, alone = Summary(), Summary()
    names = list(COLUMNS.values())

    def texts(rows: list[tuple[str | None, ...]]) -> pa.RecordBatch:
        columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=names)

    together.add(Encoder(TABLE, config).encode(texts(records)))
    encoder = Encoder(TABLE, config)
    for record in records:
        alone.add(encoder.encode(texts([record])))
    assert vars(together) == vars(alone)
    assert together.read == len(records) == together.accepted + together.filtered + together.rejected.total()


CANARY = "731992"
WORD = "Zykaria"


def canary_file(folder: Path) -> Path:
    path = folder / "a.csv"
    rows = [f"43,Male,CAR,5,{WORD}", f"{CANARY},Male,CAR,5,x", f"{WORD},{WORD},CAR,{WORD},x", "44,Male,CAR,5,x"]
    path.write_text("\n".join(["Age,Sex,Region,Income,Name", *rows, ""]), "utf-8")
    return path


def test_nothing_shows_a_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = source(canary_file(tmp_path), COLUMNS, where="income > 1")
    shown: list[str] = []
    progress: list[Progress] = []
    with caplog.at_level(logging.DEBUG):
        summary = Summary()
        for encoded in scan(config, TABLE, progress.append):
            summary.add(encoded)
            shown += [repr(progress), repr(encoded), str(encoded), repr(summary), repr(Encoder(TABLE, config))]
        with pytest.raises(InputError) as caught:
            refuse_rejected(config, summary)
    text = chain(caught.value) + "".join(shown) + caplog.text
    assert CANARY not in text
    assert WORD not in text
    assert "array" not in "".join(shown)


def test_rejected_records_stop_the_run_unless_the_source_says_otherwise(tmp_path: Path) -> None:
    path = canary_file(tmp_path)
    summary, values, _ = read(source(path, COLUMNS), TABLE)
    assert values == ["43", "44"]
    with pytest.raises(InputError, match=r"2 of 4 records .* out-of-domain: 1 \(first: record 2\); not-a-number: 1 "):
        refuse_rejected(source(path, COLUMNS), summary)
    refuse_rejected(source(path, COLUMNS, on_invalid="reject"), summary)
    refuse_rejected(source(path, COLUMNS), Summary(read=4, accepted=4))


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    seen: list[Progress] = []
    for _ in scan(source(canary_file(tmp_path), COLUMNS), TABLE, seen.append):
        pass
    assert seen[-1] == Progress(4, 1.0)


def test_an_unknown_column_is_refused_with_those_a_schema_has_and_the_closest(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"Age": [43], "Sex": ["Male"], "Region": ["CAR"]}), path)
    with pytest.raises(ConfigurationError, match=r"'Age', 'Sex', 'Region'.*did you mean 'Region'"):
        read(source(path, {**COLUMNS, "region": "Regions"}), TABLE)


@pytest.mark.parametrize(
    "first", [f"{CANARY},{WORD},CAR", f"{WORD},{CANARY} positive,1984-05-03", f"age,{WORD},{WORD}", f"Ages,{WORD},x"]
)
def test_a_file_without_names_does_not_show_its_first_record(tmp_path: Path, first: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n43,Male,CAR\n", "utf-8")
    for columns in ({"age": "Age"}, {"age": WORD[:-1]}):
        with pytest.raises(ConfigurationError, match=r"has no column '\w+' among the 3 that its header row") as caught:
            read(source(path, columns))
        assert "header_row" in caught.value.next_step
        assert not any(cell in chain(caught.value) for cell in first.split(",") if len(cell) > 3)
