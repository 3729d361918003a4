"""Domains, binnings, epsilon, moments and canonical JSON: every value reads back as it was, and nothing else is read.

Not here: the survey that holds them (`test_survey`).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallyveil import canonical
from tallyveil.binning import Binning
from tallyveil.domain import MAX_VALUES, Categories, Domain, Integers, Intervals, domain_from_json, parse_domain
from tallyveil.epsilon import HIGHEST, LOWEST, NANO, checked_nano, epsilon_text, to_nano
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.fields import Fields
from tallyveil.moments import moment_text, parse_moment

AGES = Integers(15, 99)
STEPS = Integers(-10, 100, 5)
CODES = Categories(("0", "00", "01", "合计", "O'Neil; --"))
INCOMES = Intervals(("-0.5", "0", "1000", "5000.25"))


@pytest.mark.parametrize(
    ("domain", "size", "first", "last"),
    [
        (AGES, 85, "15", "99"),
        (STEPS, 23, "-10", "100"),
        (CODES, 5, "0", "O'Neil; --"),
        (INCOMES, 3, "[-0.5, 0)", "[1000, 5000.25)"),
        (Integers(0, MAX_VALUES - 1), MAX_VALUES, "0", "65535"),
        (Integers(-(2**63) + 1, 2**63 - 1, 2**63 - 1), 3, str(-(2**63) + 1), str(2**63 - 1)),
    ],
)
def test_a_domain_lists_its_values_in_order_and_reads_back(domain: Domain, size: int, first: str, last: str) -> None:
    assert domain.size == len(domain.labels) == len(set(domain.labels)) == size
    assert (domain.labels[0], domain.labels[-1]) == (first, last)
    assert domain_from_json(canonical.decode(canonical.encode(domain.to_json()))) == domain


@pytest.mark.parametrize(
    ("domain", "value", "index"),
    [
        (AGES, 15, 0),
        (AGES, 99, 84),
        (AGES, 14, None),
        (AGES, 100, None),
        (AGES, "43", None),
        (AGES, 2**70, None),
        (STEPS, -10, 0),
        (STEPS, 95, 21),
        (STEPS, 96, None),
        (CODES, "00", 1),
        (CODES, "0", 0),
        (CODES, "合计", 3),
        (CODES, "000", None),
        (CODES, 0, None),
        (INCOMES, Decimal("-0.5"), 0),
        (INCOMES, Decimal("-0.500001"), None),
        (INCOMES, 0, 1),
        (INCOMES, Decimal("999.999999999999999999999"), 1),
        (INCOMES, 1000, 2),
        (INCOMES, Decimal("5000.25"), None),
        (INCOMES, "0", None),
        (INCOMES, Decimal("nan"), None),
        (INCOMES, Decimal("snan"), None),
        (INCOMES, Decimal("inf"), None),
    ],
)
def test_a_value_has_the_index_of_its_place_or_none(domain: Domain, value: Any, index: int | None) -> None:
    assert domain.index(value) == index


def test_every_label_of_a_domain_has_its_own_index() -> None:
    assert [AGES.index(int(label)) for label in AGES.labels] == list(range(85))
    assert [STEPS.index(int(label)) for label in STEPS.labels] == list(range(23))
    assert [CODES.index(label) for label in CODES.labels] == list(range(5))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Integers(15, 15),
        lambda: Integers(99, 15),
        lambda: Integers(15, 99, 0),
        lambda: Integers(15, 99, -1),
        lambda: Integers(15, 99, 5),
        lambda: Integers(0, MAX_VALUES),
        lambda: Integers(0, 2**63, 2**63),
        lambda: Categories(()),
        lambda: Categories(("a",)),
        lambda: Categories(("a", "a")),
        lambda: Categories(("a", "")),
        lambda: Categories(("a", " b")),
        lambda: Categories(("a", "b\n")),
        lambda: Categories(("a", "b\x1b[31m")),
        lambda: Categories(("a", "b\ud800")),
        lambda: Categories(("a", "b\u202e")),
        lambda: Categories(("a", "b" * 201)),
        lambda: Categories(tuple(map(str, range(MAX_VALUES + 1)))),
        lambda: Intervals(()),
        lambda: Intervals(("1",)),
        lambda: Intervals(("1", "2")),
        lambda: Intervals(("1", "2", "2")),
        lambda: Intervals(("1", "2", "2.0")),
        lambda: Intervals(("3", "2", "1")),
        lambda: Intervals(("1", "two", "3")),
        lambda: Intervals(("1", "nan", "3")),
        lambda: Intervals(("1", "snan", "3")),
        lambda: Intervals(("1", "2", "inf")),
        lambda: Intervals(("1", "2", "3" + "0" * 40)),
    ],
)
def test_a_list_of_values_that_is_no_domain_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.parametrize(
    "material",
    [
        None,
        [],
        "15..99",
        {},
        {"kind": "integers"},
        {"kind": ["integers"]},
        {"kind": "floats", "low": 1, "high": 2, "step": 1},
        {"kind": "integers", "low": 15, "high": 99},
        {"kind": "integers", "low": 15, "high": 99, "step": 1, "unit": "years"},
        {"kind": "integers", "low": "15", "high": 99, "step": 1},
        {"kind": "integers", "low": True, "high": 99, "step": 1},
        {"kind": "integers", "low": 15, "high": 99.0, "step": 1},
        {"kind": "categories", "values": "ab"},
        {"kind": "categories", "values": ["a", 1]},
        {"kind": "categories", "values": ["a", None]},
        {"kind": "intervals", "edges": [0, 1, 2]},
        {"kind": "intervals", "edges": {"0": "1"}},
    ],
)
def test_material_that_is_no_domain_is_refused(material: object) -> None:
    with pytest.raises(ConfigurationError):
        domain_from_json(material)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("15..99", AGES),
        (" 15..99 ", AGES),
        ("-10..100:5", STEPS),
        ("a,b, c", Categories(("a", "b", "c"))),
        ("[0,1000, 5000]", Intervals(("0", "1000", "5000"))),
    ],
)
def test_a_domain_is_read_as_typed(text: str, domain: Domain) -> None:
    assert parse_domain(text) == domain


@pytest.mark.parametrize("text", ["", "15", "15..", "..99", "1.5..2.5", "15..99:x", "[1]", "[]", "a,,b", "a,a"])
def test_a_domain_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_domain(text)


@pytest.mark.parametrize(
    ("values", "bins", "sizes"),
    [
        (85, 1, {85: 1}),
        (85, 4, {22: 1, 21: 3}),
        (85, 8, {11: 5, 10: 3}),
        (85, 16, {6: 5, 5: 11}),
        (85, 32, {3: 21, 2: 11}),
        (85, 41, {3: 3, 2: 38}),
        (1024, 16, {64: 16}),
        (7, 3, {3: 1, 2: 2}),
    ],
)
def test_bins_have_their_golden_sizes(values: int, bins: int, sizes: dict[int, int]) -> None:
    binning = Binning(values, bins)
    assert Counter(binning.sizes.tolist()) == sizes
    assert binning.smallest == min(sizes)


def test_85_values_in_16_bins_fall_as_the_paper_has_them() -> None:
    assert Binning(85, 16).sizes.tolist() == [6, 5, 5, 6, 5, 5, 6, 5, 5, 6, 5, 5, 6, 5, 5, 5]
    assert Binning(85, 16).starts.tolist() == [0, 6, 11, 16, 22, 27, 32, 38, 43, 48, 54, 59, 64, 70, 75, 80]


@given(st.integers(1, 3_000), st.integers(1, 4_000))
@settings(deadline=None)
def test_every_value_goes_to_the_bin_of_the_formula(values: int, requested: int) -> None:
    binning = Binning(values, requested)
    bins = min(values, requested)
    assert binning.bins == bins
    assert binning.bin_of.tolist() == [value * bins // values for value in range(values)]
    assert int(binning.sizes.max()) - binning.smallest <= 1
    assert int(binning.sizes.sum()) == values
    assert binning.bin_of[binning.starts].tolist() == list(range(bins))


@pytest.mark.parametrize(("values", "bins"), [(0, 1), (-1, 1), (5, 0), (5, -3)])
def test_a_binning_of_nothing_is_refused(values: int, bins: int) -> None:
    with pytest.raises(ConfigurationError):
        Binning(values, bins)


def test_a_binning_says_how_many_bins_it_really_made() -> None:
    assert Binning(85, 16).describe() == "16 bins of 5 or 6 values"
    assert Binning(85, 1).describe() == "1 bin of 85 values"
    assert Binning(85, 200).describe() == "85 bins (200 were asked for) of 1 values"
    assert Binning(85, 200).smallest == 1


@pytest.mark.parametrize(
    ("epsilon", "nano"),
    [
        (0.01, 10_000_000),
        (0.1, 100_000_000),
        (1 / 3, 333_333_333),
        (1.0986122886681098, 1_098_612_288),
        (2, 2_000_000_000),
        (16, 16_000_000_000),
        ("0.3", 300_000_000),
        ("1.9999999999", 1_999_999_999),
        ("1." + "9" * 60, 1_999_999_999),
        (Decimal("1." + "9" * 60), 1_999_999_999),
        (Decimal("1e-2"), 10_000_000),
        (np.float64(0.7), 700_000_000),
    ],
)
def test_epsilon_is_cut_down_to_nano_nats(epsilon: Any, nano: int) -> None:
    assert to_nano(epsilon) == nano


@given(st.decimals("0.01", "16", allow_nan=False))
def test_epsilon_never_grows_in_nano_nats(epsilon: Decimal) -> None:
    assert to_nano(epsilon) == to_nano(str(epsilon)) == floor(Fraction(epsilon) * NANO)


@given(st.integers(LOWEST, HIGHEST))
@example(LOWEST)
@example(HIGHEST)
def test_epsilon_reads_back_from_its_text(nano: int) -> None:
    text = epsilon_text(nano)
    assert to_nano(text) == checked_nano(nano) == nano
    assert not text.endswith(".") and "e" not in text.lower()


def test_epsilon_is_written_as_people_write_it() -> None:
    assert [epsilon_text(nano) for nano in (2 * NANO, NANO // 2, 10_000_000, 1)] == ["2", "0.5", "0.01", "0.000000001"]


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-14 * 60, 14 * 60))
@example(datetime(999, 1, 1), 0)
def test_a_moment_reads_back_from_its_text(naive: datetime, offset_min: int) -> None:
    moment = naive.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=offset_min)))
    text = moment_text(moment)
    assert len(text) == 20
    assert parse_moment(text) == moment
    assert parse_moment(text).tzinfo is UTC
    assert moment_text(parse_moment(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-12-01",
        "2026-12-01T00:00:00",
        "2026-12-01T00:00:00+00:00",
        "2026-12-01 00:00:00Z",
        "2026-12-01T00:00:00.0Z",
        "2026-12-01T00:00:00Z\n",
        " 2026-12-01T00:00:00Z",
        "2026-12-01t00:00:00z",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T23:59:60Z",
        "0000-12-01T00:00:00Z",
        "26-12-01T00:00:00Z",
        "２０２６-12-01T00:00:00Z",
    ],
)
def test_a_text_that_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_moment(text)


texts = st.text(st.characters(exclude_categories=["Cs"]))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | texts,
    lambda children: st.lists(children) | st.dictionaries(texts, children),
    max_leaves=30,
)


@given(documents)
def test_a_document_reads_back_from_its_canonical_bytes(document: object) -> None:
    data = canonical.encode(document)
    assert canonical.decode(data) == document
    assert canonical.encode(canonical.decode(data)) == data


@given(documents)
def test_any_other_writing_of_a_document_is_refused(document: object) -> None:
    data = canonical.encode(document)
    writings = {
        json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False),
        json.dumps(document, sort_keys=True, ensure_ascii=False),
        json.dumps(document, sort_keys=True, separators=(",", ":")),
        json.dumps(document, ensure_ascii=False, separators=(",", ":")),
    }
    for writing in writings:
        other = writing.encode()
        if other == data:
            continue
        with pytest.raises(IntegrityError):
            canonical.decode(other)
    for other in (b" " + data, data + b"\n", b"\xef\xbb\xbf" + data, data + data, data[:-1] + b"\x00"):
        with pytest.raises(IntegrityError):
            canonical.decode(other)


@given(st.binary())
def test_any_bytes_are_a_canonical_document_or_an_integrity_error(data: bytes) -> None:
    try:
        document = canonical.decode(data)
    except IntegrityError:
        return
    assert canonical.encode(document) == data


def test_the_canonical_form_is_this_one() -> None:
    document = {"ü": [True, False, None, -1], "a": {"z": 'é"\\\n', "Z": ""}, "😀": 0}
    assert canonical.encode(document) == '{"a":{"Z":"","z":"é\\"\\\\\\n"},"ü":[true,false,null,-1],"😀":0}'.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null ",
        b"1.0",
        b"1e2",
        b"-0",
        b"01",
        b"+1",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'{"a":1.5}',
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"b":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1,}',
        b"[1,2",
        b"'a'",
        b'"\\u0041"',
        b'"\\ud800"',
        b'"\\/"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\t"',
        b"1" * 5_000,
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
    ],
)
def test_bytes_that_are_not_canonical_are_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        canonical.decode(data)


@pytest.mark.parametrize(
    "document", [1.0, float("nan"), {"a": 0.5}, [[[2.0]]], {1: 2}, {"a": b"x"}, {"a": {1, 2}}, (0.5,), object()]
)
def test_what_json_cannot_hold_exactly_is_not_written(document: object) -> None:
    with pytest.raises(TypeError):
        canonical.encode(document)


def test_a_text_that_is_not_unicode_is_not_written() -> None:
    with pytest.raises(UnicodeEncodeError):
        canonical.encode("\ud800")


def test_a_digest_is_bound_to_its_purpose() -> None:
    assert canonical.digest("survey", b"{}") != canonical.digest("release", b"{}")
    assert canonical.digest("survey", b"{}") == sha256(b"tallyveil/survey/1\n{}").hexdigest()


def test_fields_are_all_there_known_and_of_their_types() -> None:
    fields = Fields({"a": 1, "b": "x", "c": [1, 2], "d": ["x"]}, "the thing", ("a", "b", "c", "d"))
    assert (fields.integer("a"), fields.text("b"), fields.integers("c"), fields.texts("d")) == (1, "x", (1, 2), ("x",))
    for read, key in (
        (fields.integer, "b"),
        (fields.text, "a"),
        (fields.integers, "d"),
        (fields.texts, "c"),
        (fields.items, "a"),
    ):
        with pytest.raises(ConfigurationError, match=f"'{key}' of the thing"):
            read(key)
    for material in ({"a": 1}, {"a": 1, "b": 2, "x": 3}, [], None, "a"):
        with pytest.raises(ConfigurationError):
            Fields(material, "the thing", ("a", "b"))


def test_a_boolean_is_no_whole_number() -> None:
    fields = Fields({"a": True, "b": [1, False]}, "the thing", ("a", "b"))
    with pytest.raises(ConfigurationError):
        fields.integer("a")
    with pytest.raises(ConfigurationError):
        fields.integers("b")


def test_a_frozen_domain_is_checked_again_when_it_is_copied() -> None:
    with pytest.raises(ConfigurationError):
        replace(AGES, high=15)
