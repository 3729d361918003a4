"""Filters: their words, their errors, and records that cannot be compared."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inputs import read, reasons, source
from tallyveil.errors import ConfigurationError
from tallyveil_client.agent.filter import Condition, combine, filter_columns, parse_filter


def test_a_filter_is_a_list_of_conditions() -> None:
    assert parse_filter("income>=200000 and  sex == 'it''s' and x-1 != -2.50 and 年龄 < 5") == (
        Condition("income", ">=", Decimal(200000)),
        Condition("sex", "==", "it's"),
        Condition("x-1", "!=", Decimal("-2.5")),
        Condition("年龄", "<", Decimal(5)),
    )
    assert parse_filter("  ") == ()
    assert filter_columns(parse_filter("a > 1 and b > 1 and a < 9")) == ("a", "b")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("income", 7),
        ("income =", 8),
        ("income = 5", 8),
        ("income >= ", 11),
        ("income >= 'abc", 11),
        ("income >= 5x", 11),
        ("income >= 1e5", 11),
        ("income >= 5 or sex == 'M'", 13),
        ("income >= 5 and", 16),
        ("income >= 5 andsex == 'M'", 13),
        ("5 <= income", 1),
        ("'a' == income", 1),
        ("income >= other", 11),
        ("(income >= 5)", 1),
    ],
)
def test_an_error_shows_its_position(text: str, position: int) -> None:
    with pytest.raises(ConfigurationError, match=f"at character {position}:"):
        parse_filter(text)


@given(st.text())
def test_any_text_parses_or_raises_this_one_error(text: str) -> None:
    with contextlib.suppress(ConfigurationError):
        parse_filter(text)


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["age,income,sex", *rows, ""]), "utf-8")
    return path


COLUMNS = {"age": "age", "income": "income", "sex": "sex"}


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("income >= 200000", [31, 32]),
        ("income > 200000", [32]),
        ("income == 200000.0", [31]),
        ("income != 200000", [30, 32]),
        ("income < 199999.995", [30]),
        ("sex == 'Male'", [30, 32]),
        ("sex != ' Ｍale '", [31]),
        ("income >= 200000 and sex == 'Male'", [32]),
    ],
)
def test_records_that_do_not_meet_it_are_filtered_out(tmp_path: Path, where: str, kept: list[int]) -> None:
    path = write(tmp_path / "a.csv", "30,199999.99,Male", "31,200000,Female", "32,２００００１, Male ")
    summary, values, _ = read(source(path, COLUMNS, where=where))
    assert [int(value) for value in values] == kept
    assert summary.filtered == 3 - len(kept)


def test_a_record_that_cannot_be_compared_is_rejected_and_not_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "30,,Male", "31,NA,Male", "32,many,Male", "33,1e6,Male", "34,5,Male")
    summary, values, _ = read(source(path, COLUMNS, where="income >= 1", missing=("NA",)))
    assert values == ["34"]
    assert summary.rejected == reasons(filter_missing=2, filter_unreadable=2)


def test_a_condition_that_fails_outweighs_one_that_cannot_be_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "30,many,Female", "31,many,Male")
    for where in ("income >= 1 and sex == 'Male'", "sex == 'Male' and income >= 1"):
        summary, _, _ = read(source(path, COLUMNS, where=where))
        assert (summary.filtered, summary.rejected) == (1, reasons(filter_unreadable=1))


def test_a_filtered_record_is_not_judged_by_its_value(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "0,1,Male", "0,9,Male", "30,9,Male")
    summary, values, _ = read(source(path, COLUMNS, where="income > 5"))
    assert (values, summary.filtered, summary.rejected) == (["30"], 1, reasons(out_of_domain=1))


def test_recodes_apply_to_filter_columns_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "30,1,M", "31,1,Male", "32,1,F")
    assert read(source(path, COLUMNS, where="sex == 'Male'", recode={"sex": {"M": "Male"}}))[1] == ["30", "31"]


def test_one_column_may_be_both_value_and_filter(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "30,1,M", "60,1,M", "99,1,M")
    summary, values, _ = read(source(path, where="age > 40 and age < 99"))
    assert (values, summary.filtered) == (["60"], 2)


@given(st.lists(st.tuples(*[st.sampled_from([1, 0, -1, -2])] * 3), min_size=1))
def test_conditions_combine_by_and_of_three_values(records: list[tuple[int, int, int]]) -> None:
    combined = combine([np.array(column) for column in zip(*records, strict=True)]).tolist()
    for outcome, record in zip(combined, records, strict=True):
        unknown = [code for code in record if code < 0]
        assert outcome == (0 if 0 in record else unknown[0] if unknown else 1)
