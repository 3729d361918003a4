# pyright: standard
"""CSV files, block by block, every cell as text.

Not here: bytes and encodings (`csv_bytes`), quotation marks (`csv_quotes`). Columns are chosen by position once the
names are read, so that names may repeat, hold line breaks or carry a byte order mark. A line without anything is a
record without a value where there is one column, and no record elsewhere.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Literal, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from tallyveil.errors import ConfigurationError, InputError, TallyveilError
from tallyveil_client.agent.cell_text import trim
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.sources.csv_bytes import DecodedFile
from tallyveil_client.agent.sources.csv_quotes import QuoteCheck
from tallyveil_client.agent.sources.source import (
    UNSENT,
    check_columns,
    existing_file,
    guarded,
    guarded_batches,
    not_readable,
)

_BLOCK_BYTES = 1 << 20
"""A record is never longer."""

_HEAD_BYTES = 1 << 20
"""The column names and what is above them are never longer."""


_DELIMITERS = (";", "\t", "|", ",")
"""Those to look for where the configured one does not make the columns."""


@dataclass
class CsvSource:
    """An open CSV file, read up to its column names; `other_names` are those that other delimiters would make."""

    name: str
    file: DecodedFile
    delimiter: str
    column_names: tuple[str, ...]
    other_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], repr=False)
    total_rows: int | None = None
    _ragged: tuple[int | None, int] | None = field(default=None, repr=False)

    @property
    def fraction_read(self) -> float:
        return self.file.fraction_read

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self._check_delimiter(columns)
        check_columns(self.name, self.column_names, columns, from_schema=False)
        wanted = [str(self.column_names.index(column)) for column in columns]
        for batch in guarded_batches(self._read(wanted), self._fault):
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))

    def _check_delimiter(self, columns: Sequence[str]) -> None:
        """Where the names are not there, say whether another delimiter would make them; no name is shown."""
        if set(columns) <= set(self.column_names):
            return
        for delimiter, names in self.other_names.items():
            if set(columns) <= set(names) or len(self.column_names) == 1 < len(names):
                raise ConfigurationError(
                    f"source '{self.name}': the header row holds {len(self.column_names)} names between "
                    f"{_quoted(self.delimiter)}, and not all that are asked for; between {_quoted(delimiter)} it would "
                    f"hold {len(names)}",
                    not_done="nothing was read",
                    next_step=f"write delimiter = {_quoted(delimiter)} in [sources.{self.name}]",
                )

    def _read(self, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        if not self.file.has_more():
            return
        count = len(self.column_names)
        reader = pa_csv.open_csv(
            cast("IO[bytes]", self.file),
            read_options=pa_csv.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES, column_names=list(map(str, range(count)))
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=count > 1,
                invalid_row_handler=self._note,
            ),
            convert_options=pa_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )
        with closing(reader):
            yield from reader

    def _note(self, row: pa_csv.InvalidRow) -> Literal["error"]:
        self._ragged = (row.number, row.actual_columns)
        return "error"

    def _fault(self, error: Exception) -> TallyveilError:
        if self._ragged is not None:
            number, columns = self._ragged
            return InputError(
                f"source '{self.name}': record {number} has {columns} columns, not {len(self.column_names)}",
                not_done=UNSENT,
                next_step="correct that record; a delimiter inside a field needs quotation marks around the field",
            )
        if "straddling" in str(error):
            return InputError(
                f"source '{self.name}': a record is longer than {_BLOCK_BYTES >> 20} MiB",
                not_done=UNSENT,
                next_step="look for a quotation mark that is not closed",
            )
        return not_readable(f"source '{self.name}': the file cannot be read to its end", error)


@contextmanager
def open_csv(config: SourceConfig) -> Generator[CsvSource]:
    """Open the file a source names; see `tallyveil_client.agent.sources.open_source`."""
    path = existing_file(config.name, config.path)
    options = config.csv

    def fault(error: Exception) -> TallyveilError:
        return not_readable(f"source '{config.name}': {path} cannot be read", error)

    with closing(guarded(lambda: DecodedFile(config.name, path, options.encoding), fault)) as file:
        names, lines, others = guarded(lambda: _header(config, file), fault)
        file.check_quotes(QuoteCheck(config.name, options.delimiter, lines))
        yield CsvSource(config.name, file, options.delimiter, names, others)


def _header(config: SourceConfig, file: DecodedFile) -> tuple[tuple[str, ...], int, dict[str, tuple[str, ...]]]:
    """The column names, on how many lines they and what is above them stand, and the names other delimiters make.

    The file is left after the names.
    """
    head = b""
    while len(head) < _HEAD_BYTES and (piece := file.read(_HEAD_BYTES)):
        head += piece
    text = io.StringIO(head.decode("utf-8", "ignore"), newline="")
    names = _row(text, config.csv.delimiter, config.csv.header_row)
    if not names:
        state = "is empty" if not head else f"has no column names in row {config.csv.header_row}"
        raise (ConfigurationError if head else InputError)(
            f"source '{config.name}': the file {state}",
            not_done=UNSENT,
            next_step="say with header_row where the names are" if head else "check how the file was made",
        )
    above = text.getvalue()[: text.tell()]
    file.push_back(head[len(above.encode()) :])
    others = dict[str, tuple[str, ...]]()
    for mark in _DELIMITERS:
        if mark != config.csv.delimiter:
            with suppress(csv.Error):  # one name as long as all of them is more than the module reads
                others[mark] = _row(io.StringIO(above, newline=""), mark, config.csv.header_row)
    return names, above.count("\n") or above.count("\r"), others


def _row(text: io.StringIO, delimiter: str, number: int) -> tuple[str, ...]:
    """The fields of one row, trimmed; none where there is no such row."""
    rows = csv.reader(text, delimiter=delimiter)
    return tuple(map(trim, next((row for at, row in enumerate(rows, 1) if at == number), ())))


def _quoted(delimiter: str) -> str:
    """As it stands in a configuration."""
    return json.dumps(delimiter)
