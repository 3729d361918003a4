"""The fingerprint of a selection of records changes with everything that decides which records are counted."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from agent_world import SURVEY
from tallyveil.errors import IntegrityError
from tallyveil_client.agent.cell_text import NumberFormat
from tallyveil_client.agent.config import CsvConfig, SourceConfig
from tallyveil_client.agent.filter import parse_filter
from tallyveil_client.agent.fingerprint import difference, fingerprint

COLUMNS = {"age": "Age", "sex": "Sex", "income": "Income"}
CSV = SourceConfig("people", "csv", COLUMNS, Path("people.csv"), conditions=parse_filter("income > 5 and sex != 'X'"))
TABLE = SourceConfig("people", "sqlite", COLUMNS, Path("people.db"), table="people")
QUERY = replace(TABLE, table=None, query="select * from people")
SERVER = replace(TABLE, format="postgresql", path=None, uri_file=Path("uri"))


def compared(one: SourceConfig, other: SourceConfig) -> str | None:
    return difference(fingerprint(one, SURVEY), fingerprint(other, SURVEY))


CHANGES: list[tuple[SourceConfig, dict[str, Any], str]] = [
    (TABLE, {"format": "postgresql", "path": None, "uri_file": Path("uri")}, "another format"),
    (CSV, {"path": Path("other.csv")}, "another file or server"),
    (SERVER, {"uri_file": Path("other")}, "another file or server"),
    (TABLE, {"table": "persons"}, "another table of the source"),
    (QUERY, {"query": "select * from people where age <> 30"}, "another query"),
    (CSV, {"csv": CsvConfig(encoding="gb18030")}, "another way of reading the file"),
    (CSV, {"csv": CsvConfig(delimiter=";")}, "another way of reading the file"),
    (CSV, {"csv": CsvConfig(header_row=2)}, "another way of reading the file"),
    (CSV, {"csv": CsvConfig(numbers=NumberFormat(","))}, "another way of reading the file"),
    (CSV, {"csv": CsvConfig(numbers=NumberFormat(".", ","))}, "another way of reading the file"),
    (CSV, {"missing": ("", "99")}, "other missing codes"),
    (CSV, {"conditions": ()}, "another filter"),
    (CSV, {"conditions": parse_filter("income > 6 and sex != 'X'")}, "another filter"),
    (CSV, {"conditions": parse_filter("income > '5' and sex != 'X'")}, "another filter"),
    (CSV, {"conditions": parse_filter("income >= 5 and sex != 'X'")}, "another filter"),
    (CSV, {"columns": COLUMNS | {"income": "Wealth"}}, "another filter"),
    (CSV, {"recode": {"income": {"x": "9"}}}, "another filter"),
    (CSV, {"on_invalid": "reject"}, "another on_invalid"),
    (CSV, {"columns": COLUMNS | {"age": "Age2"}}, "another column"),
    (CSV, {"recode": {"age": {"80+": "80"}}}, "another recode"),
    (TABLE, {"columns": COLUMNS | {"sex": "Gender"}}, "another column or recode of dimension sex"),
    (TABLE, {"recode": {"sex": {"W": "F"}}}, "another column or recode of dimension sex"),
]


@pytest.mark.parametrize(("source", "changes", "words"), CHANGES)
def test_every_setting_that_decides_which_records_are_counted_is_told(
    source: SourceConfig, changes: dict[str, Any], words: str
) -> None:
    assert compared(source, replace(source, **changes)) == words


def test_no_setting_of_a_source_is_forgotten() -> None:
    """A new one has to be put into the fingerprint, and here."""
    covered = {"name", *(name for _, changes, _ in CHANGES for name in changes)}
    assert covered == {field.name for field in fields(SourceConfig)}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "renamed"},
        {"path": Path("people.csv").absolute()},
        {"path": Path("somewhere/../people.csv")},
        {"missing": (" ", "")},
        {"columns": COLUMNS | {"health": "Health"}},
        {"conditions": parse_filter("sex != 'X' and income > 5.0")},
    ],
)
def test_another_spelling_of_the_same_records_is_the_same(changes: dict[str, Any]) -> None:
    assert compared(CSV, replace(CSV, **changes)) is None


def test_a_dimension_that_only_one_survey_has_is_no_difference() -> None:
    without = replace(SURVEY, dimensions=())
    assert difference(fingerprint(TABLE, SURVEY), fingerprint(TABLE, without)) is None


@pytest.mark.parametrize("damaged", ["", "[]", "{", "x"])
def test_what_is_no_fingerprint_is_never_taken_for_the_same(damaged: str) -> None:
    with pytest.raises(IntegrityError):
        difference(damaged, fingerprint(CSV, SURVEY))
