"""What a release holds: every record, estimates that anyone can recompute, what is protected, second columns.

Not here: that it verifies as signed and not otherwise (`test_release`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from releases import AGES, LAX, STRICT, SURVEY, Body, crossed, national, signed
from tallyveil import canonical
from tallyveil.domain import Categories
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import KIND_WITHIN_BIN
from tallyveil.release import Participant, Release
from tallyveil.tables import Pool, build_tables, estimate_pools, six_places, square_root, twelve_places


def test_the_release_holds_every_record_and_every_bin_exactly() -> None:
    table, survey = national().tables[0], national().survey
    assert national().records == table.records == int(AGES.sum()) == 16_685
    assert [item.records for item in table.bins] == np.add.reduceat(AGES, survey.binning.starts).tolist()
    assert [row.value for row in table.rows] == [str(age) for age in range(15, 100)]
    assert len(table.bins) == 16
    assert table.bins[0].to_json() == {"bin": 0, "first": "15", "last": "20", "records": int(AGES[:6].sum())}


@pytest.mark.parametrize("make", [national, crossed])
def test_estimates_of_a_bin_sum_to_its_records_exactly_and_as_published(make: Callable[[], Release]) -> None:
    release = make()
    survey, pools = release.survey, release.pools
    estimates = [estimate_pools(survey, pools)]
    if survey.dimensions:
        estimates += [estimate_pools(survey, [item for item in pools if item.cell == cell]) for cell in (0, 1)]
    for table, estimate in zip(release.tables, estimates, strict=True):
        for total in table.bins:
            rows = [index for index, row in enumerate(table.rows) if row.bin == total.bin]
            assert sum(estimate.exact[index] for index in rows) == total.records
            published = sum((table.rows[index].estimate for index in rows), Decimal(0))
            assert abs(published - total.records) <= Decimal("1e-6")
        for row, exact, variance in zip(table.rows, estimate.exact, estimate.exact_variance, strict=True):
            assert abs(Fraction(row.estimate) - exact) <= Fraction(1, 10**12)
            assert abs(float(row.standard_error) - float(variance) ** 0.5) <= 6e-7
            assert 0 <= row.low <= row.high <= next(item.records for item in table.bins if item.bin == row.bin)


def test_the_published_sums_hold_in_the_largest_domain() -> None:
    """Six places would not do: the rounding errors of a bin would sum to more than 1e-6."""
    for values in (85, 4_096):
        domain = Categories(tuple(f"v{number}" for number in range(values)))
        survey = replace(SURVEY, domain=domain, mechanism="grr", bins=1)
        support = tuple(number * number % 13 for number in range(values))
        table = build_tables(survey, [Pool(LAX, 0, 1, sum(support), support)])[0]
        assert abs(sum((row.estimate for row in table.rows), Decimal(0)) - sum(support)) <= Decimal("1e-6")


def test_a_release_says_what_is_protected_and_what_is_not() -> None:
    body: Body = json.loads(canonical.encode(national().to_json()))
    (guarantee,) = body["guarantees"]
    assert guarantee["kind"] == KIND_WITHIN_BIN
    assert len(guarantee["not_protected"]) == 2
    assert 2 - 1e-5 <= float(guarantee["realised_epsilon"]) <= 2
    assert any("m times the epsilon" in note for note in body["notes"])
    both: Body = json.loads(canonical.encode(crossed().to_json()))
    assert [item["epsilon_nano"] for item in both["guarantees"]] == [STRICT, LAX]


def test_anyone_can_recompute_the_estimates_from_the_published_weights() -> None:
    """With the document alone: (C·T − n·b) / (a − b) in each bin."""
    body: Body = json.loads(signed())["body"]
    (table,) = body["tables"]
    weights = {item["bin_values"]: (item["keep_weight"], item["lie_weight"]) for item in body["parameters"]}
    support = body["pools"][0]["support"]
    for total in table["bins"]:
        rows = [index for index, row in enumerate(table["rows"]) if row["bin"] == total["bin"]]
        a, b = weights[len(rows)]
        n = sum(support[index] for index in rows)
        for index in rows:
            exact = Fraction(support[index] * (a + (len(rows) - 1) * b) - n * b, a - b)
            assert abs(Fraction(table["rows"][index]["estimate"]) - exact) <= Fraction(1, 10**12)


def test_decimals_are_rounded_half_to_even_and_never_minus_zero() -> None:
    assert f"{six_places(Fraction(-1, 10**9)):f}" == "0.000000"
    assert f"{six_places(Fraction(5, 10**7)):f}" == "0.000000"
    assert f"{six_places(Fraction(15, 10**7)):f}" == "0.000002"
    assert f"{six_places(Fraction(-(10**20))):f}" == "-100000000000000000000.000000"
    assert f"{twelve_places(Fraction(-2, 3)):f}" == "-0.666666666667"
    assert f"{square_root(Fraction(2)):.30f}" == "1.414213562373095048801688724210"
    assert square_root(Fraction(0)) == 0


def test_names_and_hashes_in_a_release_have_their_form() -> None:
    release = national()
    for change in (
        {"previous": "\x9b2J"},
        {"previous": "AB" * 32},
        {"revision": 2**31},
        {"participants": (Participant("a\u202eb", LAX),)},
    ):
        with pytest.raises(ConfigurationError):
            replace(release, **change)


@pytest.mark.parametrize("make", [national, crossed])
def test_the_second_column_is_never_negative_sums_to_n_and_leaves_the_raw_one_alone(
    make: Callable[[], Release],
) -> None:
    release = make()
    for table in release.tables:
        assert min(row.norm_sub for row in table.rows) >= 0
        for item in table.bins:
            inside = [row.norm_sub for row in table.rows if row.bin == item.bin]
            assert abs(sum(inside, Decimal(0)) - item.records) < Decimal("1e-6")
    first = release.tables[0]
    estimate = estimate_pools(release.survey, release.pools)
    assert [row.estimate for row in first.rows] == [twelve_places(value) for value in estimate.exact]
    assert min(row.estimate for row in first.rows) < 0


def test_a_release_says_what_its_smallest_histogram_adds_and_which_n_it_used() -> None:
    national_body: Body = national().to_json()
    crossed_body: Body = crossed().to_json()
    guarantee = national_body["guarantees"][0]
    smallest = min(item.records for item in national().tables[0].bins)
    assert guarantee["histogram"]["records"] == smallest
    assert guarantee["histogram"]["epsilon_nano"] <= LAX
    assert "within a bin" in guarantee["histogram"]["text"] or "Nothing is gained" in guarantee["histogram"]["text"]
    strict, lax = crossed_body["guarantees"]
    assert (strict["histogram"]["records"], lax["histogram"]["records"]) == (
        crossed().pools[0].records,
        crossed().pools[1].records,  # the empty cell holds nobody
    )
    assert lax["histogram"]["epsilon_nano"] < LAX // 2 and lax["histogram"]["delta_one_in"] == 10**6
