"""The agent's store: one transaction each, nothing half done, full disks and wrong paths said plainly."""

from __future__ import annotations

import resource
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from agent_world import KEY, NOW, SURVEY, make_round, stored_in, token
from tallyveil.batch import ID_BYTES
from tallyveil.epsilon import NANO, to_nano
from tallyveil.errors import ConfigurationError, IntegrityError, InternalError, PolicyError, UnavailableError
from tallyveil.moments import moment_text
from tallyveil.survey import sign_survey
from tallyveil_client.agent.ledger import Head
from tallyveil_client.agent.store import AlreadyStoredError, Approval, Earlier, Store
from tallyveil_client.agent.store.mark import read_mark, write_mark

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
        assert (submission.survey, submission.source) == ("ages@1", "people")
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


def test_each_epsilon_has_its_identifier_so_that_one_may_go_back(store: Store) -> None:
    """The aggregator may have taken down the first one."""
    store.approve(APPROVAL)
    first = store.reserve(SURVEY.hash, 1, APPROVAL.epsilon, token("first"))
    store.approve(replace(APPROVAL, epsilon=to_nano(1)))
    second = store.reserve(SURVEY.hash, 1, to_nano(1), token("second"))
    assert (second.epsilon, second.submission_id) == (to_nano(1), token("second"))
    store.approve(APPROVAL)
    assert store.reserve(SURVEY.hash, 1, APPROVAL.epsilon, token("third")) == first


def test_a_charged_epsilon_cannot_change(store: Store) -> None:
    new = make_round()
    store.commit_round(new)
    approval = replace(APPROVAL, survey_hash=new.key.survey_hash)
    with pytest.raises(PolicyError, match="charged at epsilon 2"):
        store.approve(replace(approval, epsilon=to_nano(1)))
    store.approve(approval)


def test_what_is_known_of_earlier_tables_is_read_back_as_it_was(store: Store) -> None:
    new = replace(make_round(), selection='{"a":"b"}', clear_counts={(1, 0): 3, (0, 2): 2**40})
    store.commit_round(new)
    with pytest.raises(IntegrityError, match="gone from the approvals"):
        store.earlier()
    store.approve(replace(APPROVAL, survey_hash=new.key.survey_hash))
    (earlier,) = store.earlier()
    assert (earlier.document, earlier.account, earlier.selection) == (APPROVAL.document, "people", new.selection)
    assert earlier.clear_counts == new.clear_counts
    assert str(2**40) not in repr(earlier)


def test_whoever_may_object_is_asked_in_the_transaction_and_stops_it_all(store: Store) -> None:
    def object_to(earlier: tuple[Earlier, ...]) -> None:
        raise PolicyError(f"after {len(earlier)}")

    with pytest.raises(PolicyError, match="after 0"):
        store.commit_round(make_round(), object_to)
    assert stored_in(store) == (0, 0, 0)


def test_a_mark_that_cannot_be_written_holds_back_what_was_stored(store: Store, path: Path) -> None:
    blocked = path.with_name(path.name + ".head.new")
    blocked.mkdir()
    new = make_round()
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        store.commit_round(new)
    assert "charged and stored" in caught.value.not_done and "nothing was sent" in caught.value.not_done
    assert "run again" in caught.value.next_step
    assert stored_in(store) == (1, 1, 2)
    with pytest.raises(ConfigurationError):
        store.outgoing(new.key.submission_id)
    blocked.rmdir()
    assert len(store.outgoing(new.key.submission_id)) == 2


def test_a_store_opened_by_a_link_has_the_same_mark(store: Store, path: Path) -> None:
    link = path.with_name("link.sqlite")
    link.symlink_to(path)
    with Store(link) as linked:
        linked.commit_round(make_round())
    assert not link.with_name("link.sqlite.head").exists()
    assert stored_in(store) == (1, 1, 2)


@pytest.mark.parametrize("largest", range(0, 180, 20))
def test_a_mark_that_is_cut_off_never_replaces_a_whole_one(tmp_path: Path, largest: int) -> None:
    mark, old = tmp_path / "mark", Head(1, "a" * 64)
    write_mark(mark, "store", old)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        with suppress(OSError):
            write_mark(mark, "store", Head(2, "b" * 64))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_mark(mark, "store") == (old if largest < len(mark.read_bytes()) else Head(2, "b" * 64))


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
