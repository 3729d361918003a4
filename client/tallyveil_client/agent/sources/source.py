# pyright: standard
"""What every source answers, and which of its columns are meant.

Not here: any format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa

from tallyveil.errors import ConfigurationError, InputError, TallyveilError

T = TypeVar("T")

UNSENT = "nothing was charged or sent"
BATCH_RECORDS = 131_072
_MAX_LISTED = 50
_MAX_NAME_LENGTH = 80


class Source(Protocol):
    """An open source. Records may be read once."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """Its columns, in order; a name may occur twice."""
        ...

    @property
    def total_rows(self) -> int | None:
        """How many records there are, where that is known without reading them."""
        ...

    @property
    def fraction_read(self) -> float | None:
        """How much was read, from 0 to 1, where it is not told by `total_rows`."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records in order, with these columns only. Types may differ from batch to batch.

        Raises:
            ConfigurationError: A column is not there or its name occurs twice.
            InputError: The source cannot be read to its end.
        """
        ...


def guarded(action: Callable[[], T], convert: Callable[[Exception], TallyveilError]) -> T:
    """What `action` returns; a foreign error becomes ours, and nothing of it stays behind ours.

    ``raise ... from None`` would keep the foreign error, with the cell it may quote, as the context.
    """
    try:
        return action()
    except TallyveilError:
        raise
    except Exception as error:
        ours = convert(error)
    raise ours


def guarded_batches(
    batches: Iterator[pa.RecordBatch], convert: Callable[[Exception], TallyveilError]
) -> Iterator[pa.RecordBatch]:
    """The same batches, with `guarded` around the reading of each."""
    while (batch := guarded(lambda: next(batches, None), convert)) is not None:
        yield batch


def existing_file(source: str, path: Path | None) -> Path:
    """The path, which is a file.

    Raises:
        ConfigurationError: It is not.
    """
    if path is None or not path.is_file():
        raise ConfigurationError(
            f"source '{source}': {path} is not a file",
            not_done="nothing was read",
            next_step=f"correct the path in [sources.{source}]",
        )
    return path


def check_columns(source: str, there: Sequence[str], wanted: Sequence[str], *, from_schema: bool = True) -> None:
    """Refuse columns that are not there, or that two columns could be.

    Args:
        source: Its name.
        there: Names of its columns.
        wanted: Names to look for.
        from_schema: Whether the names are of a schema. Those of a CSV file are its first row, which is a record where
            the file has no names, so that none of them is ever shown.

    Raises:
        ConfigurationError: Lists the columns of a schema; of a CSV file only their number.
    """
    for name in wanted:
        if name in there:
            if there.count(name) > 1:
                raise ConfigurationError(
                    f"source '{source}' has {there.count(name)} columns named {name!r}",
                    not_done="nothing was read",
                    next_step="rename all but one of them in the source",
                )
            continue
        if not from_schema:
            raise ConfigurationError(
                f"source '{source}' has no column {name!r} among the {len(there)} that its header row names",
                not_done="nothing was read",
                next_step=f"compare the file's header row with [sources.{source}.columns]; say with header_row where "
                "the names are; a file without names cannot be used",
            )
        raise ConfigurationError(
            f"source '{source}' has no column {name!r}; it has: {_listed(there)}",
            not_done="nothing was read",
            next_step=_hint(source, name, there),
        )


def not_readable(what: str, error: Exception) -> InputError:
    """A source that its own library refuses; of the error only the type is told."""
    return InputError(
        f"{what} ({type(error).__name__})", not_done=UNSENT, next_step="check the source with its own tools"
    )


def _hint(source: str, name: str, there: Sequence[str]) -> str:
    close = get_close_matches(name, there, 1)
    correct = f"correct [sources.{source}.columns]"
    return f"did you mean {close[0]!r}? {correct}" if close else correct


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:_MAX_NAME_LENGTH]) for name in names[:_MAX_LISTED])
    return f"{shown} and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else shown or "no column"
