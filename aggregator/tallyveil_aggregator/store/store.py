"""The store as the rest of the aggregator sees it: transactions with one part for each subject.

Not here: statements (one module for each part) and the database itself (`engine`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from tallyveil.errors import ConfigurationError
from tallyveil_aggregator.store import schema
from tallyveil_aggregator.store.batches import Batches
from tallyveil_aggregator.store.departments import Departments
from tallyveil_aggregator.store.engine import Database, make_file
from tallyveil_aggregator.store.releases import Releases
from tallyveil_aggregator.store.rounds import Rounds
from tallyveil_aggregator.store.submissions import Submissions
from tallyveil_aggregator.store.surveys import Surveys


class Transaction:
    """What may be read, or read and written, as one step."""

    def __init__(self, connection: Connection) -> None:
        self.departments = Departments(connection)
        self.surveys = Surveys(connection)
        self.rounds = Rounds(connection)
        self.submissions = Submissions(connection)
        self.batches = Batches(connection)
        self.releases = Releases(connection)


class Store:
    """A store that was opened; safe to use from several threads, beside other processes.

    Every method and transaction raises `StoreUnavailable` where the database cannot do its work.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make a new store.

        Raises:
            ConfigurationError: Something is there already.
        """
        if not make_file(path):
            raise ConfigurationError(
                f"there is a store already, or another file: {path}",
                not_done="it was not touched",
                next_step="use it as it is, or name another file in the configuration",
            )
        store = cls(Database(path))
        with store._database.writing() as connection:
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.store_format).values(format=schema.FORMAT))
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open an existing store.

        Raises:
            ConfigurationError: The file is no store, or one of another version.
        """
        store = cls(Database(path))
        with store._database.reading() as connection:
            found = None
            if inspect(connection).has_table(schema.store_format.name):
                found = connection.execute(select(schema.store_format.c.format)).scalar()
        if found != schema.FORMAT:
            store.close()
            raise ConfigurationError(
                f"{path} is no store of this version",
                not_done="nothing was read or stored",
                next_step="name another file in the configuration, or make a store: tallyveil aggregator init",
            )
        return store

    @contextmanager
    def reading(self) -> Generator[Transaction]:
        """One state of the store, unchanging while it is read."""
        with self._database.reading() as connection:
            yield Transaction(connection)

    @contextmanager
    def writing(self) -> Generator[Transaction]:
        """One step, alone: durable when this returns, undone where anything is raised inside."""
        with self._database.writing() as connection:
            yield Transaction(connection)

    def check(self) -> None:
        """Raise `StoreUnavailable` where the store cannot be reached any more."""
        self._database.check()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
