"""Tables over the same people that would show more together than each alone stop the agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_world import SURVEY
from tallyveil.domain import Categories, Integers
from tallyveil.errors import PolicyError
from tallyveil.survey import Dimension, Minimums, Survey
from tallyveil_client.agent.clear_cells import Counts
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.filter import parse_filter
from tallyveil_client.agent.fingerprint import fingerprint
from tallyveil_client.agent.overlap import Shown, overlaps, require_nested

REGION = Dimension("region", Categories(("north", "south")))
COLUMNS = {"age": "Age", "sex": "Sex", "region": "Region", "income": "Income", "years": "Age"}
SOURCE = SourceConfig("people", "csv", COLUMNS, Path("people.csv"))


def shown(
    filter_text: str = "",
    *,
    account: str = "people",
    counts: Counts | None = None,
    source: dict[str, Any] | None = None,
    **changes: Any,
) -> Shown:
    survey: Survey = replace(SURVEY, **({"minimums": Minimums(bin_values=2)} | changes))
    records = replace(SOURCE, conditions=parse_filter(filter_text), **(source or {}))
    return Shown(survey, account, fingerprint(records, survey), counts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (shown(), shown(version=2)),
        (shown(bins=4), shown(bins=8)),
        (shown(bins=8), shown(bins=4)),
        (shown(bins=8), shown(mechanism="grr", bins=1)),
        (shown(dimensions=()), shown()),
        (shown(), shown(dimensions=(*SURVEY.dimensions, REGION))),
        (shown(), shown(account="others", bins=3)),
        (shown(), shown(attribute="income", bins=3)),
        (shown("sex == 'F'"), shown("sex == 'F'")),
        (shown(bins=41), shown(bins=42, mechanism="brr-sealed")),
        (shown(), shown(source={"name": "renamed"})),
        (shown(), shown(source={"path": Path("people-2027.csv")})),  # the next round of the same survey
        (shown(), shown(source={"columns": COLUMNS | {"health": "Health"}})),
    ],
)
def test_the_same_table_a_part_of_it_and_other_people_are_allowed(old: Shown, new: Shown) -> None:
    require_nested(new, [old])


SEX_WITH_X = (Dimension("sex", Categories(("F", "M", "X"))),)
REFUSED = [
    (shown(bins=41), shown(bins=42), "41 bins of 2 or 3 values where this one has 42 bins of 2 values"),
    (shown(bins=3), shown(bins=4), "bins"),
    (shown(), shown(domain=Integers(15, 97)), "another domain"),
    (shown(), shown("income >= 200000"), "another filter"),
    (shown(), shown(dimensions=(REGION,)), "other dimensions"),
    (shown(), shown(dimensions=SEX_WITH_X), "other dimensions"),
    (shown(bins=8, dimensions=()), shown(bins=4), "other bins and dimensions"),
    (shown(bins=4), shown(bins=8, dimensions=()), "other bins and dimensions"),
    (shown(bins=3), shown(bins=4, source={"name": "renamed"}), "3 bins of 28 values"),
    (shown(bins=3), shown(bins=4, attribute="years"), "3 bins of 28 values"),
    (shown(), shown(version=2, source={"path": Path("copy.csv")}), "another file or server"),
    (shown(), shown(source={"missing": ("", "33")}), "other missing codes"),
    (shown(), shown(source={"recode": {"sex": {"W": "F"}}}), "another column or recode of dimension sex"),
]


@pytest.mark.parametrize(("old", "new", "words"), REFUSED)
def test_a_table_that_gives_exact_counts_by_subtraction_is_refused(old: Shown, new: Shown, words: str) -> None:
    with pytest.raises(PolicyError, match=words) as caught:
        require_nested(new, [shown(account="others"), old])
    assert "ages@1" in caught.value.what and "subtraction" in caught.value.what
    assert "allow_overlap" in caught.value.next_step


@pytest.mark.parametrize(("old", "new", "words"), REFUSED)
def test_a_policy_that_allows_it_by_name_lets_it_go_and_it_is_still_told(old: Shown, new: Shown, words: str) -> None:
    require_nested(new, [old], "the minister asked")
    (found,) = overlaps(new, [old])
    assert words in found.difference
    assert "the minister asked" in found.describe("the minister asked")


def test_the_smallest_cell_of_the_common_refinement_is_named() -> None:
    (found,) = overlaps(shown(bins=42), [shown(bins=41)])
    assert found.smallest == "age from 17 to 17 (1 of 84 values) in one cell of sex"
    (unknown,) = overlaps(shown("income > 3"), [shown()])
    assert unknown.smallest == "a group that may be a single record"


REJECT = {"on_invalid": "reject"}
BINS = range(4)
WITHOUT_SEX = {(0, number): 20 for number in BINS}
BY_SEX = {(cell, number): 10 for cell in range(2) for number in BINS}
ONE_FEWER = BY_SEX | {(1, 2): 9}


@pytest.mark.parametrize("turned", [False, True])
def test_nested_tables_that_accepted_other_records_give_the_rejected_ones_and_are_refused(turned: bool) -> None:
    """A record without a sex is in the table without sexes only."""

    def pair(counts: Counts, source: dict[str, Any]) -> tuple[Shown, Shown]:
        two = shown(dimensions=(), counts=WITHOUT_SEX, source=source), shown(counts=counts, source=source)
        return (two[1], two[0]) if turned else two

    new, old = pair(ONE_FEWER, REJECT)
    with pytest.raises(PolicyError, match="other records accepted") as caught:
        require_nested(new, [old])
    assert not any(number in str(caught.value) for number in ("9", "10", "20", "19"))
    new, old = pair(BY_SEX, REJECT)
    require_nested(new, [old])
    new, old = pair(ONE_FEWER, {})  # no record is ever left out: they are other records than before
    require_nested(new, [old])


def test_the_counts_of_a_table_with_finer_bins_and_more_dimensions_are_added_up() -> None:
    dimensions = (REGION, *SURVEY.dimensions)
    fine = {(cell, number): 5 for cell in range(4) for number in range(8)}
    coarse = {(cell, number): 20 for cell in range(2) for number in BINS}
    new = shown(bins=8, dimensions=dimensions, counts=fine, source=REJECT)
    require_nested(new, [shown(counts=coarse, source=REJECT)])
    with pytest.raises(PolicyError, match="other records accepted"):
        require_nested(new, [shown(counts=coarse | {(0, 0): 21}, source=REJECT)])
    hidden = shown(mechanism="grr", bins=1, counts={(0, 0): 80, (1, 0): 80}, source=REJECT)
    require_nested(new, [hidden])


def test_nothing_of_a_table_is_in_its_repr() -> None:
    assert "987654" not in repr(shown(counts={(0, 0): 987654}))
