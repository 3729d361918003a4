# pyright: standard
"""Arrow columns of every type give the codes that their texts give."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyveil.domain import Categories, Integers, Intervals
from tallyveil.errors import InputError
from tallyveil_client.agent import columns
from tallyveil_client.agent.cell_text import number_text
from tallyveil_client.agent.cells import CellReader, CellRules, Reason, code_of, domain_reader
from tallyveil_client.agent.columns import ColumnReader
from tallyveil_client.agent.filter import ConditionReader, parse_filter

RULES = CellRules(missing=("99", "-9.5"), recode={"120": "80"})
READERS: list[CellReader] = [
    domain_reader(Integers(15, 99), RULES),
    domain_reader(Intervals(("0", "42.5", "100")), RULES),
    domain_reader(Categories(("43", "42.5", "0.1", "true")), CellRules()),
    ConditionReader(parse_filter("x >= 42.5")[0], RULES),
    ConditionReader(parse_filter("x == '43'")[0], CellRules()),
]
MISSING = code_of(Reason.MISSING)


DECIMAL_TYPES = [
    *(pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal64(18, 10)),
    *(pa.decimal128(5, 2), pa.decimal128(38, 10), pa.decimal256(60, 3)),
]


def codes(reader: CellReader, column: pa.Array[Any]) -> list[int]:
    return list(map(int, ColumnReader("x", reader).codes(column)))


def one_by_one(reader: CellReader, texts: list[str | None]) -> list[int]:
    return [reader.read(text) for text in texts]


INTEGER_TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("kind", INTEGER_TYPES, ids=str)
def test_integers_of_every_width(kind: pa.DataType) -> None:
    values = [43, None, 99, 120, 0, 15]
    for reader in READERS:
        texts = [None if value is None else str(value) for value in values]
        assert codes(reader, pa.array(values, kind)) == one_by_one(reader, texts)


def test_integers_beyond_64_signed_bits_are_out_of_domain() -> None:
    assert codes(READERS[0], pa.array([2**64 - 1, 43], pa.uint64())) == [code_of(Reason.OUT_OF_DOMAIN), 28]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats_of_every_width_are_their_shortest_decimals(kind: pa.DataType) -> None:
    values = np.array([43, 42.5, 0.1, 99, -9.5, np.nan, np.inf, -0.0], kind.to_pandas_dtype())
    texts = ["43", "42.5", "0.1", "99", "-9.5", "NaN", "inf", "0"]
    for reader in READERS:
        column = pa.concat_arrays([pa.array(values, kind), pa.array([None], kind)])
        assert codes(reader, column) == one_by_one(reader, [*texts, None])


@pytest.mark.parametrize("kind", DECIMAL_TYPES, ids=str)
def test_decimals_lose_no_digit(kind: pa.DataType) -> None:
    values = [Decimal("43.00"), Decimal("42.50"), Decimal("42.49"), None, Decimal("-9.5"), Decimal(120)]
    texts = ["43", "42.5", "42.49", None, "-9.5", "120"]
    for reader in READERS:
        assert codes(reader, pa.array(values, kind)) == one_by_one(reader, texts)


TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
TEXTS = ["43", " 42.5", "80+", None, "", "true", "99.0", "x"]


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_texts_of_every_layout(kind: pa.DataType) -> None:
    for reader in READERS:
        assert codes(reader, pa.array(TEXTS, kind)) == one_by_one(reader, TEXTS)


def test_dictionaries_with_nulls_and_repeats() -> None:
    words = pa.array(["43", None, "43", "80+"], pa.large_string())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 3], pa.int8()), words)
    numbers = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.uint16()), pa.array([120, 43]))
    for reader in READERS:
        assert codes(reader, column) == one_by_one(reader, ["43", None, None, "43", "80+"])
        assert codes(reader, numbers) == one_by_one(reader, ["43", "120", None])


def test_booleans_are_words_and_no_numbers() -> None:
    column = pa.array([True, False, None])
    assert codes(READERS[0], column) == [code_of(Reason.NOT_A_NUMBER)] * 2 + [MISSING]
    assert codes(READERS[2], column) == [3, code_of(Reason.NOT_IN_CODEBOOK), MISSING]


def test_dates_are_iso_texts() -> None:
    days = domain_reader(Categories(("2015-01-31", "2015-01-31 00:00:00")), CellRules())
    assert codes(days, pa.array([date(2015, 1, 31), None])) == [0, MISSING]
    assert codes(days, pa.array([datetime(2015, 1, 31)], pa.timestamp("s"))) == [1]
    assert codes(READERS[0], pa.array([date(1970, 2, 13)])) == [code_of(Reason.NOT_A_NUMBER)]


def test_a_column_of_nulls_is_missing() -> None:
    assert codes(READERS[0], pa.nulls(2)) == [MISSING, MISSING]


def test_text_that_is_not_utf8_is_unreadable_cell_by_cell() -> None:
    raw = pa.array([b"43", b"\xff43", None, b"4\xed\xa0\x80"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    many = pa.concat_arrays([column, pa.array(list(map(str, range(5000))))])
    for reader in READERS[:1]:
        expected = [28, code_of(Reason.UNREADABLE), MISSING, code_of(Reason.UNREADABLE)]
        assert codes(reader, column) == expected
        assert codes(reader, many)[:4] == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]]),
        pa.array([{"CANARY": 1}]),
        pa.array([[("CANARY", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([b"43"]),
        pa.array([b"43"], pa.large_binary()),
        pa.array([1], pa.duration("s")),
        pa.array([b"x"]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type)[:12],
)
def test_other_types_are_refused_naming_the_column_and_the_type(column: pa.Array[Any]) -> None:
    for reader in READERS:
        with pytest.raises(InputError, match="column 'x' is") as caught:
            codes(reader, column)
        assert "CANARY" not in str(caught.value)


PLAIN = st.integers(-200, 200).map(str) | st.decimals(-200, 200, places=2).map(str) | st.sampled_from(["99", "-9.5"])
ODD = st.sampled_from(["", "x", "80+", "1e5", "007", "43.000", "+43", "-0", "12345678901234567890", "0.1234567"])


@given(st.lists(PLAIN | ODD | st.none(), max_size=40))
def test_many_distinct_texts_are_read_as_few_are(texts: list[str | None]) -> None:
    filling = [str(number) for number in range(10_000, 11_100)]
    for reader in READERS:
        assert codes(reader, pa.array([*texts, *filling], pa.string()))[: len(texts)] == one_by_one(reader, texts)


@given(st.lists(st.integers(-(10**6), 10**6), max_size=40), st.sampled_from([pa.float64(), pa.decimal128(15, 3)]))
def test_many_distinct_numbers_are_read_as_few_are(thousandths: list[int], kind: pa.DataType) -> None:
    values = [Decimal(number) / 1000 for number in [*thousandths, *range(50_000_000, 50_001_100)]]
    column = pa.array(values, kind) if pa.types.is_decimal(kind) else pa.array(map(float, values), kind)
    for reader in READERS:
        expected = one_by_one(reader, [number_text(value) for value in values[: len(thousandths)]])
        assert codes(reader, column)[: len(thousandths)] == expected


def test_what_is_remembered_between_batches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_CACHED", 10)
    reader = ColumnReader("x", READERS[2])
    for start in range(0, 100, 7):
        texts = [f"x{number}" for number in range(start, start + 7)]
        assert reader.codes(pa.array([*texts, "43"])).tolist() == [code_of(Reason.NOT_IN_CODEBOOK)] * 7 + [0]
        assert len(reader._known) <= 10  # pyright: ignore[reportPrivateUsage]


ALL_TYPES = [
    *(*INTEGER_TYPES, *DECIMAL_TYPES, *TEXT_TYPES, pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")),
    *(pa.duration("s"), pa.month_day_nano_interval(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)),
    *(pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 2), pa.list_view(pa.int8())),
    *(pa.struct([("x", pa.int8())]), pa.map_(pa.string(), pa.int8()), pa.uuid(), pa.json_()),
    pa.run_end_encoded(pa.int16(), pa.int32()),
    pa.dictionary(pa.int8(), pa.int64()),
]


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_every_type_there_is_is_read_or_refused_clearly(kind: pa.DataType) -> None:
    """Read means: a column of nothing is missing, and one with a value in it does not fail."""
    column = cast("Any", pa.nulls)(2, kind)
    for reader in READERS:
        try:
            assert codes(reader, column) == [MISSING, MISSING]
        except InputError as error:
            assert "neither a number nor text" in error.what or "not one value a record" in error.what
