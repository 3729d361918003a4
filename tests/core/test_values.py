"""Domains, binnings, epsilon and moments: every value reads back as it was, and nothing else is read.

Not here: canonical JSON (`test_canonical`) and the survey that holds them (`test_survey`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
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
from tallyveil.errors import ConfigurationError
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


@pytest.mark.parametrize(
    "text", ["", "15", "15..", "..99", "1.5..2.5", "15..99:", "15..99:x", "[1]", "[]", "a,,b", "a,a"]
)
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


def test_a_frozen_domain_is_checked_again_when_it_is_copied() -> None:
    with pytest.raises(ConfigurationError):
        replace(AGES, high=15)
