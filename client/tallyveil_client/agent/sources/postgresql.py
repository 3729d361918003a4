# pyright: standard
"""PostgreSQL tables and queries, in one repeatable, read-only snapshot.

Not here: what cells mean. Columns of types that no reader knows are cast to text by the database; numeric comes as
text too, without trailing zeros, so that no digit is lost.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adbc_driver_manager.dbapi
import adbc_driver_postgresql.dbapi  # type: ignore[import-untyped]
import pyarrow as pa

from tallyveil.errors import ConfigurationError, InputError, TallyveilError, UnavailableError
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.sources.source import UNSENT, check_columns, existing_file, guarded, guarded_batches
from tallyveil_client.agent.sources.sql import quoted, quoted_path, relation, selection

_AS_THEY_ARE = frozenset(["int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar", "name"])
_REFUSED = frozenset({"bytea"})
_TYPE = b"POSTGRESQL:type"

_REFUSES = ("PostgreSQL refuses the table or the query", "check their names, and that it is one SELECT, with psql")
_BY_STATE = {
    "0A": _REFUSES,
    "22": ("a value the query computes on cannot be used", "check the casts and divisions in the query"),
    "25": ("the query tries to write, which this read-only session forbids", "use a query that only reads"),
    "42501": ("this user may not read the table", "GRANT SELECT on it to the user"),
    "42": _REFUSES,
    "57": ("the server ended the query", "try again; check statement_timeout"),
}
_BY_WORDS = {
    "password": "the server refuses the user or password",
    "authentication": "the server refuses the user or password",
    "pg_hba.conf": "the server's pg_hba.conf does not let this user in",
    "certificate": "the server's certificate does not hold",
    "does not exist": "there is no such database or user",
    "translate host name": "the host's name is unknown",
    "refused": "nothing listens at that address",
    "timeout": "the server does not answer",
    "No such file": "nothing listens at that address",
}


@dataclass(frozen=True)
class PostgresqlSource:
    """An open connection inside a read-only transaction."""

    name: str
    connection: adbc_driver_manager.dbapi.Connection
    relation: str
    schema: pa.Schema
    total_rows: int | None
    fraction_read: float | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        check_columns(self.name, self.column_names, columns)
        expressions = [_expression(self.schema.field(column)) for column in columns]
        return guarded_batches(self._read(expressions), self._fault)

    def _read(self, expressions: list[str]) -> Iterator[pa.RecordBatch]:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(selection(expressions, self.relation))
            yield from cursor.fetch_record_batch()

    def _fault(self, error: Exception) -> TallyveilError:
        """What went wrong while reading; such errors carry no SQLSTATE, so the server is asked whether it is there."""
        if getattr(error, "sqlstate", None) is None and self._answers():
            return InputError(
                f"source '{self.name}': PostgreSQL stopped at a record: the table or query cannot be read to its end",
                not_done=UNSENT,
                next_step="check the casts and divisions in the query, and that it only reads, with psql",
            )
        return _fault(self.name, error)

    def _answers(self) -> bool:
        try:
            self.connection.rollback()
            with closing(self.connection.cursor()) as cursor:
                cursor.execute("SELECT 1")
        except adbc_driver_manager.dbapi.Error:
            return False
        return True


@contextmanager
def open_postgresql(config: SourceConfig) -> Generator[PostgresqlSource]:
    """Connect to the database a source names; see `tallyveil_client.agent.sources.open_source`."""
    table = relation(config, quoted_path(config.table) if config.table is not None else "")
    uri = _uri(existing_file(config.name, config.uri_file))
    connection = guarded(
        lambda: adbc_driver_postgresql.dbapi.connect(uri), lambda error: _unreachable(config.name, error)
    )
    with closing(connection):
        yield guarded(lambda: _begin(config, connection, table), lambda error: _fault(config.name, error))


def _begin(config: SourceConfig, connection: adbc_driver_manager.dbapi.Connection, table: str) -> PostgresqlSource:
    with closing(connection.cursor()) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL client_encoding TO 'UTF8'")
        cursor.execute(selection(["*"], table) + " LIMIT 0")
        schema = cursor.fetch_record_batch().schema
        rows: int | None = None
        if config.query is None:
            cursor.execute(selection(["count(*)"], table))
            rows = cursor.fetch_arrow_table().column(0)[0].as_py()
    return PostgresqlSource(config.name, connection, table, schema, rows)


def _expression(field: pa.Field[Any]) -> str:
    name = quoted(field.name)
    kind = (field.metadata or {}).get(_TYPE, b"").decode()
    if kind in _AS_THEY_ARE:
        return name
    if kind in _REFUSED or pa.types.is_nested(field.type):
        raise InputError(
            f"column {field.name!r} is of type {kind}, which is neither a number nor text",
            not_done=UNSENT,
            next_step="choose or make a flat column",
        )
    return f"trim_scale({name})::text AS {name}" if kind == "numeric" else f"{name}::text AS {name}"


def _uri(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        fault = f"{path} cannot be read as text"
    raise ConfigurationError(fault, not_done="nothing was read", next_step="check the file and its permissions")


def _unreachable(name: str, error: Exception) -> TallyveilError:
    """libpq's messages may quote a part of the password, so they are told in our words."""
    text = str(error)
    why = next((why for words, why in _BY_WORDS.items() if words in text), "the connection URI may be malformed")
    return UnavailableError(
        f"source '{name}': cannot connect to PostgreSQL: {why}",
        not_done=UNSENT,
        next_step='check the connection URI with: psql "$(cat URI_FILE)"',
    )


def _fault(name: str, error: Exception) -> TallyveilError:
    """What went wrong, by SQLSTATE: the server's messages may quote a cell."""
    state = str(getattr(error, "sqlstate", None) or "")
    known = _BY_STATE.get(state) or _BY_STATE.get(state[:2])
    code = f"SQLSTATE {state}" if state else type(error).__name__
    if known is None:
        return UnavailableError(
            f"source '{name}': PostgreSQL did not answer to the end ({code})",
            not_done=UNSENT,
            next_step="check that the server is up, then run again",
        )
    what, next_step = known
    kind = InputError if state.startswith("22") else ConfigurationError
    return kind(f"source '{name}': {what} ({code})", not_done=UNSENT, next_step=next_step)
