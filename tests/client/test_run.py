"""One round from the records to an aggregator in memory: what is charged, stored and sent, and what is not."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from agent_world import DAY, KEY, NOW, SURVEY, Home, MemoryAggregator, aids_for, even_rows, with_bins
from deterministic import Named
from tallyveil.batch import SubmissionKey
from tallyveil.epsilon import NANO, NanoEpsilon, to_nano
from tallyveil.errors import (
    ConfigurationError,
    InputError,
    IntegrityError,
    PolicyError,
    RefusedError,
    TallyveilError,
    UnavailableError,
)
from tallyveil.moments import moment_text
from tallyveil.randomness import public_token
from tallyveil.signing import SigningKey
from tallyveil.survey import Survey, sign_survey
from tallyveil_client.agent.department import Department, open_department
from tallyveil_client.agent.encode import Encoded
from tallyveil_client.agent.run import Aids, Outcome, run_round
from tallyveil_client.agent.store import AlreadyStoredError, Approval


def approve(department: Department, survey: Survey = SURVEY, epsilon: NanoEpsilon | None = None) -> None:
    chosen = epsilon or survey.epsilons[0]
    department.store.approve(Approval(survey.hash, sign_survey(survey, KEY), chosen, moment_text(NOW)))


def run(department: Department, aids: Aids, survey: Survey = SURVEY, number: int = 1) -> Outcome:
    (item,) = [item for item in department.approved() if item.survey == survey]
    return run_round(department, item, survey.rounds[number - 1], None, aids)


def untouched(department: Department) -> bool:
    return department.store.submissions() == () and department.store.ledger().charges == ()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path).prepare()


@pytest.fixture
def department(home: Home) -> Generator[Department]:
    with open_department(home.config) as opened:
        approve(opened)
        yield opened


def test_a_round_is_charged_once_sent_whole_and_then_done(department: Department) -> None:
    aggregator = MemoryAggregator()
    aids = aids_for(department, aggregator)
    first, again = run(department, aids), run(department, aids)
    assert (first.was_complete, first.resumed, again.was_complete) == (False, False, True)
    assert aggregator.complete and aggregator.counts.tolist() == [168, 168]
    assert first.submission.complete and first.submission.acknowledged == first.submission.batches == 2
    (charge,) = department.store.ledger().charges
    assert (charge.account, charge.charged, charge.survey, charge.round) == ("people", 2 * NANO, "ages@1", 1)
    assert first.summary is not None and first.summary.accepted == 336


def test_the_same_coins_and_identifiers_send_the_same_bytes(tmp_path: Path) -> None:
    held = list[object]()
    for place in ("one", "two"):
        with open_department(Home(tmp_path / place).prepare().config) as department:
            approve(department)
            aggregator = MemoryAggregator()
            run(department, aids_for(department, aggregator, Named("coins")))
            held.append(aggregator.held)
    assert held[0] == held[1]


def test_a_person_of_several_rows_costs_more(tmp_path: Path) -> None:
    with open_department(Home(tmp_path).prepare(max_rows=2).config) as department:
        approve(department)
        run(department, aids_for(department, MemoryAggregator()))
        assert department.store.ledger().spent("people") == 4 * NANO
        with pytest.raises(PolicyError, match="has 0 of 4 left, and this would charge 4"):
            run(department, replace(aids_for(department, MemoryAggregator()), now=lambda: NOW + DAY), number=2)


def test_what_was_stored_and_not_sent_is_sent_by_the_next_run_without_reading_anything(department: Department) -> None:
    aggregator = MemoryAggregator()
    aids = aids_for(department, aggregator)

    def cut(_: SubmissionKey) -> None:
        raise UnavailableError("gone")

    def no_records(*_: object) -> Generator[Encoded]:
        raise AssertionError("read again")

    with pytest.raises(UnavailableError):
        run(department, replace(aids, deliver=cut))
    (stored,) = department.store.submissions()
    payloads = department.store.outgoing(stored.key.submission_id)
    late = replace(aids, read=no_records, now=lambda: NOW + 30 * DAY)
    outcome = run(department, late)
    assert outcome.resumed and outcome.submission.complete
    assert list(aggregator.held.values()) == [item.batch for item in payloads]
    assert len(department.store.ledger().charges) == 1


def test_a_refusal_before_the_charge_leaves_nothing_and_the_next_run_announces_the_same_identifier(
    department: Department,
) -> None:
    asked = list[SubmissionKey]()

    def refuse(key: SubmissionKey) -> bool:
        asked.append(key)
        raise RefusedError("the round is closed")

    aids = aids_for(department, MemoryAggregator())
    for _ in range(2):
        with pytest.raises(RefusedError):
            run(department, replace(aids, announce=refuse))
        assert untouched(department)
    assert asked[0] == asked[1]
    assert run(department, aids).submission.key == asked[0]


def test_an_aggregator_that_says_it_holds_what_was_never_stored_is_not_believed_on_its_word(
    department: Department,
) -> None:
    def holds(_: SubmissionKey) -> bool:
        return True

    with pytest.raises(IntegrityError, match="mistaken or lying, or this store is an older copy") as caught:
        run(department, replace(aids_for(department, MemoryAggregator()), announce=holds))
    assert untouched(department)
    assert "aggregator's operator" in caught.value.next_step
    assert "put" not in caught.value.next_step and "back" not in caught.value.next_step


def test_a_lower_epsilon_may_be_approved_after_an_announcement_that_charged_nothing(tmp_path: Path) -> None:
    high, low = to_nano(2), to_nano(1)
    several = replace(SURVEY, epsilons=(low, high))

    def unreachable(_: SubmissionKey) -> bool:
        raise UnavailableError("gone")

    with open_department(Home(tmp_path).prepare(survey=several).config) as department:
        aids = aids_for(department, MemoryAggregator())
        approve(department, several, high)
        with pytest.raises(UnavailableError):
            run(department, replace(aids, announce=unreachable), several)
        approve(department, several, low)
        assert run(department, aids, several).submission.key.epsilon == low
        assert department.store.ledger().spent("people") == NANO
        with pytest.raises(PolicyError, match="charged at epsilon 1"):
            approve(department, several, high)


def test_another_epsilon_approved_while_a_run_is_at_work_stops_it(tmp_path: Path) -> None:
    several = replace(SURVEY, epsilons=(to_nano(1), to_nano(2)))
    with open_department(Home(tmp_path).prepare(survey=several).config) as department:
        aids = aids_for(department, MemoryAggregator())
        approve(department, several, to_nano(2))

        def meanwhile(_: SubmissionKey) -> bool:
            approve(department, several, to_nano(1))
            return False

        with pytest.raises(PolicyError, match="approved at epsilon 1 while"):
            run(department, replace(aids, announce=meanwhile), several)
        assert untouched(department)


def test_nothing_is_sent_before_the_mark_beside_the_store_is_written(home: Home, department: Department) -> None:
    """An older copy of the store would otherwise not be noticed, and its budget could be spent a second time."""
    aggregator = MemoryAggregator()
    blocked = home.store.with_name(home.store.name + ".head.new")
    blocked.mkdir()
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"head cannot be used"):
            run(department, aids_for(department, aggregator))
        assert aggregator.held == {}
        assert len(department.store.ledger().charges) == 1
    with pytest.raises(ConfigurationError), open_department(home.config):
        pass
    blocked.rmdir()
    with open_department(home.config) as again:
        assert run(again, aids_for(again, aggregator)).resumed
        assert len(again.store.ledger().charges) == 1
    assert aggregator.complete


def test_a_faster_run_at_the_same_time_is_told_from_an_older_copy(department: Department) -> None:
    aggregator = MemoryAggregator()

    def meanwhile(key: SubmissionKey) -> bool:
        run(department, aids_for(department, aggregator))
        return True

    with pytest.raises(AlreadyStoredError):
        run(department, replace(aids_for(department, aggregator), announce=meanwhile))
    assert len(department.store.ledger().charges) == 1


def failing(department: Department, aids: Aids) -> TallyveilError:
    """The error of a run that charges, stores and sends nothing, and does not ask the aggregator."""

    def silent(*_: object) -> bool:
        raise AssertionError("asked or sent")

    with pytest.raises(TallyveilError) as caught:
        run(department, replace(aids, announce=silent, deliver=silent))  # type: ignore[arg-type]
    assert untouched(department)
    assert "nothing was" in caught.value.not_done and caught.value.next_step
    return caught.value


@pytest.mark.parametrize(
    ("moment", "kind"),
    [(NOW + 2 * DAY, RefusedError), (NOW - 2 * DAY, UnavailableError), (NOW + 9 * DAY, RefusedError)],
)
def test_a_round_that_is_not_open_by_the_clock_is_not_begun(
    department: Department, moment: datetime, kind: type[TallyveilError]
) -> None:
    aids = replace(aids_for(department, MemoryAggregator()), now=lambda: moment)
    assert isinstance(failing(department, aids), kind)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("14", "F"), "out-of-domain: 1 (first: record 337)"),
        (("x", "F"), "not-a-number: 1"),
        (("", "F"), "missing: 1"),
        (("20", "X"), "dimension-not-in-codebook: 1"),
    ],
)
def test_one_bad_record_at_the_very_end_stops_everything(
    home: Home, department: Department, row: tuple[str, str], words: str
) -> None:
    home.write_rows([*even_rows(2), row])
    error = failing(department, aids_for(department, MemoryAggregator()))
    assert isinstance(error, InputError) and words in error.what


def test_a_small_clear_cell_stops_everything(home: Home, department: Department) -> None:
    home.write_rows([row for row in even_rows(2) if row[1] == "M" or int(row[0]) < 19])
    error = failing(department, aids_for(department, MemoryAggregator()))
    assert isinstance(error, PolicyError) and "sex = F" in error.what and "min_clear_cell of 10" in error.what


def test_a_table_that_does_not_nest_in_an_earlier_one_stops_everything(department: Department) -> None:
    run(department, aids_for(department, MemoryAggregator()))
    other = with_bins(3)
    approve(department, other)
    with pytest.raises(PolicyError, match="subtraction"):
        run(department, aids_for(department, MemoryAggregator()), other)
    assert len(department.store.ledger().charges) == 1
    nested = with_bins(8)
    approve(department, nested)
    run(department, aids_for(department, MemoryAggregator()), nested)


def test_another_filter_over_the_same_people_stops_everything(home: Home, department: Department) -> None:
    run(department, aids_for(department, MemoryAggregator()))
    home.prepare(config='filter = "age >= 16"')
    with open_department(home.config) as changed, pytest.raises(PolicyError, match="another filter"):
        run(changed, replace(aids_for(changed, MemoryAggregator()), now=lambda: NOW + DAY), number=2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('missing = ["", "33"]', "other missing codes"),
        ("[sources.people.recode.age]\n33 = '34'", "another recode"),
        ('on_invalid = "reject"', "another on_invalid"),
        ('encoding = "utf-8"', "another way of reading"),
    ],
)
def test_another_selection_of_the_same_people_stops_everything(
    home: Home, department: Department, line: str, words: str
) -> None:
    run(department, aids_for(department, MemoryAggregator()))
    home.prepare(config=line)
    with open_department(home.config) as changed, pytest.raises(PolicyError, match=words):
        run(changed, replace(aids_for(changed, MemoryAggregator()), now=lambda: NOW + DAY), number=2)
    assert len(department.store.ledger().charges) == 1


def test_a_source_under_another_name_is_the_same_people(home: Home, department: Department) -> None:
    run(department, aids_for(department, MemoryAggregator()))
    other = with_bins(3)
    approve(department, other)
    for file in (home.config, home.folder / "policy.toml"):
        file.write_text(file.read_text().replace("sources.people", "sources.again").replace('"people"', '"again"', 1))
    policy = home.folder / "policy.toml"
    policy.write_text(
        policy.read_text().replace('name = "again"', 'name = "people"').replace('source = "people"', 'source = "again"')
    )
    with open_department(home.config) as changed, pytest.raises(PolicyError, match="4 bins of 21 values"):
        run(changed, aids_for(changed, MemoryAggregator()), other)


def test_of_two_overlapping_surveys_that_run_at_once_one_goes(home: Home, department: Department) -> None:
    home.prepare(total=8 * NANO)
    other = with_bins(3)
    approve(department, other)

    def meanwhile(_: SubmissionKey) -> bool:
        with open_department(home.config) as neighbour:
            run(neighbour, replace(aids_for(neighbour, MemoryAggregator()), token=public_token), other)
        return False

    with open_department(home.config) as slower, pytest.raises(PolicyError, match="subtraction"):
        run(slower, replace(aids_for(slower, MemoryAggregator()), announce=meanwhile))
    assert [item.survey for item in department.store.submissions()] == [f"{other.name}@1"]
    assert len(department.store.ledger().charges) == 1


def test_rejected_records_do_not_follow_from_two_nested_tables(home: Home) -> None:
    home.prepare([*even_rows(2), ("30", "")], config='on_invalid = "reject"', total=8 * NANO)
    without = with_bins(4, dimensions=())
    with open_department(home.config) as department:
        approve(department, without)
        approve(department)
        run(department, aids_for(department, MemoryAggregator()), without)
        second = aids_for(department, MemoryAggregator())

        def silent(_: SubmissionKey) -> bool:
            raise AssertionError("asked")

        with pytest.raises(PolicyError, match="other records accepted"):
            run(department, replace(second, announce=silent))
        assert len(department.store.ledger().charges) == 1
        home.write_rows(even_rows(2))
        with pytest.raises(PolicyError, match="other records accepted"):
            run(department, second)
        home.write_rows([*even_rows(2), ("30", "F")])
        assert run(department, second).submission.complete


def test_an_overlap_that_the_policy_allows_by_name_goes(home: Home, department: Department) -> None:
    run(department, aids_for(department, MemoryAggregator()))
    other = with_bins(3)
    approve(department, other)
    home.prepare(policy='allow_overlap = "the minister asked"')
    with open_department(home.config) as changed:
        assert run(changed, aids_for(changed, MemoryAggregator()), other).submission.complete


def test_a_policy_lowered_after_the_approval_is_obeyed(home: Home, department: Department) -> None:
    home.prepare(policy="max_epsilon = 1")
    with open_department(home.config) as changed:
        error = failing(changed, aids_for(changed, MemoryAggregator()))
    assert isinstance(error, PolicyError) and "max_epsilon of one round is 1, the survey asks for 2" in error.what


def test_an_approval_under_another_authority_no_longer_counts(home: Home, department: Department) -> None:
    (home.folder / "authority.pub").write_bytes(SigningKey.generate().public.to_pem())
    with open_department(home.config) as changed:
        assert changed.approved() == ()
        assert changed.unverified() == (SURVEY.hash,)
