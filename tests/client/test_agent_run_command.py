"""`tallyveil agent run`, as far as it gets without an aggregator: every bad input charges and stores nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_shell import Shell
from agent_world import Home, MemoryAggregator, aids_for, even_rows
from certificates import TestAuthority
from tallyveil.epsilon import to_nano
from tallyveil_client.agent.department import open_department
from tallyveil_client.agent.run import run_round

COMMANDS = ("init", "approve", "check", "preview", "run", "status", "ledger")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(Home(tmp_path / "department").prepare(), capsys)


def stopped(shell: Shell, code: int, *words: str, arguments: Sequence[str] = ()) -> None:
    """The run fails on one screen, with this code and these words; nothing is charged or stored."""
    found, out, err = shell("run", *arguments)
    assert (found, out) == (code, ""), err
    for word in words:
        assert word in err
    assert len(err.splitlines()) <= 12
    assert shell.nothing_happened()


def test_nothing_runs_unapproved(shell: Shell) -> None:
    stopped(shell, 4, "no survey is approved", "tallyveil agent approve")
    shell.approve()
    stopped(shell, 4, "not approved here", arguments=["incomes"])


def test_a_round_that_does_not_exist_or_is_not_open_is_refused(shell: Shell) -> None:
    shell.approve()
    stopped(shell, 2, "has no round 7", arguments=["--round", "7"])
    stopped(shell, 75, "round 2 of ages@1 opens on", arguments=["--round", "2"])


def test_a_missing_certificate_stops_the_run_before_the_records_are_read(shell: Shell) -> None:
    (shell.home.folder / "people.csv").unlink()
    shell.approve()
    stopped(shell, 2, "certificate")


@pytest.mark.parametrize(
    ("uris", "days", "words"),
    [
        (["tallyveil:consumer:newsroom"], 30, "department"),
        (["tallyveil:department:health"], -1, "expired"),
        ([], 30, "identity"),
    ],
)
def test_a_wrong_certificate_stops_the_run(shell: Shell, uris: list[str], days: int, words: str) -> None:
    TestAuthority().client(*uris, days=days).save(shell.home.folder)
    shell.approve()
    stopped(shell, 2, words)


@pytest.fixture
def certified(shell: Shell) -> Shell:
    TestAuthority().client("tallyveil:department:health").save(shell.home.folder)
    (shell.home.folder / "private.key").chmod(0o600)
    return shell


def test_an_unreachable_aggregator_is_tried_again_and_nothing_is_charged(
    certified: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[float]()
    monkeypatch.setattr("time.sleep", waits.append)
    certified.approve()
    stopped(
        certified, 75, "127.0.0.1:1 cannot be reached", "(attempt 8 of 8); nothing is charged yet", "next: try again"
    )
    assert len(waits) == 7


def test_while_waiting_the_next_attempt_is_shown_and_that_interrupting_is_safe(
    certified: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", interrupt)
    certified.approve()
    stopped(
        certified,
        130,
        "trying again in",
        "(attempt 2 of 8); nothing is charged yet; Ctrl-C is safe",
        "Round 1 of ages@1 was not charged",
        "from the start: tallyveil agent run ages@1",
    )


def test_interrupting_after_the_charge_says_so_and_how_to_go_on(
    certified: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", interrupt)
    certified.approve()
    with open_department(certified.home.config) as department:
        (item,) = department.approved()
        with pytest.raises(KeyboardInterrupt):
            run_round(
                department,
                item,
                item.survey.rounds[0],
                None,
                replace(aids_for(department, MemoryAggregator()), deliver=interrupt),
            )
    code, out, err = certified("run")
    assert (code, out) == (130, "")
    assert "the perturbed batches are safe on disk; Ctrl-C is safe" in err
    assert "Round 1 of ages@1 is charged and its batches are stored" in err
    assert "no second charge: tallyveil agent run ages@1 --round 1" in err
    assert len(certified.json("ledger")["entries"]) == 1


def interrupt(_: object) -> None:
    raise KeyboardInterrupt


def test_secret_files_that_others_may_read_are_warned_of_once(
    certified: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", interrupt)
    key = certified.home.folder / "private.key"
    certified.approve()
    assert "chmod" not in certified("run")[2]
    key.chmod(0o644)
    assert certified("run")[2].count(f"chmod 600 {key}") == 1


@pytest.mark.parametrize(
    ("damage", "code", "words"),
    [
        ("no file", 2, "is not a file"),
        ("no column", 2, "has no column 'sex'"),
        ("bytes", 3, "people"),
        ("value", 3, "out-of-domain: 1"),
        ("cell", 4, "min_clear_cell of 10"),
        ("empty", 3, "none was accepted"),
    ],
)
def test_bad_records_stop_the_run(certified: Shell, damage: str, code: int, words: str) -> None:
    home, file = certified.home, certified.home.folder / "people.csv"
    match damage:
        case "no file":
            file.unlink()
        case "no column":
            file.write_text("age\n20\n")
        case "bytes":
            file.write_bytes(b"age,sex\n20,F\n\xff\xfe\x81,M\n")
        case "value":
            home.write_rows([*even_rows(2), ("99", "F")])
        case "cell":
            home.write_rows(even_rows(2)[:12])
        case _:
            home.write_rows([])
    certified.approve()
    stopped(certified, code, words)


@pytest.mark.parametrize(
    ("file", "line", "words"),
    [
        ("agent.toml", "[extra]\n", "'extra' is not a known key"),
        ("policy.toml", "[extra]\n", "'extra' is not a known key"),
        ("policy.toml", "max_epsilon = nan\n", "policy.toml"),
        ("agent.toml", "= 1\n", "not TOML"),
    ],
)
def test_a_wrong_configuration_is_refused(shell: Shell, file: str, line: str, words: str) -> None:
    path = shell.home.folder / file
    text = path.read_text()
    if "max_epsilon" in line:
        text = text.replace("max_epsilon = 2\n", "")
    path.write_text(text + line)
    code, _, err = shell("run")
    assert code == 2 and words in err


def test_an_account_without_enough_left_stops_before_the_records_are_read(shell: Shell) -> None:
    shell.approve()
    shell.home.prepare(total=to_nano(1.9))
    (shell.home.folder / "people.csv").unlink()
    stopped(shell, 4, "total_epsilon of account 'people' is 1.9")
