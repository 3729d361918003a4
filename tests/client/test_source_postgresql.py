"""PostgreSQL: types, quoting, one snapshot, errors that show neither cells nor passwords."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from inputs import chain, read, reasons, source, survey
from postgres import connect
from tallyveil.domain import Categories, Intervals
from tallyveil.errors import ConfigurationError, InputError, TallyveilError, UnavailableError
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.sources import open_source

CANARY = "Zykaria731992"
Execute = Callable[..., None]
At = Callable[..., SourceConfig]


@pytest.fixture
def at(postgres_database: str, tmp_path: Path) -> At:
    """A source in the test's own database."""
    uri = tmp_path / "pg.uri"
    uri.write_text(postgres_database + "\n", "utf-8")

    def make(columns: dict[str, str] | None = None, **others: Any) -> SourceConfig:
        return source(columns=columns, kind="postgresql", uri_file=uri, **others)

    return make


def test_types_mean_the_same_as_text(postgres_database: str, postgres_execute: Execute, at: At) -> None:
    postgres_execute(
        postgres_database,
        "CREATE TYPE band AS ENUM ('43', '80+')",
        """CREATE TABLE t(small int2, normal int4, big int8, exact numeric, scaled numeric(10, 2), single float4,
           double float8, words text, padded char(6), limited varchar(9), flag bool, day date, price money,
           odd band)""",
        """INSERT INTO t VALUES (43, 43, 43, 43.00, 43, 43, 43, ' 43', '43', '43.0', true, '2015-01-31', 43, '43'),
           (NULL, NULL, NULL, 'NaN', 43.5, 'Infinity', 43.5, '80+', NULL, '', NULL, NULL, NULL, '80+')""",
    )
    rejected = {
        "small": "missing", "normal": "missing", "big": "missing", "exact": "not_a_number", "scaled": "not_whole",
        "single": "not_a_number", "double": "not_whole", "words": "top_coded", "padded": "missing",
        "limited": "missing", "odd": "top_coded",
    }  # fmt: skip
    for column, reason in rejected.items():
        summary, values, _ = read(at({"age": column}, table="t"))
        assert (column, values, summary.rejected) == (column, ["43"], reasons(**{reason: 1}))
    for column in ("flag", "day", "price"):
        summary, values, _ = read(at({"age": column}, table="t"))
        assert (values, summary.rejected) == ([], reasons(not_a_number=1, missing=1))
    days = survey(Categories(("2015-01-31", "true")))
    assert read(at({"age": "day"}, table="t"), days)[1] == ["2015-01-31"]
    assert read(at({"age": "flag"}, table="t"), days)[1] == ["true"]


def test_numbers_lose_no_digit(postgres_database: str, postgres_execute: Execute, at: At) -> None:
    postgres_execute(
        postgres_database,
        "CREATE TABLE t(n numeric, r float4)",
        "INSERT INTO t VALUES (0.30000000000000000000000000001, 0.1), (0.3, 0.3)",
    )
    domain = Intervals(("0.1", "0.2", "0.30000000000000000000000000001", "1"))
    assert read(at({"age": "n"}, table="t"), survey(domain))[1] == [domain.labels[2], domain.labels[1]]
    assert read(at({"age": "r"}, table="t"), survey(domain))[1] == [domain.labels[0], domain.labels[1]]


def test_whole_numerics_as_categories_are_their_digits(
    postgres_database: str, postgres_execute: Execute, at: At
) -> None:
    postgres_execute(postgres_database, "CREATE TABLE t(n numeric)", "INSERT INTO t VALUES (1.00), (20), (2.50)")
    assert read(at({"age": "n"}, table="t"), survey(Categories(("1", "20", "2.5"))))[1] == ["1", "20", "2.5"]


@pytest.mark.parametrize("kind", ["bytea", "int[]", "text[]"])
def test_columns_without_numbers_or_text_are_refused_only_where_they_are_needed(
    postgres_database: str, postgres_execute: Execute, at: At, kind: str
) -> None:
    postgres_execute(postgres_database, f"CREATE TABLE t(odd {kind}, age int)", "INSERT INTO t VALUES (NULL, 43)")
    assert read(at(table="t"))[1] == ["43"]
    with pytest.raises(InputError, match="column 'odd' is of type"):
        read(at({"age": "odd"}, table="t"))


def test_schemas_and_odd_names_are_quoted(postgres_database: str, postgres_execute: Execute, at: At) -> None:
    postgres_execute(
        postgres_database,
        'CREATE SCHEMA "S 1"',
        'CREATE TABLE "S 1"."a ""b""; drop table t --"("x""y" int, "Age" int)',
        'INSERT INTO "S 1"."a ""b""; drop table t --" VALUES (43, 44)',
        'CREATE TABLE "dot.ted"(age int)',
        'INSERT INTO "dot.ted" VALUES (45)',
    )
    table = '"S 1"."a ""b""; drop table t --"'
    assert read(at({"age": 'x"y'}, table=table))[1] == ["43"]
    assert read(at({"age": "Age"}, table=table))[1] == ["44"]
    assert read(at(table='public."dot.ted"'))[1] == ["45"]
    for wrong in ("a.b.c.d", "a.", ".a", '"a', 'a"b', '"a"b'):
        with pytest.raises(ConfigurationError, match="is not a table's name"):
            read(at(table=wrong))


