"""The store: durable, exact under concurrency, plain about what stops it."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from aggregator_world import HIGH, NOW, SURVEY, World, batch_of, make_key, make_upload, register_and_add
from tallyveil.errors import ConfigurationError, IntegrityError, InternalError, UnavailableError
from tallyveil_aggregator.intake import DepartmentState
from tallyveil_aggregator.store import Store, StoreUnavailable, Transaction, engine
from tallyveil_aggregator.store.releases import StoredRelease
from tallyveil_aggregator.store.rounds import Progress

COUNTS = np.arange(10, dtype=np.int64)


@pytest.fixture
def store(world: World) -> Generator[Store]:
    """A store with the departments and the survey of the world."""
    world.set_up()
    with world.store() as opened:
        yield opened


def begin(transaction: Transaction, department: str = "health", seed: object = 0) -> int:
    """Open a submission; its number."""
    transaction.submissions.add(department, make_key(seed), NOW)
    stored = transaction.submissions.find(department, SURVEY.hash, 1)
    assert stored is not None
    return stored.number


def test_a_store_is_made_once_and_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a store?mode=ro.sqlite"  # a name that would mislead a careless address
    Store.create(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigurationError, match="a store already"):
        Store.create(path)
    Store.open(path).close()
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]


def test_what_is_no_store_is_not_opened_and_not_made_one(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="not to be had") as absent:
        Store.open(tmp_path / "none.sqlite")
    assert absent.value.exit_code == ConfigurationError.exit_code
    assert not list(tmp_path.iterdir())
    text = tmp_path / "text.sqlite"
    text.write_text("no database, " * 100)
    with pytest.raises(StoreUnavailable, match="damaged or no store") as damaged:
        Store.open(text)
    assert damaged.value.exit_code == IntegrityError.exit_code
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(ConfigurationError, match="no store of this version"):
        Store.open(other)


def test_commits_are_synchronous_and_logged_ahead(store: Store) -> None:
    with store._database.reading() as connection:  # pyright: ignore[reportPrivateUsage]
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_departments_have_a_standing(store: Store) -> None:
    with store.writing() as transaction:
        assert transaction.departments.state("health") is DepartmentState.ACTIVE
        assert transaction.departments.state("nobody") is None
        transaction.departments.set_state("health", DepartmentState.BLOCKED)
        assert not transaction.departments.add("health", NOW)
        assert transaction.departments.state("health") is DepartmentState.BLOCKED
    with store.reading() as transaction:
        assert [item.name for item in transaction.departments.all()] == ["education", "health"]


def test_a_submission_is_read_back_as_it_was_stored(store: Store) -> None:
    upload = make_upload()
    with store.writing() as transaction:
        number = begin(transaction)
        for batch in upload.batches:
            assert transaction.batches.holdings(number, batch).same_id is None
            transaction.batches.add(number, batch, COUNTS + batch.cell)
        transaction.submissions.mark_complete(number, NOW)
    with store.reading() as transaction:
        (stored,) = transaction.submissions.complete(SURVEY.hash, 1)
        assert (stored.department, stored.held.key, stored.held.complete) == ("health", upload.key, True)
        assert set(transaction.batches.references(number)) == {batch.reference for batch in upload.batches}
        assert transaction.batches.records(number) == upload.manifest.records
        strata = {cell: tally.counts.tolist() for cell, tally in transaction.batches.strata(number)}
        assert strata == {0: list(range(10)), 1: list(range(1, 11))}
        progress = transaction.rounds.progress(SURVEY.hash, 1)
        assert progress == Progress(opened=1, complete=1, records=upload.manifest.records)
        assert transaction.rounds.progress(SURVEY.hash, 2) == Progress(0, 0, 0)


def test_holdings_tell_own_batches_from_those_of_others(store: Store) -> None:
    batch = batch_of(make_key(), 0, COUNTS)
    with store.writing() as transaction:
        ours, theirs = begin(transaction), begin(transaction, "education", seed=1)
        transaction.batches.add(ours, batch, COUNTS)
        own, foreign = transaction.batches.holdings(ours, batch), transaction.batches.holdings(theirs, batch)
    assert own.same_id is not None and foreign.same_id is not None
    assert (own.same_id.ours, own.same_cell, own.records) == (True, True, 45)
    assert (foreign.same_id.ours, foreign.same_cell, foreign.records) == (False, False, 0)


def test_what_raises_inside_leaves_nothing_behind(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.writing() as transaction:
        transaction.batches.add(begin(transaction), batch_of(make_key(), 0, COUNTS), COUNTS)
        raise ZeroDivisionError
    with store.reading() as transaction:
        assert transaction.rounds.progress(SURVEY.hash, 1) == Progress(0, 0, 0)


def test_the_tables_themselves_refuse_a_second_submission_and_a_batch_counted_twice(store: Store) -> None:
    batch = batch_of(make_key(), 0, COUNTS)
    with store.writing() as transaction:
        number = begin(transaction)
        transaction.batches.add(number, batch, COUNTS)
    for same in (batch, batch_of(make_key(), 0, COUNTS, seed="another id, the same cell")):
        with pytest.raises(InternalError), store.writing() as transaction:
            transaction.batches.add(number, same, COUNTS)
    with pytest.raises(InternalError), store.writing() as transaction:
        begin(transaction, seed="second")


def test_two_releases_never_take_the_same_place_in_the_chain(store: Store) -> None:
    first = StoredRelease(1, SURVEY.hash, SURVEY.name, 1, 1, 1, "aa" * 32, "bb" * 32, "2027-01-01T00:00:00Z")
    with store.writing() as transaction:
        assert transaction.releases.last() is None
        transaction.releases.add(first, None, NOW, b"document")
        assert transaction.releases.document(1) == b"document"
    other = StoredRelease(1, SURVEY.hash, SURVEY.name, 1, 2, 1, "cc" * 32, "dd" * 32, "2027-01-01T00:00:00Z")
    with pytest.raises(InternalError), store.writing() as transaction:
        transaction.releases.add(other, None, NOW, b"another")


def test_a_release_is_found_by_name_and_number_or_as_the_newest(store: Store) -> None:
    places = [(1, 1, 1), (2, 1, 2), (3, 2, 1)]
    with store.writing() as transaction:
        for sequence, number, revision in places:
            stored = StoredRelease(
                sequence, SURVEY.hash, SURVEY.name, 1, number, revision, f"{sequence:064}", "", "2027-01-01T00:00:00Z"
            )
            transaction.releases.add(stored, None, NOW, b"")
    with store.reading() as transaction:
        found = transaction.releases.find
        for wanted, sequence in (((), 3), ((1,), 3), ((0, 1), 2), ((1, 1, 1), 1), ((1, 2, 0), 3)):
            stored_release = found("ages", *wanted)
            assert stored_release is not None and stored_release.sequence == sequence
        for absent in ((2,), (1, 3), (1, 1, 3)):
            assert found("ages", *absent) is None
        assert found("other") is None
        assert [item.sequence for item in transaction.releases.newest(2)] == [3, 2]


def test_eight_threads_add_exactly_what_they_add(store: Store) -> None:
    with store.writing() as transaction:
        number = begin(transaction)
    failures: list[BaseException] = []

    def add(thread: int) -> None:
        try:
            for step in range(20):
                with store.writing() as transaction:
                    batch = batch_of(make_key(), thread * 20 + step, COUNTS)
                    assert transaction.batches.records(number) % 45 == 0
                    transaction.batches.add(number, batch, COUNTS)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=add, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with store.reading() as transaction:
        assert transaction.batches.records(number) == 8 * 20 * 45
        assert len(list(transaction.batches.strata(number))) == 160


def test_four_processes_never_lose_a_batch_nor_fail_on_a_lock(store: Store, world: World) -> None:
    context = multiprocessing.get_context("spawn")
    path = str(world.config.store)
    jobs = [(path, make_key(number), f"d{number}", 25) for number in range(4)]
    processes = [context.Process(target=register_and_add, args=job) for job in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    with store.reading() as transaction:
        assert transaction.rounds.progress(SURVEY.hash, 1) == Progress(opened=4, complete=0, records=100)


def test_a_full_disk_is_said_to_be_that_and_leaves_the_store_whole(store: Store) -> None:
    with store.writing() as transaction:
        number = begin(transaction)
    with store._database.reading() as connection:  # pyright: ignore[reportPrivateUsage]
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    big = np.ones(200_000, dtype=np.int64)
    with pytest.raises(StoreUnavailable, match="disk is full") as caught, store.writing() as transaction:
        transaction.batches.add(number, batch_of(make_key(), 0, COUNTS), big)
    assert caught.value.not_done == "nothing was stored"
    assert caught.value.exit_code == UnavailableError.exit_code
    with store.reading() as transaction:
        assert transaction.batches.records(number) == 0


def test_a_writer_that_does_not_end_makes_the_store_unavailable_not_wrong(
    store: Store, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_S", 0.1)
    with closing(sqlite3.connect(world.config.store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with world.store() as impatient:
            with pytest.raises(StoreUnavailable, match="another writer"), impatient.writing():
                pass
            with impatient.reading() as transaction:
                assert transaction.departments.state("health") is DepartmentState.ACTIVE
    with store.writing(), pytest.raises(StoreUnavailable, match="another writer"), store.writing():
        pass  # in this process, too


def test_a_store_whose_file_was_taken_away_acknowledges_nothing(store: Store, world: World) -> None:
    path = world.config.store
    aside = path.rename(path.with_suffix(".aside"))
    for use in (store.writing, store.reading):
        with pytest.raises(StoreUnavailable, match="not to be had"), use():
            pass
    with pytest.raises(StoreUnavailable):
        store.check()
    assert not path.exists()
    Store.create(path).close()
    with pytest.raises(StoreUnavailable, match="replaced"), store.writing():
        pass
    path.unlink()
    aside.rename(path)
    store.check()
    with store.writing() as transaction:
        transaction.submissions.add("health", make_key(epsilon=HIGH), NOW)


def test_an_unwritable_folder_is_said_to_be_that(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match=r"Not a directory|File exists") as caught:
        Store.create(tmp_path / "file" / "store.sqlite")
    assert caught.value.exit_code == ConfigurationError.exit_code  # a later attempt would meet it too
