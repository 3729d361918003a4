# pyright: standard
"""SQLite files, read-only and in one transaction.

Not here: the agent's own store. A column may hold anything: numbers and text become text that loses nothing, blobs
and text that is not UTF-8 become cells nobody can read.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from tallyveil.errors import ConfigurationError, InputError, TallyveilError, UnavailableError
from tallyveil_client.agent.cell_text import UNREADABLE, number_text
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.sources.source import UNSENT, check_columns, existing_file, guarded, guarded_batches
from tallyveil_client.agent.sources.sql import quoted, relation, selection

_BATCH_RECORDS = 8_192
_BUSY_S = 10.0
_IN_MEMORY = 2
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_Cell = int | float | str | bytes | None


@dataclass(frozen=True)
class SqliteSource:
    """An open SQLite file inside a read transaction."""

    name: str
    connection: sqlite3.Connection
    relation: str
    column_names: tuple[str, ...]
    total_rows: int | None
    fraction_read: float | None = None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        check_columns(self.name, self.column_names, columns)
        return guarded_batches(self._read(tuple(columns)), lambda error: _fault(self.name, error))

    def _read(self, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        statement = selection(map(quoted, columns), self.relation)
        with closing(self.connection.execute(statement)) as cursor:
            while rows := cursor.fetchmany(_BATCH_RECORDS):
                arrays = [_array(cells) for cells in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


@contextmanager
def open_sqlite(config: SourceConfig) -> Generator[SqliteSource]:
    """Open the file a source names; see `tallyveil_client.agent.sources.open_source`."""
    path = existing_file(config.name, config.path)
    table = relation(config, quoted(config.table or ""))
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(guarded(lambda: _connect(uri), lambda error: _fault(config.name, error))) as connection:
        yield guarded(lambda: _begin(config, connection, table), lambda error: _fault(config.name, error))


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_S)
    # Bytes that are not UTF-8 come as lone surrogates, for `_text` to find.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


def _begin(config: SourceConfig, connection: sqlite3.Connection, table: str) -> SqliteSource:
    _keep_in_memory(config.name, connection)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("BEGIN")
    description = connection.execute(selection(["*"], table) + " LIMIT 0").description
    rows: int | None = None
    if config.query is None:
        rows = connection.execute(selection(["count(*)"], table)).fetchone()[0]
    return SqliteSource(config.name, connection, table, tuple(column[0] for column in description), rows)


def _keep_in_memory(name: str, connection: sqlite3.Connection) -> None:
    """Let no query sort or group records in a file; memory then has to hold what it sorts."""
    connection.execute("PRAGMA temp_store = MEMORY")
    always_a_file = connection.execute("SELECT sqlite_compileoption_used('TEMP_STORE=0')").fetchone()[0]
    if always_a_file or connection.execute("PRAGMA temp_store").fetchone()[0] != _IN_MEMORY:
        raise ConfigurationError(
            f"source '{name}': this SQLite library writes temporary files, in which records would lie in clear",
            not_done="nothing was read",
            next_step="use an SQLite library that was not built with SQLITE_TEMP_STORE=0",
        )


def _array(cells: tuple[_Cell, ...]) -> pa.Array[Any]:
    """Whole numbers as such where there is nothing else, otherwise everything as text."""
    kinds = set(map(type, cells)) - {type(None)}
    if kinds <= {int}:
        return pa.array(cells, pa.int64())
    if kinds == {str}:
        try:
            return pa.array(cells, pa.string())
        except UnicodeEncodeError:
            pass
    return pa.array([_text(cell) for cell in cells], pa.string())


def _text(cell: _Cell) -> str | None:
    match cell:
        case None:
            return None
        case str():
            return cell if cell.isascii() or not _NOT_UTF8.search(cell) else UNREADABLE
        case bytes():
            return UNREADABLE
        case _:
            return number_text(cell)


def _fault(name: str, error: Exception) -> TallyveilError:
    """What went wrong, by SQLite's code: its messages may quote a cell."""
    code = getattr(error, "sqlite_errorname", type(error).__name__)
    match code:
        case "SQLITE_ERROR" | "ProgrammingError":
            return ConfigurationError(
                f"source '{name}': SQLite refuses the table or the query ({code})",
                not_done=UNSENT,
                next_step="check their names, and that the query is one SELECT, with the sqlite3 command",
            )
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return UnavailableError(
                f"source '{name}': the file is locked by another program ({code})",
                not_done=UNSENT,
                next_step="try again when that program is done",
            )
        case "SQLITE_CANTOPEN":
            return ConfigurationError(
                f"source '{name}': SQLite cannot open the file ({code})",
                not_done=UNSENT,
                next_step="check its permissions; beside a file in WAL mode SQLite needs to write its -shm file",
            )
        case _:
            return InputError(
                f"source '{name}': SQLite cannot read the file to its end ({code})",
                not_done=UNSENT,
                next_step="check the file with: sqlite3 FILE 'pragma integrity_check'",
            )
