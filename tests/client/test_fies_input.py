"""The survey the paper used, as it comes: the filter keeps its 16,685 high-income heads."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from inputs import read, source, survey
from tallyveil.domain import Integers

FIES = next(
    (folder for base in Path(__file__).parents if (folder := base.parent / "shared" / "data" / "fies").is_dir()), None
)


@pytest.mark.skipif(FIES is None, reason="the FIES files of ../shared are not here")
def test_the_filter_keeps_the_papers_records_and_ages() -> None:
    assert FIES is not None
    columns = {"age": "Household Head Age", "sex": "Household Head Sex", "income": "Total Household Income"}
    config = source(FIES / "fies_slim.csv", columns, where="income >= 200000")
    definition = survey(Integers(15, 99), dimensions={"sex": ["Female", "Male"]})
    summary, values, cells = read(config, definition)
    assert (summary.read, summary.accepted, summary.rejected.total()) == (41_544, 16_685, 0)
    assert len(cells) == 16_685
    with (FIES / "fies_high_income_age_hist.csv").open(encoding="utf-8") as file:
        expected = {age: int(count) for age, count in list(csv.reader(file))[1:]}
    assert Counter(values) == Counter(expected)
