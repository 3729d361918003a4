# pyright: standard
"""One Arrow column as codes: for each record an index, or the negative code of a reason.

Not here: what a cell means (`cells`) and whole records (`encode`). Each distinct value of a batch is read once;
whole numbers, where they are many, are read all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tallyveil.errors import InputError
from tallyveil_client.agent.cell_text import UNREADABLE, number_text
from tallyveil_client.agent.cells import CellReader, Reason, code_of

MAX_CACHED = 200_000
"""Distinct texts remembered between batches; beyond, the memory is emptied."""

_MANY = 1_000
_PLAIN_INTEGER = "^-?[0-9]{1,18}$"
_PLAIN_DECIMAL = r"^-?[0-9]{1,12}\.[0-9]{1,3}$"
_NAMED_DIGITS = 15
"""A decimal of so many digits is the shortest that names the float nearest to it."""


class ColumnReader:
    """Reads the batches of one column, remembering the texts it has met."""

    def __init__(self, name: str, reader: CellReader) -> None:
        self._name = name
        self._reader = reader
        self._known: dict[str, int] = {}

    def codes(self, column: pa.Array[Any]) -> NDArray[np.int64]:
        """The code of each cell, shape (records,).

        Raises:
            InputError: The column's type holds neither numbers nor text.
        """
        check_type(self._name, column.type)
        if pa.types.is_integer(column.type) and self._reader.numeric:
            codes = self._integers(column)
            if codes is not None:
                return codes
        coded = column if pa.types.is_dictionary(column.type) else _comparable(column).dictionary_encode()
        encoded = cast("pa.DictionaryArray[Any, Any]", coded)
        distinct = encoded.dictionary
        table = np.empty(len(distinct) + 1, dtype=np.int64)
        table[:-1] = self._distinct(_comparable(distinct))
        table[-1] = code_of(Reason.MISSING)
        return table[_numbers(encoded.indices, len(distinct))]

    def _integers(self, column: pa.Array[Any]) -> NDArray[np.int64] | None:
        if column.type == pa.uint64() and (pc.max(column).as_py() or 0) >= 2**63:
            return None
        codes = self._reader.read_integers(_numbers(column, 0))
        if codes is not None and column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = code_of(Reason.MISSING)
        return codes

    def _distinct(self, values: pa.Array[Any]) -> NDArray[np.int64]:
        if len(values) <= _MANY or not self._reader.numeric:
            return self._one_by_one(values)
        codes = np.empty(len(values), dtype=np.int64)
        left = np.ones(len(values), dtype=np.bool_)
        for chosen, numbers in _plain_numbers(values):
            whole = numbers.dtype.kind == "i"
            read = self._reader.read_integers(numbers) if whole else self._reader.read_floats(numbers)
            if read is not None:
                codes[chosen] = read
                left &= ~chosen
        if left.any():
            codes[left] = self._one_by_one(values.filter(pa.array(left, pa.bool_())))
        return codes

    def _one_by_one(self, values: pa.Array[Any]) -> NDArray[np.int64]:
        known, read = self._known, self._reader.read
        codes = np.empty(len(values), dtype=np.int64)
        for position, text in enumerate(_texts(values)):
            if text is None:
                codes[position] = code_of(Reason.MISSING)
                continue
            code = known.get(text)
            if code is None:
                if len(known) >= MAX_CACHED:
                    known.clear()
                code = known[text] = read(text)
            codes[position] = code
        return codes


def check_type(name: str, kind: pa.DataType) -> None:
    """Refuse a column whose type holds neither numbers nor text.

    Raises:
        InputError: Naming the column and its type.
    """
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(inner):
        fault = f"column {name!r} is nested ({_kind(inner)}), not one value a record"
    elif not (_is_text(inner) or any(test(inner) for test in _READABLE)):
        fault = f"column {name!r} is of type {_kind(inner)}, which is neither a number nor text"
    else:
        return
    raise InputError(fault, not_done="nothing was charged or sent", next_step="choose or make a flat column")


_READABLE = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_null,
)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _kind(kind: pa.DataType) -> str:
    """A type's first word: a nested type's own text would list names of fields."""
    return str(kind).partition("<")[0].partition("[")[0]


def _comparable(values: pa.Array[Any]) -> pa.Array[Any]:
    """The same values in a type that can be dictionary-encoded and read."""
    kind = values.type
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_temporal(kind):
        return values.cast(pa.string())
    return values


def _plain_numbers(values: pa.Array[Any]) -> Iterator[tuple[NDArray[np.bool_], NDArray[Any]]]:
    """Which values are numbers that 64 bits hold exactly, or name exactly, and these numbers as numpy."""
    kind = values.type
    if pa.types.is_string(kind):
        for pattern, number in ((_PLAIN_INTEGER, pa.int64()), (_PLAIN_DECIMAL, pa.float64())):
            matched = pc.match_substring_regex(cast("pa.StringArray", values), pattern).fill_null(False)
            numbers = values.filter(cast("pa.BooleanArray", matched)).cast(number)
            yield matched.to_numpy(zero_copy_only=False), numbers.to_numpy(zero_copy_only=False)
    elif pa.types.is_float64(kind) or (pa.types.is_decimal(kind) and kind.precision <= _NAMED_DIGITS):
        floats = values.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
        finite = np.isfinite(floats)
        yield finite, floats[finite]


def _numbers(values: pa.Array[Any], null: int) -> NDArray[np.int64]:
    """An Arrow array of whole numbers as numpy, nulls replaced."""
    numbers = values.cast(pa.int64())
    return (numbers.fill_null(null) if numbers.null_count else numbers).to_numpy(zero_copy_only=False)


def _texts(values: pa.Array[Any]) -> list[str | None]:
    """The canonical text of each value, whatever its type."""
    kind = values.type
    if pa.types.is_string(kind):
        try:
            return values.to_pylist()
        except UnicodeDecodeError:
            return [_decoded(cell) for cell in values.view(pa.binary()).to_pylist()]
    if pa.types.is_boolean(kind):
        return [None if cell is None else str(cell).lower() for cell in values.to_pylist()]
    if pa.types.is_floating(kind) and not pa.types.is_float64(kind):
        floats = values.fill_null(0).to_numpy(zero_copy_only=False)
        valid = values.is_valid().to_pylist()
        return [number_text(cell) if there else None for cell, there in zip(floats, valid, strict=True)]
    return [_number(cell) for cell in values.to_pylist()]


def _number(cell: int | float | Decimal | None) -> str | None:
    return None if cell is None else number_text(cell)


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode("utf-8")
    except UnicodeDecodeError:
        return UNREADABLE
