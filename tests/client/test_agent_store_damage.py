"""Damage to the agent's store, and older copies of it, stop spending."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from agent_world import KEY, NOW, SURVEY, make_round, stored_in, token
from tallyveil.epsilon import NANO, to_nano
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.moments import moment_text
from tallyveil.survey import sign_survey
from tallyveil_client.agent.store import Approval, Store

APPROVAL = Approval(SURVEY.hash, sign_survey(SURVEY, KEY), SURVEY.epsilons[0], moment_text(NOW))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sqlite"


@pytest.fixture
def store(path: Path) -> Generator[Store]:
    with Store(path) as opened:
        yield opened


def raw(path: Path, statement: str, *values: object) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount > 0


@pytest.mark.parametrize("column", ["previous", "entry", "hash"])
def test_every_flipped_bit_of_a_ledger_row_stops_spending(path: Path, column: str) -> None:
    with Store(path) as store:
        for number in (1, 2):
            store.commit_round(make_round(number=number))
    with closing(sqlite3.connect(path)) as connection:
        value = connection.execute(f"SELECT {column} FROM ledger WHERE seq = 1").fetchone()[0]
    data = bytearray(value if isinstance(value, bytes) else value.encode())
    for place in range(0, len(data) * 8, 7):
        data[place // 8] ^= 1 << place % 8
        changed: object = bytes(data) if isinstance(value, bytes) else data.decode("latin-1")
        raw(path, f"UPDATE ledger SET {column} = ? WHERE seq = 1", changed)
        with pytest.raises(IntegrityError):
            Store(path)
        data[place // 8] ^= 1 << place % 8
    raw(path, f"UPDATE ledger SET {column} = ? WHERE seq = 1", value)
    with Store(path) as store:
        assert stored_in(store)[0] == 2


def test_damage_while_the_store_is_open_stops_the_next_charge(store: Store, path: Path) -> None:
    store.commit_round(make_round())
    raw(path, "UPDATE ledger SET entry = CAST(replace(CAST(entry AS TEXT), '2000000000', '1') AS BLOB)")
    with pytest.raises(IntegrityError, match="entry 1"):
        store.commit_round(make_round(number=2))
    with pytest.raises(IntegrityError):
        store.reserve("ab" * 32, 1, to_nano(1), token("id"))


def test_a_last_entry_taken_out_is_noticed(path: Path) -> None:
    with Store(path) as store:
        for number in (1, 2):
            store.commit_round(make_round(number=number))
    for table in ("outbox", "submissions"):
        raw(path, f"DELETE FROM {table}")
    raw(path, "DELETE FROM ledger WHERE seq = 2")
    with pytest.raises(IntegrityError, match="older copy"):
        Store(path)


def test_a_submission_taken_out_does_not_make_the_round_free_again(path: Path) -> None:
    with Store(path) as store:
        store.commit_round(make_round())
    raw(path, "DELETE FROM outbox")
    raw(path, "DELETE FROM submissions")
    with Store(path) as store, pytest.raises(IntegrityError, match="paid for is gone"):
        store.commit_round(make_round(seed=1))


def test_a_restored_older_copy_does_not_refund_budget(path: Path, tmp_path: Path) -> None:
    with Store(path) as store:
        store.commit_round(make_round())
    backup = tmp_path / "backup"
    shutil.copy(path, backup)
    with Store(path) as store:
        store.commit_round(make_round(number=2))
    shutil.copy(backup, path)
    with pytest.raises(IntegrityError, match="older copy") as caught:
        Store(path)
    assert "newest copy" in caught.value.next_step


def test_a_copy_restored_under_an_open_store_stops_the_next_charge(path: Path, tmp_path: Path) -> None:
    mark = path.with_name(path.name + ".head")
    with Store(path) as store:
        store.commit_round(make_round())
        old = mark.read_bytes()
        store.commit_round(make_round(number=2))
        ahead = mark.read_bytes()
        mark.write_bytes(re.sub(rb'"seq":2', b'"seq":3', ahead))
        with pytest.raises(IntegrityError, match="older copy"):
            store.commit_round(make_round(number=3))
        mark.write_bytes(old)  # a mark that lags, as after a crash, is caught up with
        store.commit_round(make_round(number=3, total=100 * NANO))
        assert b'"seq":3' in mark.read_bytes()


def test_a_copy_older_than_a_mark_that_could_not_be_written_refunds_nothing_that_was_sent(
    path: Path, tmp_path: Path
) -> None:
    Store(path).__exit__(None, None, None)
    backup, blocked = tmp_path / "backup", path.with_name(path.name + ".head.new")
    shutil.copy(path, backup)
    blocked.mkdir()
    new = make_round()
    with Store(path) as store:
        with pytest.raises(ConfigurationError):
            store.commit_round(new)
        with pytest.raises(ConfigurationError):
            store.outgoing(new.key.submission_id)
        blocked.rmdir()
        assert store.outgoing(new.key.submission_id)
    shutil.copy(backup, path)
    with pytest.raises(IntegrityError, match="older copy"):
        Store(path)


@pytest.mark.parametrize("damage", ["store gone", "mark gone", "mark cut", "mark of another store", "store of another"])
def test_a_store_and_its_mark_belong_together(path: Path, tmp_path: Path, damage: str) -> None:
    other = tmp_path / "other.sqlite"
    for each in (path, other):
        with Store(each) as store:
            store.commit_round(make_round())
    mark, other_mark = (each.with_name(each.name + ".head") for each in (path, other))
    match damage:
        case "store gone":
            path.unlink()
        case "mark gone":
            mark.unlink()
        case "mark cut":
            mark.write_bytes(mark.read_bytes()[:-1])
        case "mark of another store":
            shutil.copy(other_mark, mark)
        case _:
            shutil.copy(other, path)
    with pytest.raises(IntegrityError):
        Store(path)


def test_a_file_that_is_no_store_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"not a database, but longer than a header" * 100)
    with pytest.raises(IntegrityError, match="damaged or not a store"):
        Store(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(ConfigurationError, match="not an agent's store"):
        Store(path)
