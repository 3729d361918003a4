"""The SQLite file behind the store: connections, transactions, and what its failures mean.

Not here: tables and statements, which any database SQLAlchemy speaks would take. A commit has reached the disk
(write-ahead log, synchronous=FULL) when `writing` returns. Writers of all processes stand in one line; those of this
process wait for each other here, since SQLite's own waiting is polling.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool, QueuePool

from tallyveil.errors import ConfigurationError, InternalError, UnavailableError
from tallyveil.errors import IntegrityError as DamagedError

BUSY_S = 10.0
"""Longest wait for another writer."""

_MODE = 0o600
_CONNECTIONS = 16
_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE})
"""What a later attempt may not meet; every other failure of the operating system is in a path or its permissions."""


class StoreUnavailable(UnavailableError):
    """The store cannot be used now; nothing of what was asked has been stored."""

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(f"the store cannot be used: {what}", not_done="nothing was stored", next_step=next_step)


class StoreMisplaced(StoreUnavailable):
    """The path or its permissions are wrong: for a command final, for a running server's callers still "later"."""

    kind: ClassVar[str] = ConfigurationError.kind
    exit_code: ClassVar[int] = ConfigurationError.exit_code


class StoreDamaged(StoreUnavailable):
    """The file is no database any more: final until a backup is restored."""

    kind: ClassVar[str] = DamagedError.kind
    exit_code: ClassVar[int] = DamagedError.exit_code


class Database:
    """One SQLite file that exists.

    Args:
        path: The file.

    Raises:
        StoreUnavailable: There is no such file, or it cannot be reached.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = _identity_of(path)
        self._engine = _make_engine(path, QueuePool)
        self._anew = _make_engine(path, NullPool)
        self._turn = threading.Lock()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """A transaction that sees one state of the store and changes nothing."""
        with _explained(), self._engine.connect() as connection:
            self._check_file()
            with connection.execution_options(writing=False).begin():
                yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """The only writing transaction at its time; on disk when this returns, undone where anything is raised."""
        if not self._turn.acquire(timeout=BUSY_S):
            raise _busy()
        try:
            with _explained(), self._engine.connect() as connection:
                self._check_file()
                with connection.execution_options(writing=True).begin():
                    yield connection
        finally:
            self._turn.release()

    def check(self) -> None:
        """Whether the file can still be opened anew and read, not only through connections that are open.

        Raises:
            StoreUnavailable: It cannot.
        """
        with _explained(), self._anew.connect() as connection:
            self._check_file()
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema")

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._engine.dispose()

    def _check_file(self) -> None:
        # An open connection would go on writing to a file that no longer has a name: acknowledged, then lost.
        if _identity_of(self._path) != self._identity:
            raise StoreUnavailable("its file was replaced while in use", "stop the aggregator, then start it again")


def make_file(path: Path) -> bool:
    """Make an empty file for a store, readable by its owner alone; False where one with content is there.

    Raises:
        StoreUnavailable: It cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, _MODE))
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return path.stat().st_size == 0
    except OSError as error:
        raise _failed(
            error, f"{path}: {_reason(error)}", f"check the folder {path.parent} and its permissions"
        ) from None


def _make_engine(path: Path, pool: type[QueuePool] | type[NullPool]) -> Engine:
    def connect() -> sqlite3.Connection:
        address = f"file:{quote(str(path.absolute()))}?mode=rw"  # never makes a file that is missing
        return sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)

    sizes = {"pool_size": _CONNECTIONS, "max_overflow": 0, "pool_timeout": BUSY_S} if pool is QueuePool else {}
    engine = create_engine("sqlite://", creator=connect, poolclass=pool, **sizes)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, record: object) -> None:
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}").close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing(connection) else "BEGIN")


def is_writing(connection: Connection) -> bool:
    """Whether the connection's transaction may change anything."""
    return bool(connection.get_execution_options().get("writing"))


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except PoolTimeoutError:
        raise _busy() from None
    except IntegrityError:
        raise InternalError("the store's own rules refuse what was decided", not_done="nothing was stored") from None
    except DBAPIError as error:
        name = getattr(error.orig, "sqlite_errorname", "")
        raise _explain(name if isinstance(name, str) else "") from None


def _explain(name: str) -> StoreUnavailable:
    """What SQLite's error code means; its text is left out, since it may quote a statement."""
    match name.split("_")[1:2]:
        case ["FULL"]:
            return StoreUnavailable("the disk is full", "free space on the store's disk, then try again")
        case ["BUSY"] | ["LOCKED"]:
            return _busy()
        case ["CANTOPEN"]:
            return StoreMisplaced("its file cannot be opened", "check that the file is there and its permissions")
        case ["READONLY"] | ["PERM"] | ["AUTH"]:
            return StoreMisplaced("it may not be written", "check the permissions of the file and its folder")
        case ["IOERR"]:
            return StoreUnavailable("its disk fails to read or write", "check the disk, and the space left on it")
        case ["CORRUPT"] | ["NOTADB"]:
            return StoreDamaged("its file is damaged or no store", "restore the latest backup")
        case _:
            return StoreUnavailable(f"SQLite reports {name or 'an error'}", "check the file, then try again")


def _busy() -> StoreUnavailable:
    return StoreUnavailable(f"another writer held it for {BUSY_S:g} s", "try again")


def _identity_of(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise _failed(
            error,
            f"its file {path} is not to be had ({_reason(error)})",
            "check [store] path in the configuration, or make a store: tallyveil aggregator init",
        ) from None
    return status.st_dev, status.st_ino


def _failed(error: OSError, what: str, next_step: str) -> StoreUnavailable:
    return (StoreUnavailable if error.errno in _PASSING else StoreMisplaced)(what, next_step)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
