"""Clear cells with few records stop the agent and a coarser table is proposed that would not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inputs import survey
from tallyveil.binning import Binning
from tallyveil.domain import Categories, Integers
from tallyveil.epsilon import to_nano
from tallyveil.errors import PolicyError
from tallyveil.survey import Survey
from tallyveil_client.agent.clear_cells import check_clear_cells
from tallyveil_client.agent.policy import Collection

LIMITS = Collection("households", "age", "heads", to_nano(2))
SEXES = {"sex": ["F", "M"]}
Counts = dict[tuple[int, int], int]


def brr(bins: int, dimensions: dict[str, list[str]] | None = None) -> Survey:
    return survey(Integers(15, 98), mechanism="brr", bins=bins, dimensions=dimensions)


def refusal(definition: Survey, counts: Counts) -> str:
    with pytest.raises(PolicyError) as caught:
        check_clear_cells(LIMITS, definition, counts)
    return str(caught.value)


def test_empty_and_large_cells_pass() -> None:
    check_clear_cells(LIMITS, brr(4, SEXES), {})
    check_clear_cells(LIMITS, brr(4, SEXES), {(0, 0): 10, (0, 1): 0, (1, 3): 10_000})
    check_clear_cells(LIMITS, survey(dimensions=SEXES), {(0, 0): 10})


def test_the_smallest_is_named_by_its_values_and_its_bin_without_its_count() -> None:
    text = refusal(brr(4, SEXES), {(0, 0): 100, (0, 1): 9, (1, 2): 7, (1, 1): 100})
    assert "2 clear cells hold fewer records than the policy's min_clear_cell of 10" in text
    assert "sex = M, age from 57 to 77 (bin 3 of 4)" in text
    assert "nothing was charged or sent" in text
    assert "7" not in text.replace("57", "").replace("77", "")


def test_without_bins_only_dimensions_are_clear() -> None:
    for definition in (survey(dimensions=SEXES), survey(mechanism="brr", bins=1, dimensions=SEXES)):
        check_clear_cells(LIMITS, definition, {(0, bin_number): 4 for bin_number in range(3)})
        text = refusal(definition, {(0, 0): 100, (1, 0): 3})
        assert "the smallest is sex = M;" not in text
        assert "the smallest is sex = M." in text
        assert "without dimension sex" in text


def test_without_dimensions_the_whole_table_is_one_cell() -> None:
    text = refusal(survey(), {(0, 0): 9})
    assert "the smallest is the whole table" in text
    assert "no coarser table helps" in text


def test_categories_are_named_in_order() -> None:
    domain = Categories(tuple("abcdefgh"))
    assert "age from c to d" in refusal(survey(domain, mechanism="brr", bins=4), {(0, 1): 1})


@pytest.mark.parametrize(
    ("counts", "proposal"),
    [
        ({(0, 0): 5, (0, 1): 5, (1, 0): 20}, "a coarser table: 6 bins."),
        ({(0, 0): 5, (0, 11): 5, (1, 0): 20}, "a coarser table: 1 bin."),
        ({(0, 0): 5, (1, 0): 5}, "a coarser table: without dimension sex."),
        ({(0, 0): 5, (1, 1): 5}, "a coarser table: 6 bins without dimension sex."),
        ({(0, 0): 4, (1, 0): 5}, "no coarser table helps"),
    ],
)
def test_the_least_coarsening_that_helps_is_proposed(counts: Counts, proposal: str) -> None:
    assert proposal in refusal(brr(12, SEXES), counts)


def test_dropping_several_dimensions_is_proposed_last() -> None:
    definition = survey(dimensions={"sex": ["F", "M"], "region": ["a", "b"]})
    assert "without dimension region." in refusal(definition, {(0, 0): 5, (1, 0): 5, (2, 0): 20})
    assert "without dimensions." in refusal(definition, {(0, 0): 5, (3, 0): 5})


def test_a_lowered_limit_is_the_one_that_holds() -> None:
    low = Collection("h", "age", "a", to_nano(2), min_clear_cell=3, min_clear_cell_reason="decided")
    check_clear_cells(low, brr(4), {(0, 0): 3})
    with pytest.raises(PolicyError, match="min_clear_cell of 3"):
        check_clear_cells(low, brr(4), {(0, 0): 2})


@given(
    st.integers(2, 30),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 83)), min_size=10, max_size=300),
)
def test_the_proposed_table_would_have_been_let_through(bins: int, records: list[tuple[int, int]]) -> None:
    dimensions = {"sex": ["F", "M"], "region": ["a", "b"]}
    definition = brr(bins, dimensions)

    def counts(bins: int, cells: list[int]) -> Counts:
        bin_of = Binning(84, bins).bin_of
        keys = [(cells[cell], int(bin_of[value])) for cell, value in records]
        return {key: keys.count(key) for key in keys}

    try:
        check_clear_cells(LIMITS, definition, counts(bins, [0, 1, 2, 3]))
    except PolicyError as error:
        found = re.search(r"coarser table: (?:(\d+) bins? ?)?(?:without dimensions?( \w+)?)?", str(error))
        assert found is not None
        dropped = found.group(0).rpartition("without ")[2] if "without" in found.group(0) else ""
        cells = {"": [0, 1, 2, 3], "dimension sex": [0, 1, 0, 1], "dimension region": [0, 0, 1, 1]}.get(
            dropped, [0] * 4
        )
        coarser = counts(int(found.group(1) or bins), cells)
        assert min(coarser.values()) >= 10
        assert sum(coarser.values()) == len(records) == int(np.sum(list(coarser.values())))
