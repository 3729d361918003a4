"""Tables over the same people that would show more together than each alone stop the agent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_world import SURVEY
from tallyveil.domain import Categories, Integers
from tallyveil.errors import PolicyError
from tallyveil.survey import Dimension, Minimums, Survey
from tallyveil_client.agent.overlap import Shown, require_nested

REGION = Dimension("region", Categories(("north", "south")))


def shown(source: str = "people", filter_text: str = "", **changes: object) -> Shown:
    survey: Survey = replace(SURVEY, **({"minimums": Minimums(bin_values=2)} | changes))  # type: ignore[arg-type]
    return Shown(survey, source, filter_text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (shown(), shown(version=2)),
        (shown(bins=4), shown(bins=8)),
        (shown(bins=8), shown(bins=4)),
        (shown(bins=8), shown(mechanism="grr", bins=1)),
        (shown(dimensions=()), shown()),
        (shown(), shown(dimensions=(*SURVEY.dimensions, REGION))),
        (shown(), shown(source="others", bins=3)),
        (shown(), shown(attribute="income", bins=3)),
        (shown(filter_text="a > 1"), shown(filter_text="a > 1")),
    ],
)
def test_the_same_table_a_part_of_it_and_other_people_are_allowed(old: Shown, new: Shown) -> None:
    require_nested(new, [old])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (shown(bins=41), shown(bins=42), "41 bins of 2 or 3 values where this one has 42 bins of 2 values"),
        (shown(bins=3), shown(bins=4), "bins"),
        (shown(), shown(domain=Integers(15, 97)), "another domain"),
        (shown(), shown(filter_text="income >= 200000"), "another filter"),
        (shown(), shown(dimensions=(REGION,)), "other dimensions"),
        (shown(), shown(dimensions=(Dimension("sex", Categories(("F", "M", "X"))),)), "other dimensions"),
        (shown(bins=8, dimensions=()), shown(bins=4), "other bins and dimensions"),
        (shown(bins=4), shown(bins=8, dimensions=()), "other bins and dimensions"),
    ],
)
def test_a_table_that_gives_exact_counts_by_subtraction_is_refused(old: Shown, new: Shown, words: str) -> None:
    with pytest.raises(PolicyError, match=words) as caught:
        require_nested(new, [shown(source="others"), old])
    assert "ages@1" in caught.value.what and "subtraction" in caught.value.what
