"""What a reader makes of a verified release: mean, quantiles, ranges, second columns; from the counts alone.

Not here: the arithmetic (`tests/core/test_derived`, `tests/core/test_second_columns`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from agent_world import SURVEY
from deterministic import Named
from tallyveil.domain import Categories, Integers
from tallyveil.epsilon import to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import for_survey
from tallyveil.release import Participant, Release
from tallyveil.survey import Survey
from tallyveil.tables import Pool
from tallyveil_client.consumer.summary import second_columns, summarise

TRUTH = np.array([40, 0, 300, 900, 2_000, 700, 50, 10])
EPSILON = to_nano(2)
AGES = Integers(20, 27)


def released(mechanism: str, domain: Integers | Categories = AGES, cells: int = 2) -> Release:
    """A release of `TRUTH` in each cell, from one department a cell."""
    survey: Survey = replace(
        SURVEY,
        domain=domain,
        mechanism=mechanism,
        bins=2 if mechanism.startswith("brr") else 1,
        epsilons=(EPSILON,),
        epsilon_floor=EPSILON,
    )
    pools = list[Pool]()
    for cell in range(cells):
        made = for_survey(survey, EPSILON, Named(f"summary {mechanism} {cell}"))
        tally = made.perturb_and_tally(np.repeat(np.arange(TRUTH.size), TRUTH))
        pools.append(Pool(EPSILON, cell, 1, tally.records, tuple(tally.counts.tolist())))
    moment = datetime(2026, 12, 1, tzinfo=UTC)
    return Release(survey, 1, 1, moment, None, (Participant("health", EPSILON),), tuple(pools))


@pytest.mark.parametrize("mechanism", ["grr", "brr", "ss", "oue", "hr", "brr-sealed", "olh", "histogram-laplace"])
def test_mean_quantiles_and_ranges_are_near_the_truth_by_their_own_error(mechanism: str) -> None:
    total, first, _ = summarise(released(mechanism), [("20", "23"), ("24", "27"), ("20", "27")], wide=True)
    assert (total.cell, first.cell) == (None, (("sex", "F"),))
    assert (total.records, first.records) == (8_000, 4_000)
    points = np.arange(20, 28)
    true_mean = float(points @ TRUTH / TRUTH.sum())
    for found, times in ((total, 2), (first, 1)):
        assert found.mean is not None
        assert abs(found.mean.value - true_mean) <= 6 * found.mean.standard_error + 1e-9
        low, high, whole = found.ranges
        assert abs(low.total.value - times * 1_240) <= 6 * low.total.standard_error + 1e-9
        assert low.total.value + high.total.value == pytest.approx(found.records)
        assert (whole.total.value, whole.total.standard_error) == (found.records, 0)
        assert [item.low <= "24" <= item.high for item in found.quantiles][1]


def test_a_disclosed_bin_has_no_error() -> None:
    (total,) = summarise(released("brr"), [("20", "23")])
    assert (total.ranges[0].total.value, total.ranges[0].total.standard_error) == (2 * 1_240, 0)


def test_categories_have_ranges_and_no_mean() -> None:
    (total,) = summarise(released("ss", Categories(tuple("abcdefgh"))), [("c", "e")])
    assert total.mean is None and total.quantiles == ()
    assert abs(total.ranges[0].total.value - 2 * 3_200) < 6 * total.ranges[0].total.standard_error


@pytest.mark.parametrize("ends", [("19", "23"), ("24", "23"), ("x", "y")])
def test_a_range_outside_of_the_domain_is_refused_and_the_domain_is_named(ends: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        summarise(released("grr"), [ends])
    assert "20 to 27" in caught.value.next_step


@pytest.mark.parametrize(
    ("mechanism", "names"), [("grr", ["norm-sub", "em"]), ("oue", ["norm-sub"]), ("hr", ["norm-sub", "em"])]
)
def test_second_columns_stand_beside_the_raw_one(mechanism: str, names: list[str]) -> None:
    release = released(mechanism)
    found = second_columns(release, repeats=20)
    assert [column.name for column in found] == names
    for column in found:
        assert column.values.min() >= 0 and column.values.sum() == pytest.approx(8_000)
        assert (column.standard_error >= 0).all() and column.standard_error.max() > 0
        assert (column.low <= column.values + 1).all() and (column.values <= column.high + 1).all()
    norm_sub = [float(row.norm_sub) for row in release.tables[0].rows]
    assert found[0].values == pytest.approx(norm_sub, abs=1e-6)
