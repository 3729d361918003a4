"""Tables, progress, JSON and logs of the `tallyveil` command."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Generator

import numpy as np
import pytest

from tallyveil.cli import console, logs

CANARY = "canary-4711"


@pytest.fixture
def lines() -> Generator[io.StringIO]:
    """Logs configured into a buffer, and as they were afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("tallyveil").setLevel(logging.NOTSET)


def test_a_table_is_never_cut_where_output_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(["name", "count"], [["x" * 300, "12"], ["[red]", "3"]], title="Counts", right=["count"])
    text = capsys.readouterr().out
    assert "x" * 300 in text
    assert "[red]" in text
    assert max(map(len, text.splitlines())) < 400


def test_a_table_has_the_width_that_columns_says_even_where_output_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    console.print_table(["name", "hash"], [["age", "0123456789abcdef" * 4]])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 40
    joined = "".join(re.findall("[0-9a-f]{4,}", text))
    assert joined == "0123456789abcdef" * 4  # folded, not cut


@pytest.mark.parametrize(("columns", "absent"), [("200", ""), ("80", ""), ("64", "hash"), ("40", "hash, released")])
def test_a_narrow_terminal_leaves_out_columns_that_can_be_spared_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str, absent: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    headers = ["survey", "round", "released", "hash"]
    rows = [["high-income-heads", 1, "2027-01-02T00:00:00Z", "0" * 64]]
    console.print_table(headers, rows, spare=["hash", "released"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= int(columns)
    assert "high-income-heads" in text
    assert ("2027-01-02T00:00:00Z" in text) == ("released" not in absent)
    assert (f"Too narrow here for: {absent}." in text) == bool(absent)


def test_a_cell_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(["name"], [["\x1b[2J统计"]])
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "统计" in text


def test_json_takes_numpy_and_refuses_what_json_cannot_say(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"counts": np.arange(3), "n": np.int64(3), "name": "统计"})
    text = capsys.readouterr().out
    assert json.loads(text) == {"counts": [0, 1, 2], "n": 3, "name": "统计"}
    assert "统计" in text
    with pytest.raises(ValueError, match="Out of range"):
        console.print_json(float("nan"))
    with pytest.raises(TypeError, match="object cannot be printed"):
        console.print_json(object())


def test_json_escapes_what_could_steer_a_terminal_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    wicked = {"名": "\x9b2J\u202e\x1b[31m 年龄 é"}
    console.print_json(wicked)
    printed = capsys.readouterr().out
    assert json.loads(printed) == wicked
    assert "年龄 é" in printed and "名" in printed
    assert all(character.isprintable() or character == "\n" for character in printed)


def test_progress_is_silent_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("counting", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def test_progress_draws_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with console.progress("counting", 3) as advance:
        advance(3)
    assert "counting" in terminal.getvalue()


def test_an_event_is_one_json_line(lines: io.StringIO) -> None:
    logs.Log("agent.upload").info("batch_acknowledged", batches=3, department="a\nb")
    logs.Log("agent.upload").debug("too fine")
    (line,) = lines.getvalue().splitlines()
    event = json.loads(line)
    assert event.pop("time").endswith("+00:00")
    assert event == {
        "level": "info",
        "event": "batch_acknowledged",
        "source": "agent.upload",
        "fields": {"batches": 3, "department": "a\nb"},
    }


def test_an_error_is_logged_without_its_message(lines: io.StringIO) -> None:
    try:
        int(CANARY)
    except ValueError as error:
        logs.Log("agent").error("row_unreadable", error, row=7)
    event = json.loads(lines.getvalue())
    assert event["fields"]["row"] == 7
    assert event["fields"]["trace"][0] == "ValueError at"
    assert CANARY not in lines.getvalue()


def test_what_other_packages_log_is_withheld(lines: io.StringIO) -> None:
    logging.getLogger("pyarrow").warning("bad cell %s", CANARY)
    logging.getLogger("pyarrow").info("chatter")
    event = json.loads(lines.getvalue())
    assert event["source"] == "pyarrow"
    assert "test_cli_output.py" in event["fields"]["place"]
    assert CANARY not in lines.getvalue()
