"""Publication: exact sums, one chain, nothing released too early, too thin or twice."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from aggregator_world import (
    DAY,
    EDUCATION,
    HEALTH,
    HIGH,
    LOW,
    NOW,
    SURVEY,
    Upload,
    World,
    batch_of,
    make_key,
    make_upload,
    put,
)
from tallyveil.errors import IntegrityError, TallyveilError
from tallyveil.mechanisms import Tally, for_survey
from tallyveil.release import Participant, VerifiedRelease, check_chain, open_release
from tallyveil.survey import Round
from tallyveil.tables import estimate_pools
from tallyveil_aggregator.publication import AlreadyReleased, PublicationError, publish
from tallyveil_aggregator.rounds import RoundError, close_round, reopen_round, state_of
from tallyveil_aggregator.store import Store

AFTER = SURVEY.rounds[0].closes
FIRST, SECOND = make_upload("health", epsilon=HIGH), make_upload("education", epsilon=LOW, least=20)


@pytest.fixture
def store(world: World) -> Generator[Store]:
    """A store with the world's departments and survey."""
    world.set_up()
    with world.store() as opened:
        yield opened


def release(world: World, store: Store, round_number: int = 1) -> VerifiedRelease:
    """Publish after the round's window."""
    return publish(store, SURVEY, round_number, world.pki.releases, lambda: SURVEY.rounds[round_number - 1].closes)


def test_a_release_holds_what_was_complete_pooled_by_epsilon_and_cell(world: World, store: Store) -> None:
    put(store, "health", FIRST)
    put(store, "education", SECOND)
    made = release(world, store)
    assert made.release.participants == (Participant("education", LOW), Participant("health", HIGH))
    found = [(pool.epsilon, pool.cell, pool.departments, pool.support[0]) for pool in made.release.pools]
    assert found == [(LOW, 0, 1, 20), (LOW, 1, 1, 21), (HIGH, 0, 1, 1), (HIGH, 1, 1, 2)]
    assert made.release.records == FIRST.manifest.records + SECOND.manifest.records
    assert (made.release.revision, made.release.previous) == (1, None)
    assert open_release(made.document, world.pki.releases.public).body == made.body
    with pytest.raises(IntegrityError):
        open_release(made.document, world.pki.surveys.public)


def test_counts_of_departments_with_one_epsilon_are_added_before_they_are_corrected(world: World, store: Store) -> None:
    put(store, "health", FIRST)
    put(store, "education", make_upload("education", epsilon=HIGH, least=20))
    made = release(world, store)
    assert [(pool.departments, pool.support[0]) for pool in made.release.pools] == [(2, 21), (2, 23)]


def test_the_estimates_of_each_bin_sum_to_its_records_exactly(world: World, store: Store) -> None:
    put(store, "health", FIRST)
    put(store, "education", SECOND)
    made = release(world, store)
    exact = estimate_pools(SURVEY, made.release.pools).exact
    support = np.sum([pool.support for pool in made.release.pools], axis=0)
    for start, size in zip(SURVEY.binning.starts, SURVEY.binning.sizes, strict=True):
        within = slice(int(start), int(start + size))
        assert sum(exact[within], Fraction(0)) == int(support[within].sum())


def test_a_single_epsilon_is_corrected_as_the_mechanism_says(world: World, store: Store) -> None:
    put(store, "health", FIRST)
    put(store, "education", make_upload("education", epsilon=HIGH, least=20))
    made = release(world, store)
    total = np.sum([pool.support for pool in made.release.pools], axis=0)
    expected = for_survey(SURVEY, HIGH).estimate(Tally.of(total))
    assert estimate_pools(SURVEY, made.release.pools).exact == expected.exact


def test_a_submission_that_is_not_complete_stays_out(world: World, store: Store) -> None:
    with store.writing() as transaction:
        transaction.departments.add("labour", NOW)
    put(store, "health", FIRST)
    put(store, "labour", make_upload("labour"))
    put(store, "education", SECOND, complete=False)
    made = release(world, store)
    assert [item.department for item in made.release.participants] == ["health", "labour"]


def test_an_open_round_is_not_released_and_the_error_says_how_to_close_it(world: World, store: Store) -> None:
    put(store, "health", FIRST)
    put(store, "education", SECOND)
    with pytest.raises(PublicationError, match="round 1 is open") as caught:
        publish(store, SURVEY, 1, world.pki.releases, lambda: NOW)
    assert "rounds close ages@1 1" in caught.value.next_step
    with pytest.raises(PublicationError, match="not opened yet") as caught:
        publish(store, SURVEY, 2, world.pki.releases, lambda: NOW)
    assert caught.value.next_step.startswith("wait until it closes, at ")  # closing it would be refused
    assert "tallyveil aggregator rounds close" not in caught.value.next_step
    with pytest.raises(PublicationError, match="no round 7"):
        publish(store, SURVEY, 7, world.pki.releases, lambda: NOW)
    with store.writing() as transaction:
        assert close_round(transaction, SURVEY, 1, NOW)
    assert publish(store, SURVEY, 1, world.pki.releases, lambda: NOW).release.revision == 1


def test_too_few_complete_submissions_are_not_released(world: World, store: Store) -> None:
    with pytest.raises(PublicationError, match="no submission is complete"):
        release(world, store)
    put(store, "health", FIRST)
    with pytest.raises(PublicationError, match="asks for at least 2"):
        release(world, store)
    with store.reading() as transaction:
        assert transaction.releases.last() is None


