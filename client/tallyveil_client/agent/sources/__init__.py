# pyright: standard
"""Where records come from: one source of any format, as Arrow batches of the columns asked for.

Not here: what the cells mean (`tallyveil_client.agent.encode`). Memory use does not grow with the source, except where
a query on SQLite sorts or groups it: nothing of it may lie in a temporary file. No error
holds a cell, neither in its message nor in the chain of errors behind it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.sources.source import Source

__all__ = ["Source", "open_source"]


def open_source(config: SourceConfig) -> AbstractContextManager[Source]:
    """Open a source; entering the context connects to it and reads its column names.

    The libraries of a format are loaded only when a source has it.

    Raises:
        ConfigurationError: On entering: no such file, table or credential.
        InputError: On entering, or from the batches: the source is not what its format says.
        UnavailableError: On entering: the database cannot be reached.
    """
    match config.format:
        case "csv":
            from tallyveil_client.agent.sources.csv import open_csv

            return open_csv(config)
        case "parquet":
            from tallyveil_client.agent.sources.parquet import open_parquet

            return open_parquet(config)
        case "sqlite":
            from tallyveil_client.agent.sources.sqlite import open_sqlite

            return open_sqlite(config)
        case _:
            from tallyveil_client.agent.sources.postgresql import open_postgresql

            return open_postgresql(config)
