"""Which survey and which round is meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_world import DAY, NOW, SURVEY
from tallyveil.errors import ConfigurationError, PolicyError, RefusedError, UnavailableError
from tallyveil_client.agent.selection import Approved, require_open, round_to_run, select_survey

OTHER = replace(SURVEY, name="incomes")
NEWER = replace(SURVEY, version=2)


def approved(*surveys: object) -> list[Approved]:
    return [Approved(survey, SURVEY.epsilons[0], "") for survey in surveys]  # type: ignore[arg-type]


def test_the_only_survey_needs_no_name() -> None:
    (only,) = approved(SURVEY)
    assert select_survey([only], None) is only


# Names of their own, since hashes follow from the moment and workers must agree on what they run.
@pytest.mark.parametrize(
    "wanted", ["incomes", "incomes@1", OTHER.hash, OTHER.hash[:6]], ids=["name", "label", "hash", "digits"]
)
def test_a_survey_is_meant_by_name_version_or_the_first_digits_of_its_hash(wanted: str) -> None:
    assert select_survey(approved(SURVEY, OTHER, NEWER), wanted).survey == OTHER


@pytest.mark.parametrize("wanted", [None, "ages"])
def test_several_that_could_be_meant_are_listed(wanted: str | None) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select_survey(approved(SURVEY, NEWER), wanted)
    assert "ages@1" in caught.value.next_step and "ages@2" in caught.value.next_step


@pytest.mark.parametrize(
    "wanted",
    ["weights", "ages@3", "ab12", "", OTHER.hash[:5], "*"],
    ids=["name", "label", "other digits", "nothing", "too few digits", "sign"],
)
def test_a_survey_that_is_not_approved_is_refused(wanted: str) -> None:
    with pytest.raises(PolicyError, match="not approved") as caught:
        select_survey(approved(SURVEY, OTHER), wanted)
    assert "tallyveil agent approve" in caught.value.next_step


def test_nothing_approved_is_said_so() -> None:
    with pytest.raises(PolicyError, match="no survey is approved"):
        select_survey([], None)


def test_the_open_round_is_meant_then_a_stored_one_then_the_next() -> None:
    first, second = SURVEY.rounds
    assert round_to_run(SURVEY, NOW, None, ()) == first
    assert round_to_run(SURVEY, NOW + DAY, None, (1,)) == second
    assert round_to_run(SURVEY, NOW + 3 * DAY, None, (1,)) == first
    assert round_to_run(SURVEY, NOW - 3 * DAY, None, ()) == first
    assert round_to_run(SURVEY, NOW + 3 * DAY, None, ()) == second
    assert round_to_run(SURVEY, NOW, 2, ()) == second
    for number in (0, 3, -1):
        with pytest.raises(ConfigurationError, match="rounds are 1 to 2"):
            round_to_run(SURVEY, NOW, number, ())


def test_a_round_is_open_from_its_first_moment_up_to_its_last() -> None:
    window = SURVEY.rounds[0]
    require_open(SURVEY, window, window.opens)
    require_open(SURVEY, window, window.closes - DAY / 86_400)
    with pytest.raises(UnavailableError, match="opens on"):
        require_open(SURVEY, window, window.opens - DAY / 86_400)
    with pytest.raises(RefusedError, match="closed on"):
        require_open(SURVEY, window, window.closes)
    with pytest.raises(RefusedError, match="expired"):
        require_open(SURVEY, window, SURVEY.expires + DAY)