def test_a_query_is_a_table(postgres_database: str, postgres_execute: Execute, at: At) -> None:
    postgres_execute(postgres_database, "CREATE TABLE t(born int, x int)", "INSERT INTO t VALUES (1983, 1), (1990, 2)")
    for query in (
        "select 2026 - born as age from t -- all",
        "with r as (select * from t) select 2026 - born age from r;",
    ):
        summary, values, _ = read(at(query=query))
        assert (sorted(values), summary.read) == (["36", "43"], 2)


@pytest.mark.parametrize(
    "query",
    [
        "delete from t returning age",
        "with d as (delete from t returning age) select age from d",
        "select 1 as age; drop table t",
        "select 1 as age) as x; drop table t; select * from (select 1 as age",
        "select nosuch from t",
        "select * from nosuch",
        "select nextval('s') as age",
    ],
)
def test_anything_but_one_reading_select_is_refused_and_changes_nothing(
    postgres_database: str, postgres_execute: Execute, at: At, query: str
) -> None:
    postgres_execute(postgres_database, "CREATE TABLE t(age int)", "INSERT INTO t VALUES (43)", "CREATE SEQUENCE s")
    with pytest.raises((ConfigurationError, InputError)) as caught:
        read(at(query=query))
    assert "adbc" not in chain(caught.value).lower()
    assert read(at(table="t"))[1] == ["43"]


@pytest.mark.parametrize("rows", [1, 50_000])
def test_a_cast_that_fails_on_a_cell_does_not_show_it(
    postgres_database: str, postgres_execute: Execute, at: At, rows: int
) -> None:
    postgres_execute(
        postgres_database,
        "CREATE TABLE t(x text)",
        f"INSERT INTO t SELECT '43' FROM generate_series(1, {rows})",
        f"INSERT INTO t VALUES ('{CANARY}')",
    )
    with pytest.raises(InputError, match="stopped at a record") as caught:
        read(at(query="select x::int as age from t"))
    assert CANARY not in chain(caught.value)


def test_all_records_are_of_one_moment(postgres_database: str, postgres_execute: Execute, at: At) -> None:
    postgres_execute(
        postgres_database, "CREATE TABLE t(age int)", "INSERT INTO t SELECT 43 FROM generate_series(1, 10)"
    )
    with open_source(at(table="t")) as opened:
        assert opened.total_rows == 10
        postgres_execute(postgres_database, "DELETE FROM t")
        assert sum(batch.num_rows for batch in opened.batches(["age"])) == 10


def test_the_session_is_repeatable_and_read_only(at: At) -> None:
    query = "select current_setting('transaction_isolation') || current_setting('transaction_read_only') as age"
    assert read(at(query=query), survey(Categories(("repeatable readon", "x"))))[1] == ["repeatable readon"]


def test_text_of_another_server_encoding_arrives_whole(
    postgres_url: str, postgres_database: str, postgres_execute: Execute, tmp_path: Path
) -> None:
    name = urlsplit(postgres_database).path[1:] + "_latin"
    postgres_execute(postgres_url, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        uri = tmp_path / "pg.uri"
        uri.write_text(urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}")), "utf-8")
        postgres_execute(uri.read_text("utf-8"), "CREATE TABLE t(age text)", "INSERT INTO t VALUES (U&'a\\00F1o')")
        config = source(kind="postgresql", uri_file=uri, table="t")
        assert read(config, survey(Categories(("año", "x"))))[1] == ["año"]
    finally:
        postgres_execute(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://user:{CANARY}@127.0.0.1:1/db?connect_timeout=2",
        f"postgresql://user:pass@{CANARY}@127.0.0.1:1/db",
        f"postgresql://user:p/{CANARY}@127.0.0.1:port/db",
        f"postgresql://user:{CANARY}@nosuch.invalid/db?connect_timeout=2",
        f"host=/nowhere password={CANARY}",
        CANARY,
        "",
    ],
)
def test_no_connection_error_shows_the_password(tmp_path: Path, uri: str) -> None:
    path = tmp_path / "pg.uri"
    path.write_text(uri, "utf-8")
    with pytest.raises((UnavailableError, ConfigurationError)) as caught:
        read(source(kind="postgresql", uri_file=path, table="t"))
    assert CANARY not in chain(caught.value)


def test_a_database_that_is_not_there_is_said(postgres_database: str, tmp_path: Path) -> None:
    path = tmp_path / "pg.uri"
    path.write_text(urlunsplit(urlsplit(postgres_database)._replace(path="/nosuch")), "utf-8")
    with pytest.raises(UnavailableError, match="no such database or user"):
        read(source(kind="postgresql", uri_file=path, table="t"))


def test_a_missing_uri_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a file"):
        read(source(kind="postgresql", uri_file=tmp_path / "none", table="t"))


def test_a_server_that_ends_the_session_is_told_apart_from_bad_data(
    postgres_database: str, postgres_execute: Execute, at: At
) -> None:
    postgres_execute(postgres_database, "CREATE TABLE t(age int)", "INSERT INTO t VALUES (43)")
    with open_source(at(table="t")) as opened:
        with closing(connect(postgres_database, autocommit=True)) as other, closing(other.cursor()) as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            cursor.fetchall()
        with pytest.raises(TallyveilError) as caught:
            list(opened.batches(["age"]))
    assert isinstance(caught.value, UnavailableError)
