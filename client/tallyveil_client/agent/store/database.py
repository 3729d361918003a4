"""The SQLite file itself: made with mode 0600, durable commits, one writer at a time, errors in our own words.

Not here: what is in the tables. `synchronous=FULL` makes a commit durable before it returns; a transaction that
writes takes the write lock at its beginning, so that what it checks is still true when it commits.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tallyveil.errors import ConfigurationError, IntegrityError, InternalError, TallyveilError, UnavailableError
from tallyveil.randomness import public_token
from tallyveil_client.agent.store.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES

BUSY_TIMEOUT_S = 60.0
_UNCHANGED = "nothing was charged, stored or sent"


class Database:
    """A connection to the store's file, which it makes where there is none. For one thread of one process.

    Args:
        path: The file; its folder must exist.

    Raises:
        ConfigurationError: The folder does not exist, or the file may not be written or is another program's.
        IntegrityError: The file is damaged.
        UnavailableError: The disk is full, or another process holds the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._make_file()
        try:
            self.connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        except sqlite3.Error as error:
            raise self.translate(error) from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.connection.close()
            raise self.translate(error) from None
        except TallyveilError:
            self.connection.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """One transaction that holds the write lock: all of it is kept, or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """One snapshot."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        try:
            self.connection.execute(begin)
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self.translate(error) from None

    def translate(self, error: sqlite3.Error) -> TallyveilError:
        """What SQLite's error means to whoever runs the agent; its own text is not repeated."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        match code:
            case sqlite3.SQLITE_FULL:
                return self._disk_full("the disk is full")
            case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_NOMEM:
                return self._disk_full("writing or reading failed")
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return UnavailableError(
                    f"another process has held the agent's store {self.path} for {BUSY_TIMEOUT_S:.0f} s",
                    not_done=_UNCHANGED,
                    next_step="wait for the other run of the agent to end, then run again",
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                return ConfigurationError(
                    f"the agent's store {self.path} cannot be opened for writing",
                    not_done=_UNCHANGED,
                    next_step="check the path, its owner and permissions, and that the file system is not read-only",
                )
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return IntegrityError(
                    f"the agent's store {self.path} is damaged or not a store",
                    not_done=_UNCHANGED,
                    next_step="keep the file as it is and put its newest copy back",
                )
            case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISMATCH:
                return IntegrityError(
                    f"the agent's store {self.path} refuses what contradicts what it holds",
                    not_done=_UNCHANGED,
                    next_step="run the command again; if it happens again, report it",
                )
            case _:
                return InternalError(f"the agent's store {self.path} failed (SQLite code {code})", not_done=_UNCHANGED)

    def _disk_full(self, what: str) -> UnavailableError:
        return UnavailableError(
            f"{what}: {self.path}",
            not_done="the change was not stored and nothing was sent because of it",
            next_step="free space or repair the disk, then run again: what was stored before is kept, nothing is "
            "charged twice",
        )

    def _make_file(self) -> None:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            if self.path.stat().st_mode & 0o077:
                os.chmod(self.path, 0o600)
        except FileNotFoundError:
            raise ConfigurationError(
                f"the folder of the agent's store {self.path} does not exist",
                not_done=_UNCHANGED,
                next_step="make the folder, or correct [store] path",
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"the agent's store {self.path} cannot be opened for writing: {os.strerror(error.errno or 0)}",
                not_done=_UNCHANGED,
                next_step="check the path, its owner and permissions, and that the disk is neither full nor read-only",
            ) from None

    def _prepare(self) -> None:
        execute = self.connection.execute
        execute("PRAGMA foreign_keys = ON")
        execute("PRAGMA trusted_schema = OFF")
        execute("PRAGMA synchronous = FULL")
        if _number(self.connection, "PRAGMA user_version") == 0:
            self._make_tables()
        found = _number(self.connection, "PRAGMA application_id"), _number(self.connection, "PRAGMA user_version")
        if found != (APPLICATION_ID, SCHEMA_VERSION):
            raise ConfigurationError(
                f"{self.path} is not an agent's store of this version",
                not_done=_UNCHANGED,
                next_step="correct [store] path, or update this software",
            )
        execute("PRAGMA journal_mode = WAL")

    def _make_tables(self) -> None:
        """In one transaction, since several processes may meet a new file at once; only an empty file is used."""
        with self.writing() as connection:
            if _number(connection, "SELECT count(*) FROM sqlite_schema") != 0:
                return
            for statement in TABLES.split(";"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute("INSERT INTO identity VALUES (1, ?)", (public_token().hex(),))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _number(connection: sqlite3.Connection, query: str) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0])
