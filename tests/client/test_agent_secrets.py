"""Canary values in rejected cells and unused columns appear nowhere but in the department's own file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent_shell import Shell
from agent_world import Home, MemoryAggregator, aids_for, even_rows
from certificates import TestAuthority
from tallyveil.errors import InputError
from tallyveil.wire.codec import Request, Response, encode_request
from tallyveil_client.agent.department import open_department
from tallyveil_client.agent.run import run_round

CANARIES = ("Zyxwv-4711", "73917391", "Qq9canary", "86420.97531")
ROWS = [
    *((age, sex, CANARIES[0]) for age, sex in even_rows(2)),
    (CANARIES[1], "F", "x"),
    (CANARIES[2], "F", "x"),
    (CANARIES[3], "M", "x"),
    ("20", CANARIES[2], "x"),
]


class Recording(MemoryAggregator):
    """Keeps every message as it would travel."""

    wire = b""

    def answer(self, request: Request) -> Response:
        self.wire += encode_request(request).SerializeToString() + repr(request).encode()
        return super().answer(request)


def found_in(text: str | bytes) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    return [canary for canary in CANARIES if canary.encode() in data or canary.encode("utf-16-le") in data]


def test_canaries_leave_no_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    home = Home(tmp_path).prepare(config='on_invalid = "reject"')
    home.write_rows(ROWS, "age,sex,name")
    TestAuthority().client("tallyveil:department:health").save(home.folder)
    shell = Shell(home, capsys)
    shell.approve()
    aggregator = Recording()
    shown = [repr(shell.json("check")), shell("check")[1], shell("preview")[1], repr(shell.json("preview"))]
    with open_department(home.config) as department:
        (item,) = department.approved()
        outcome = run_round(department, item, item.survey.rounds[0], None, aids_for(department, aggregator))
        shown += [repr(outcome), repr(department), repr(department.store.submissions())]
        assert outcome.summary is not None and outcome.summary.rejected.total() == 4
        for file in home.folder.iterdir():
            assert file.name == "people.csv" or found_in(file.read_bytes()) == [], file
    shown += [repr(shell.json("status")), repr(shell.json("ledger")), shell("run")[1], caplog.text]
    assert found_in("\n".join(shown)) == []
    assert found_in(aggregator.wire) == [] and len(aggregator.wire) > 200


def test_an_error_about_rejected_records_does_not_quote_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path).prepare()
    home.write_rows(ROWS, "age,sex,name")
    Shell(home, capsys).approve()
    with open_department(home.config) as department:
        (item,) = department.approved()
        with pytest.raises(InputError) as caught:
            run_round(department, item, item.survey.rounds[0], None, aids_for(department, MemoryAggregator()))
    error: BaseException | None = caught.value
    while error is not None:
        assert found_in(f"{error!r} {error} {error.__dict__}") == []
        error = error.__cause__ or error.__context__
