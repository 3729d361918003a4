# pyright: standard
"""Parquet files, a stretch of a row group at a time.

Not here: CSV and databases.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tallyveil_client.agent.columns import check_type
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.sources.source import (
    BATCH_RECORDS,
    check_columns,
    existing_file,
    guarded,
    guarded_batches,
    not_readable,
)

_BUFFER_BYTES = 1 << 20
"""Column chunks are read through a buffer of this size, so that a large row group is not held whole."""


@dataclass(frozen=True)
class ParquetSource:
    """An open Parquet file."""

    name: str
    path: Path
    schema: pa.Schema
    total_rows: int
    fraction_read: float | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        check_columns(self.name, self.column_names, columns)
        for column in columns:
            check_type(column, self.schema.field(column).type)
        convert = partial(not_readable, f"source '{self.name}': {self.path} cannot be read to its end")
        texts = [column for column in columns if _is_text(self.schema.field(column).type)]
        with guarded(lambda: _open(self.path, texts), convert) as file:
            yield from guarded_batches(file.iter_batches(BATCH_RECORDS, columns=list(columns)), convert)


@contextmanager
def open_parquet(config: SourceConfig) -> Generator[ParquetSource]:
    """Open the file a source names; see `tallyveil_client.agent.sources.open_source`."""
    path = existing_file(config.name, config.path)
    convert = partial(not_readable, f"source '{config.name}': {path} is not a readable Parquet file")
    with guarded(lambda: _open(path, []), convert) as file:
        schema = guarded(lambda: file.schema_arrow, convert)
        rows = file.metadata.num_rows
    yield ParquetSource(config.name, path, schema, rows)


def _open(path: Path, texts: list[str]) -> pq.ParquetFile:
    """Texts are left dictionary-encoded, as most are in the file."""
    return pq.ParquetFile(path, read_dictionary=texts, buffer_size=_BUFFER_BYTES, pre_buffer=False)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
