# pyright: standard
"""The same table as CSV, Parquet, SQLite and PostgreSQL gives the same records, accepted or rejected alike."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inputs import read, source, survey
from postgres import connect
from tallyveil.domain import Categories, Domain, Integers, Intervals
from tallyveil_client.agent.cells import Reason
from tallyveil_client.agent.config import SourceConfig

WORDS: list[str | None] = [
    "43",
    " 43 ",
    "４３",
    "43.0",
    "043",
    "+43",
    "43.5",
    "4e1",
    "80+",
    "≥80",
    "90 and over",
    "1_000",
    "1,000",
    "-5",
]
WORDS += [
    "150",
    "NA",
    "-9",
    "",
    None,
    "不详",
    "nan",
    "inf",
    "4³",
    "٤٣",
    "43岁",
    "43\u200b",
    "  ",
    "98",
    "99",
    "14",
    "15",
]
SIZE = 500
TABLE: dict[str, list[Any]] = {
    "word": [WORDS[row % len(WORDS)] for row in range(SIZE)],
    "whole": [None if row % 17 == 0 else row % 120 - 9 for row in range(SIZE)],
    "double": [None if row % 13 == 0 else row / 8 for row in range(SIZE)],
    "exact": [None if row % 11 == 0 else Decimal(row * 37 % 12000).scaleb(-2) for row in range(SIZE)],
    "sex": [["F", "M", " M", "m", "", None, "Ｆ"][row % 7] for row in range(SIZE)],
    "income": [[0, 199_999, 200_000, 300_000, None][row * 3 % 5] for row in range(SIZE)],
}
ARROW = {"whole": pa.int16(), "double": pa.float64(), "exact": pa.decimal128(7, 2), "income": pa.int64()}
SQL = {"word": "text", "whole": "int", "double": "float8", "exact": "numeric(7, 2)", "sex": "text", "income": "int8"}
Write = Callable[[Path], dict[str, Any]]


def as_csv(folder: Path) -> dict[str, Any]:
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(TABLE), *zip(*TABLE.values(), strict=True)])
    return {"path": folder / "t.csv"}


def as_parquet(folder: Path) -> dict[str, Any]:
    columns = {name: pa.array(cells, ARROW.get(name, pa.string())) for name, cells in TABLE.items()}
    pq.write_table(pa.table(columns), folder / "t.parquet", row_group_size=200)
    return {"path": folder / "t.parquet"}


def as_sqlite(folder: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(folder / "t.sqlite")) as connection, connection:
        connection.execute(f"CREATE TABLE t({', '.join(TABLE)})")
        plain = [[str(cell) if isinstance(cell, Decimal) else cell for cell in cells] for cells in TABLE.values()]
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(TABLE))})", zip(*plain, strict=True))
    return {"path": folder / "t.sqlite", "table": "t"}


def as_postgresql(folder: Path, url: str) -> dict[str, Any]:
    (folder / "pg.uri").write_text(url, "utf-8")
    columns = pa.table({name: pa.array(cells, ARROW.get(name, pa.string())) for name, cells in TABLE.items()})
    with closing(connect(url)) as connection, closing(connection.cursor()) as cursor:
        cursor.adbc_ingest("staged", columns.set_column(3, "exact", columns["exact"].cast(pa.string())))
        selected = ", ".join(f"{name}::{kind}" for name, kind in SQL.items())
        cursor.execute(f"CREATE TABLE t AS SELECT {selected} FROM staged")
        connection.commit()
    return {"uri_file": folder / "pg.uri", "kind": "postgresql", "table": "t"}


@pytest.fixture
def everywhere(tmp_path: Path, postgres_database: str) -> dict[str, dict[str, Any]]:
    return {
        "csv": as_csv(tmp_path),
        "parquet": as_parquet(tmp_path),
        "sqlite": as_sqlite(tmp_path),
        "postgresql": as_postgresql(tmp_path, postgres_database),
    }


AGES = Integers(15, 98)
BANDS = Intervals(("-5", "0.5", "43.25", "99"))
DIGITS = Categories(tuple(str(number) for number in range(60)))


def test_all_sources_agree(everywhere: dict[str, dict[str, Any]]) -> None:
    seen: set[Reason] = set()
    cases: list[tuple[str, Domain, str | None]] = [
        *[(column, domain, None) for column in ("word", "whole", "double", "exact") for domain in (AGES, BANDS)],
        *[(column, AGES, "income >= 200000 and sex != 'm'") for column in ("word", "whole", "double", "exact")],
        ("word", DIGITS, None),
        ("whole", DIGITS, None),
        ("word", AGES, "exact < 43.25 and double >= 0.5"),
    ]
    for column, domain, where in cases:
        results: dict[str, object] = {}
        for name, place in everywhere.items():
            columns = {"age": column, "sex": "sex", "income": "income", "exact": "exact", "double": "double"}
            config: SourceConfig = source(columns=columns, where=where, missing=("NA", "-9"), **place)
            summary, values, cells = read(config, survey(domain, dimensions={"sex": ["F", "M"]}))
            results[name] = (vars(summary), values, cells)
            seen |= summary.rejected.keys()
        assert all(result == results["parquet"] for result in results.values()), (column, domain, where)
    assert seen >= {reason for reason in Reason if reason not in (Reason.OFF_GRID, Reason.UNREADABLE)} - {
        Reason.FILTER_UNREADABLE
    }
