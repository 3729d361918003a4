"""Noise at the department in the agent: once for each cell of the declared product, empty ones too, and n as agreed.

Not here: mechanisms that perturb each record (`test_collect`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from agent_world import SURVEY, make_round, token
from deterministic import Named
from tallyveil.guarantee import ADD_OR_REMOVE, KIND_AT_DEPARTMENT, NEIGHBOURS, REPLACE_ONE
from tallyveil.mechanisms import for_survey
from tallyveil.mechanisms.payload import decode_tally
from tallyveil_client.agent.clear_cells import check_clear_cells
from tallyveil_client.agent.collect import Collected, collect, made_up, seal
from tallyveil_client.agent.encode import Encoded
from tallyveil_client.agent.policy import Collection, guarantee_kind

KEY = make_round().key


def records(values: list[int], cell: int) -> Encoded:
    return Encoded(np.array(values, dtype=np.int64), np.full(len(values), cell), len(values), 0, Counter(), {})


def collected(neighbours: str, pieces: int = 1) -> Collected:
    survey = replace(SURVEY, mechanism="histogram-laplace", bins=1, neighbours=neighbours)
    mechanism = for_survey(survey, survey.epsilons[0], Named("at department"))
    values = [0, 1, 1, 2] * 30
    step = len(values) // pieces
    parts = [records(values[start : start + step], 1) for start in range(0, len(values), step)]
    return collect(parts, survey, mechanism)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_every_cell_is_sent_and_noise_is_added_once_however_the_records_come(neighbours: str) -> None:
    whole, pieces = collected(neighbours), collected(neighbours, pieces=12)
    assert set(whole.tallies) == set(range(SURVEY.cell_count))
    assert whole.tallies == pieces.tallies
    assert all(tally.histograms == 1 for tally in whole.tallies.values())
    assert whole.tallies[0].counts.any()  # an empty cell's noise


@pytest.mark.parametrize(("neighbours", "told"), [(REPLACE_ONE, [0, 120]), (ADD_OR_REMOVE, [0, 0])])
def test_batches_tell_n_only_as_agreed_and_read_back_as_what_was_drawn(neighbours: str, told: list[int]) -> None:
    survey = replace(SURVEY, mechanism="histogram-laplace", bins=1, neighbours=neighbours)
    law = for_survey(survey, survey.epsilons[0]).law
    found = collected(neighbours)
    batches = seal(found, law, KEY, lambda: token(object()))
    assert [batch.records for batch in batches] == told
    assert [decode_tally(law, batch.records, batch.payload) for batch in batches] == [
        found.tallies[cell] for cell in range(SURVEY.cell_count)
    ]


def test_a_small_cell_stops_the_agent_only_where_its_size_is_told() -> None:
    limits = Collection("people", "age", "people", SURVEY.epsilons[0], min_clear_cell=1_000)
    hidden = replace(SURVEY, mechanism="histogram-laplace", bins=1, neighbours=ADD_OR_REMOVE)
    counts = collected(ADD_OR_REMOVE).clear_counts
    check_clear_cells(limits, hidden, counts)
    with pytest.raises(Exception, match="min_clear_cell"):
        check_clear_cells(limits, replace(hidden, neighbours=REPLACE_ONE), counts)


def test_a_preview_is_of_made_up_values_in_every_cell() -> None:
    survey = replace(SURVEY, mechanism="histogram-laplace", bins=1)
    tallies = made_up(survey, for_survey(survey, survey.epsilons[0], Named("made up")), {1: 5_000})
    assert set(tallies) == set(range(survey.cell_count))
    assert np.abs(tallies[1].counts - 5_000 / survey.domain.size).max() < 200
    assert guarantee_kind(survey) == KIND_AT_DEPARTMENT
