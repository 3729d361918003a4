"""SQLite files: any type in any cell, quoted names, one SELECT, read-only."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from inputs import chain, read, reasons, source, survey
from tallyveil.domain import Categories, Intervals
from tallyveil.errors import ConfigurationError, InputError, TallyveilError, UnavailableError
from tallyveil_client.agent.sources import open_source

CANARY = "Zykaria731992"


def write(folder: Path, *statements: str, records: Sequence[tuple[object, ...]] = ()) -> Path:
    path = folder / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements or ("CREATE TABLE t(age)",):
            connection.execute(statement)
        for record in records:
            connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(record))})", record)
    return path


def test_a_cell_is_what_it_is_whatever_the_columns_declared_type(tmp_path: Path) -> None:
    cells = [43, "44", 45.0, " 46 ", None, "", "80+", 43.5, b"47", -(2**63), 1e300, CANARY]
    path = write(tmp_path, "CREATE TABLE t(age INTEGER, x)", records=[(cell, CANARY) for cell in cells])
    summary, values, _ = read(source(path, table="t"))
    assert values == ["43", "44", "45", "46"]
    expected = reasons(missing=2, top_coded=1, not_whole=1, unreadable=1, out_of_domain=2, not_a_number=1)
    assert summary.rejected == expected


def test_floats_lose_no_digit(tmp_path: Path) -> None:
    path = write(tmp_path, records=[(0.1,), (0.30000000000000004,), (1e22,), (123456789.12345679,)])
    edges = ("0.1", "0.30000000000000004", "0.30000000000000005", "123456789.12345679", "123456789.1234568")
    domain = Intervals((*edges, "1e22", "1e23"))
    _, values, _ = read(source(path, table="t"), survey(domain))
    assert values == [domain.labels[index] for index in (0, 1, 5, 3)]


def test_text_that_is_not_utf8_is_rejected_cell_by_cell(tmp_path: Path) -> None:
    path = write(tmp_path, "CREATE TABLE t(age)", "INSERT INTO t VALUES (CAST(x'34ff' AS TEXT)), ('43')")
    summary, values, _ = read(source(path, table="t"))
    assert (values, summary.rejected) == (["43"], reasons(unreadable=1))


def test_odd_names_are_quoted(tmp_path: Path) -> None:
    table, column = 'a "b"; drop table t --', 'x"y'
    quoted = [name.replace('"', '""') for name in (table, column)]
    path = write(tmp_path, 'CREATE TABLE "{}"("{}")'.format(*quoted), f'INSERT INTO "{quoted[0]}" VALUES (43)')
    assert read(source(path, {"age": column}, table=table))[1] == ["43"]


def test_a_query_is_a_table(tmp_path: Path) -> None:
    path = write(tmp_path, "CREATE TABLE t(born, sex)", records=[(1983, "M"), (1990, "F")])
    definition = survey(dimensions={"sex": ["F", "M"]})
    for query in (
        "select 2026 - born as age, sex from t -- a comment",
        "/* first */ with r as (select * from t) select 2026 - born as age, sex from r ;",
        "select 2026 - born age, sex from t where sex <> ';'",
    ):
        summary, values, _ = read(source(path, {"age": "age", "sex": "sex"}, query=query), definition)
        assert values == ["43", "36"]
        assert summary.read == 2


@pytest.mark.parametrize(
    "query",
    [
        "delete from t",
        "pragma writable_schema",
        "select 1 as age; drop table t",
        "select 1 as age) as x; drop table t; select * from (select 1 as age",
        "select nosuch from t",
        "select",
        "select * from nosuch",
        "",
    ],
)
def test_anything_but_one_select_is_refused_and_changes_nothing(tmp_path: Path, query: str) -> None:
    path = write(tmp_path, records=[(43,)])
    before = path.read_bytes()
    with pytest.raises(ConfigurationError) as caught:
        read(source(path, query=query))
    assert "sqlite3." not in chain(caught.value)
    assert path.read_bytes() == before


def test_an_unknown_column_is_refused_although_sqlite_would_take_it_for_text(tmp_path: Path) -> None:
    path = write(tmp_path, records=[(43,)])
    with pytest.raises(ConfigurationError, match="no column 'nosuch'; it has: 'age'"):
        read(source(path, {"age": "nosuch"}, table="t"))


def test_an_unknown_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="SQLITE_ERROR"):
        read(source(write(tmp_path), table="nosuch"))


def test_a_function_that_fails_on_a_cell_does_not_show_it(tmp_path: Path) -> None:
    path = write(tmp_path, records=[('{"a": 1}',), ("{" + CANARY,)])
    with pytest.raises(TallyveilError) as caught:
        read(source(path, {"age": "a"}, query="select json_extract(age, '$.a') as a from t"))
    assert CANARY not in chain(caught.value)
    assert "malformed" not in chain(caught.value)


def test_all_records_are_of_one_moment(tmp_path: Path) -> None:
    path = write(tmp_path, "PRAGMA journal_mode = WAL", "CREATE TABLE t(age)", records=[(43,)] * 20_000)
    with open_source(source(path, table="t")) as opened:
        assert opened.total_rows == 20_000
        batches = opened.batches(["age"])
        count = next(batches).num_rows
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM t")
        assert count + sum(batch.num_rows for batch in batches) == 20_000


def test_it_is_never_written_to_even_by_a_view(tmp_path: Path) -> None:
    path = write(tmp_path, records=[(43,)])
    path.chmod(0o444)
    assert read(source(path, table="t"))[1] == ["43"]
    assert os.listdir(tmp_path) == ["a.sqlite"]


def test_a_locked_file_is_said_to_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallyveil_client.agent.sources import sqlite

    monkeypatch.setattr(sqlite, "_BUSY_S", 0.01)
    path = write(tmp_path, records=[(43,)])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UnavailableError, match="locked"):
            read(source(path, table="t"))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_text(f"age\n{CANARY}\n" * 100, "utf-8")
    with pytest.raises(InputError, match="SQLITE_NOTADB") as caught:
        read(source(path, table="t"))
    assert CANARY not in chain(caught.value)
    with pytest.raises(ConfigurationError, match="is not a file"):
        read(source(tmp_path / "none.sqlite", table="t"))


def test_whole_numbers_as_categories_are_their_digits(tmp_path: Path) -> None:
    path = write(tmp_path, records=[(1,), (2.0,), ("01",), ("1",)])
    _, values, _ = read(source(path, table="t"), survey(Categories(("1", "2", "01"))))
    assert values == ["1", "2", "01", "1"]


def test_comments_before_a_select_are_read_in_a_time_that_grows_with_their_length(tmp_path: Path) -> None:
    path = write(tmp_path, records=[(43,)])
    for query in ("/**/ -- x\n /* a * b / */select * from t", "--\n--\nSELECT * FROM t"):
        assert read(source(path, query=query))[1] == ["43"]
    for nothing in ("/**/" * 20_000 + "x", "/*" * 20_000, "--" * 20_000, "-- \n" * 20_000 + "x", " " * 40_000 + "x"):
        with pytest.raises(ConfigurationError, match="must be one SELECT"):
            read(source(path, query=nothing))
    with pytest.raises(ConfigurationError):
        read(source(path, query="/* select */ delete from t"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed by Linux only")
@pytest.mark.parametrize(
    "query", ["select * from t order by note", "select age, count(*) over (partition by note) from t"]
)
def test_sorting_writes_no_record_into_a_file(tmp_path: Path, query: str) -> None:
    path = write(tmp_path, "CREATE TABLE t(age, note)")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO t VALUES (?, ?)",
            ((number % 20, f"{CANARY}{number * 7919 % 10**5}" * 3) for number in range(10**5)),
        )
    seen = set[str]()
    with open_source(source(path, query=query)) as opened:
        for _ in opened.batches(["age"]):
            seen |= {os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()}
    assert any(path.name in name for name in seen)
    assert not [name for name in seen if "etilqs" in name]