def test_a_department_without_records_does_not_make_up_the_numbers(world: World, store: Store) -> None:
    """Two departments are asked for; one that sends nothing would leave the other alone in the release."""
    put(store, "health", FIRST)
    key = make_key("education", epsilon=LOW)
    put(store, "education", Upload(key, (batch_of(key, 0, np.zeros(SURVEY.domain.size)),)))
    with pytest.raises(PublicationError, match="1 submissions with records"):
        release(world, store)


def test_an_unchanged_round_is_not_released_twice(world: World, store: Store) -> None:
    put(store, "health", FIRST)
    put(store, "education", SECOND)
    made = release(world, store)
    with pytest.raises(AlreadyReleased, match="already, as revision 1") as caught:
        release(world, store)
    assert caught.value.standing.hash == made.hash
    with store.reading() as transaction:
        assert len(transaction.releases.newest(10)) == 1
        assert transaction.releases.document(1) == made.document


def test_releases_of_all_rounds_are_one_chain(world: World, store: Store) -> None:
    made: list[VerifiedRelease] = []
    for number in (1, 2, 3):
        put(store, "health", make_upload("health", round_number=number))
        put(store, "education", make_upload("education", round_number=number))
        made.append(release(world, store, number))
    assert [item.release.previous for item in made] == [None, made[0].hash, made[1].hash]
    check_chain(made)
    with pytest.raises(IntegrityError):
        check_chain([made[0], made[2]])


def test_releasing_from_eight_threads_at_once_releases_once(world: World, store: Store) -> None:
    put(store, "health", FIRST)
    put(store, "education", SECOND)
    done: list[object] = []

    def attempt() -> None:
        try:
            done.append(release(world, store))
        except TallyveilError as error:
            done.append(type(error))

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(item, VerifiedRelease) for item in done) == 1
    assert done.count(AlreadyReleased) == 7


def test_what_changes_while_a_release_is_made_is_in_it_or_stops_it(
    world: World, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "health", FIRST)
    put(store, "education", SECOND)
    with store.writing() as transaction:
        transaction.departments.add("labour", NOW)
    late = iter([make_upload("labour")])

    def verify_slowly(document: bytes, key: object) -> VerifiedRelease:
        with suppress(StopIteration):
            put(store, "labour", next(late))  # as a clock that was set back would let happen
        return open_release(document, world.pki.releases.public)

    monkeypatch.setattr("tallyveil_aggregator.publication.open_release", verify_slowly)
    assert len(release(world, store).release.participants) == 3

    def reopen(document: bytes, key: object) -> VerifiedRelease:
        with store.writing() as transaction:
            transaction.rounds.set_closed(SURVEY.hash, 2, None)
        return open_release(document, world.pki.releases.public)

    monkeypatch.setattr("tallyveil_aggregator.publication.open_release", reopen)
    now = SURVEY.rounds[1].opens
    for name in (HEALTH.name, EDUCATION.name):
        put(store, name, make_upload(name, round_number=2))
    with store.writing() as transaction:
        close_round(transaction, SURVEY, 2, now)
    with pytest.raises(PublicationError, match="round 2 is open"):
        publish(store, SURVEY, 2, world.pki.releases, lambda: now)


def test_a_round_that_holds_more_than_numbers_can_is_not_released(world: World) -> None:
    survey = replace(SURVEY, quota=2**53 - 1, dimensions=(), minimums=replace(SURVEY.minimums, departments=1))
    world.set_up(surveys=(survey,))
    with world.store() as store:
        for name in (HEALTH.name, EDUCATION.name):
            upload = make_upload(name, survey=survey)
            with store.writing() as transaction:
                transaction.submissions.add(name, upload.key, NOW)
                stored = transaction.submissions.find(name, survey.hash, 1)
                assert stored is not None
                counts = np.array([2**53 - 1] + [0] * 9, dtype=np.int64)
                transaction.batches.add(stored.number, upload.batches[0], counts)
                transaction.submissions.mark_complete(stored.number, NOW)
        with pytest.raises(PublicationError, match="more than"):
            publish(store, survey, 1, world.pki.releases, lambda: AFTER)


def test_rounds_close_early_and_open_again_until_the_window_ends_or_they_are_released(
    world: World, store: Store
) -> None:
    with store.writing() as transaction:
        assert close_round(transaction, SURVEY, 1, NOW)
        assert not close_round(transaction, SURVEY, 1, NOW)
        assert reopen_round(transaction, SURVEY, 1, NOW)
        assert not reopen_round(transaction, SURVEY, 1, NOW)
        assert not close_round(transaction, SURVEY, 1, AFTER)
        for change, number, now in (
            (close_round, 2, NOW),
            (close_round, 9, NOW),
            (reopen_round, 9, NOW),
            (reopen_round, 1, AFTER),
        ):
            with pytest.raises(RoundError):
                change(transaction, SURVEY, number, now)
        close_round(transaction, SURVEY, 1, NOW)
    put(store, "health", FIRST)
    put(store, "education", SECOND)
    publish(store, SURVEY, 1, world.pki.releases, lambda: NOW)
    with store.writing() as transaction, pytest.raises(RoundError, match="released"):
        reopen_round(transaction, SURVEY, 1, NOW)


def test_a_rounds_state_has_a_name(store: Store) -> None:
    with store.writing() as transaction:
        state = transaction.rounds.state(SURVEY, 1)
    assert state is not None
    assert state.window == Round(1, NOW - DAY, NOW + DAY)
    assert state_of(state, NOW - 2 * DAY) == "not open yet"
    assert state_of(state, NOW) == "open"
    assert state_of(replace(state, closed_early=True), NOW) == "closed early"
    assert state_of(state, AFTER) == "closed"
    assert state_of(replace(state, released=True), NOW) == "released"
