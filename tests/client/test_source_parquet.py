# pyright: standard
"""Parquet files: columns, types, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inputs import chain, read, reasons, source
from tallyveil.errors import ConfigurationError, InputError
from tallyveil_client.agent.sources import open_source

CANARY = "Zykaria731992"


def write(folder: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, folder / "a.parquet", **options)
    return folder / "a.parquet"


def test_only_the_columns_asked_for_are_read_in_order(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"a": [1], "b": ["x"], "c": [[1]]}))
    with open_source(source(path)) as opened:
        assert opened.column_names == ("a", "b", "c")
        assert opened.total_rows == 1
        (batch,) = opened.batches(["b", "a"])
    assert batch.schema.names == ["b", "a"]
    assert [column.to_pylist() for column in batch.columns] == [["x"], [1]]


def test_large_row_groups_come_in_pieces_and_small_ones_whole(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"age": [43] * 500_000}), row_group_size=300_000)
    with open_source(source(path)) as opened:
        sizes = [batch.num_rows for batch in opened.batches(["age"])]
    assert sum(sizes) == 500_000
    assert max(sizes) < 300_000


@pytest.mark.parametrize(
    "column",
    [pa.array([{"x": CANARY}]), pa.array([[CANARY]]), pa.array([CANARY.encode()]), pa.array([1], pa.duration("s"))],
    ids=["struct", "list", "binary", "duration"],
)
def test_columns_without_numbers_or_text_are_refused_only_where_they_are_needed(
    tmp_path: Path, column: pa.Array[Any]
) -> None:
    path = write(tmp_path, pa.table({"odd": column, "age": [43]}))
    assert read(source(path))[1] == ["43"]
    with pytest.raises(InputError, match="column 'odd' is") as caught:
        read(source(path, {"age": "odd"}))
    assert CANARY not in chain(caught.value)


def test_unknown_and_repeated_names_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["age", "age", "x"])
    path = write(tmp_path, table)
    with pytest.raises(ConfigurationError, match="2 columns named 'age'"):
        read(source(path))
    with pytest.raises(ConfigurationError, match="it has: 'age', 'age', 'x'"):
        read(source(path, {"age": "y"}))


def test_a_name_with_dots_is_one_name(tmp_path: Path) -> None:
    assert read(source(write(tmp_path, pa.table({"a.b": [43], "a": [{"b": 50}]})), {"age": "a.b"}))[1] == ["43"]


@pytest.mark.parametrize("damage", ["text", "cut", "footer", "page"])
def test_a_damaged_file_is_refused_without_showing_what_is_in_it(tmp_path: Path, damage: str) -> None:
    path = write(tmp_path, pa.table({"age": [CANARY] * 1000}), compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    match damage:
        case "text":
            data = bytearray(f"age\n{CANARY}\n".encode() * 10)
        case "cut":
            del data[len(data) // 2 :]
        case "footer":
            data[-30:-8] = b"\xff" * 22
        case _:
            data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"not a readable Parquet file|cannot be read to its end") as caught:
        read(source(path))
    assert CANARY not in chain(caught.value)
    assert "rrow" not in repr(caught.value.__context__)


def test_text_that_is_not_utf8_is_rejected_cell_by_cell(tmp_path: Path) -> None:
    raw = pa.array([b"43", b"\xff" + CANARY.encode(), b"44"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    summary, values, _ = read(source(write(tmp_path, pa.table({"age": column}))))
    assert (values, summary.rejected) == (["43", "44"], reasons(unreadable=1))


def test_a_file_that_is_not_there_is_a_matter_of_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a file"):
        read(source(tmp_path / "none.parquet"))
