"""The agent's store: one transaction each, nothing half done, full disks and wrong paths said plainly."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_world import KEY, NOW, SURVEY, make_round, stored_in, token
from tallyveil.batch import ID_BYTES
from tallyveil.epsilon import NANO, to_nano
from tallyveil.errors import ConfigurationError, IntegrityError, InternalError, PolicyError, UnavailableError
from tallyveil.moments import moment_text
from tallyveil.survey import sign_survey
from tallyveil_client.agent.store import AlreadyStoredError, Approval, Store

APPROVAL = Approval(SURVEY.hash, sign_survey(SURVEY, KEY), SURVEY.epsilons[0], moment_text(NOW))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sqlite"


@pytest.fixture
def store(path: Path) -> Generator[Store]:
    with Store(path) as opened:
        yield opened


def test_a_round_is_charged_and_stored_and_read_back_as_it_was(store: Store, path: Path) -> None:
    new = make_round(rows=2, cells=3)
    store.commit_round(new)
    for again in (store, Store(path)):
        (submission,) = again.submissions()
        assert submission.key == new.key
        assert (submission.survey, submission.source, submission.filter) == ("ages@1", "people", "")
        assert (submission.records, submission.batches, submission.acknowledged, submission.complete) == (
            285,
            3,
            0,
            False,
        )
        assert tuple(item.batch for item in again.outgoing(new.key.submission_id)) == new.batches
        assert again.ledger().charges == (new.charge,)
        assert again.ledger().spent("people") == 4 * NANO


def test_the_file_and_what_sqlite_puts_beside_it_are_for_the_owner_only(store: Store, path: Path) -> None:
    store.commit_round(make_round())
    assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == dict.fromkeys(
        ["agent.sqlite", "agent.sqlite-wal", "agent.sqlite-shm", "agent.sqlite.head"], 0o600
    )


def test_a_file_that_others_may_read_is_closed_to_them(path: Path) -> None:
    Store(path).__exit__(None, None, None)
    path.chmod(0o644)
    with Store(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_commit_is_durable_before_it_returns(store: Store) -> None:
    connection = store._database.connection  # pyright: ignore[reportPrivateUsage]
    settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]


def test_a_second_round_of_the_same_number_is_refused_and_charges_nothing(store: Store) -> None:
    store.commit_round(make_round())
    with pytest.raises(AlreadyStoredError, match="already charged and stored") as caught:
        store.commit_round(make_round(seed=1))
    assert "resumes" in caught.value.next_step
    assert stored_in(store) == (1, 1, 2)


def test_an_account_without_enough_left_stores_nothing(store: Store) -> None:
    store.commit_round(make_round(total=3 * NANO))
    with pytest.raises(PolicyError, match="account 'people' has 1 of 3 left, and this would charge 2"):
        store.commit_round(make_round(number=2, total=3 * NANO))
    assert stored_in(store) == (1, 1, 2)


def test_ten_times_a_tenth_is_accepted_and_the_eleventh_refused(store: Store) -> None:
    for number in range(1, 11):
        store.commit_round(make_round(number=number, epsilon=to_nano(0.1), total=NANO))
    with pytest.raises(PolicyError):
        store.commit_round(make_round(number=11, epsilon=to_nano(0.1), total=NANO))
    assert store.ledger().spent("people") == NANO


def test_a_charge_for_something_else_is_our_fault(store: Store) -> None:
    new = make_round()
    for wrong in (
        replace(new, key=replace(new.key, round=2)),
        replace(new, key=replace(new.key, submission_id=bytes(ID_BYTES))),
        replace(new, batches=()),
    ):
        with pytest.raises(InternalError):
            store.commit_round(wrong)
    assert stored_in(store) == (0, 0, 0)


def test_a_batch_that_contradicts_the_store_leaves_nothing_half_stored(store: Store) -> None:
    new = make_round()
    with pytest.raises(IntegrityError):
        store.commit_round(replace(new, batches=(*new.batches, new.batches[0])))
    assert stored_in(store) == (0, 0, 0)


def test_an_approval_is_kept_and_a_later_one_replaces_it(store: Store) -> None:
    store.approve(APPROVAL)
    later = replace(APPROVAL, epsilon=to_nano(1), approved_at="2030-01-01T00:00:00Z")
    store.approve(later)
    assert store.approvals() == (later,)


def test_a_reserved_identifier_is_given_again_until_the_round_is_stored(store: Store) -> None:
    new = make_round()
    hash_, number, epsilon = new.key.survey_hash, new.key.round, new.key.epsilon
    first = store.reserve(hash_, number, epsilon, new.key.submission_id)
    assert first == new.key
    assert store.reserve(hash_, number, epsilon, token("other")) == first
    with pytest.raises(InternalError, match="another identifier"):
        store.commit_round(make_round(seed=1))
    assert stored_in(store) == (0, 0, 0)
    store.commit_round(new)
    with pytest.raises(AlreadyStoredError):
        store.reserve(hash_, number, epsilon, token("third"))


def test_an_announced_epsilon_cannot_change(store: Store) -> None:
    store.approve(APPROVAL)
    store.reserve(SURVEY.hash, 1, APPROVAL.epsilon, token("id"))
    with pytest.raises(PolicyError, match="announced at epsilon 2"):
        store.approve(replace(APPROVAL, epsilon=to_nano(1)))
    with pytest.raises(PolicyError, match="announced at epsilon 2"):
        store.reserve(SURVEY.hash, 1, to_nano(1), token("id"))
    store.approve(APPROVAL)


def test_acknowledgements_completion_and_refusals_are_kept(store: Store) -> None:
    new = make_round(cells=3)
    store.commit_round(new)
    ids = [batch.batch_id for batch in new.batches]
    store.mark_batches(acknowledged=ids)
    store.mark_batches(queued=ids[:1])
    store.note_refusal(new.key.submission_id, "round-closed")
    (submission,) = store.submissions()
    assert (submission.acknowledged, submission.refusal, submission.complete) == (2, "round-closed", False)
    store.complete(new.key.submission_id, "2026-12-01T00:00:00Z")
    store.complete(new.key.submission_id, "2026-12-02T00:00:00Z")
    (submission,) = store.submissions()
    assert (submission.refusal, submission.completed_at) == ("", "2026-12-01T00:00:00Z")


def test_a_full_disk_is_said_plainly_and_leaves_nothing_half_done(store: Store) -> None:
    store.commit_round(make_round())
    connection = store._database.connection  # pyright: ignore[reportPrivateUsage]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(UnavailableError, match="disk is full") as caught:
        store.commit_round(make_round(number=2, cells=200))
    assert "nothing is charged twice" in caught.value.next_step
    assert stored_in(store) == (1, 1, 2)
    connection.execute("PRAGMA max_page_count = 100000")
    store.commit_round(make_round(number=2, cells=200))
    assert stored_in(store) == (2, 2, 202)


def test_a_store_that_may_not_be_written_is_said_plainly(store: Store) -> None:
    store._database.connection.execute("PRAGMA query_only = ON")  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ConfigurationError, match="cannot be opened for writing"):
        store.commit_round(make_round())
    assert stored_in(store) == (0, 0, 0)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"folder .* does not exist"):
        Store(tmp_path / "nowhere" / "agent.sqlite")
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        Store(tmp_path)
