"""`tallyveil survey plan`, and the walk through a plan in `survey new`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tallyveil.cli import dispatch
from tallyveil.cli.survey_files import read_any
from tallyveil.guarantee import KINDS

PLAN = {"--domain": "15..99", "--records": "16685", "--epsilon": "2", "--bins": "8,16", "--departments": "17"}
NEW = {
    "--name": "age",
    "--title": "Age",
    "--purpose": "To be tested",
    "--attribute": "age",
    "--domain": "15..99",
    "--epsilon": "2",
    "--opens": "2026-12-01",
    "--closes": "2027-01-01",
}

Run = Callable[..., tuple[int, Any]]


def typed(command: str, options: dict[str, str]) -> list[str]:
    return ["survey", command, *(item for pair in options.items() for item in pair)]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in an empty folder: its exit code, and what it printed (as JSON where asked for)."""
    monkeypatch.chdir(tmp_path)

    def go(arguments: list[str], *more: str) -> tuple[int, Any]:
        code = dispatch.run([*arguments, *more])
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if "--json" in more else printed.out + printed.err

    return go


@pytest.mark.parametrize(
    "changes",
    [
        {"--target-error": "12.5%"},
        {"--domain": "1..3000", "--records": "900000000", "--bins": "700"},
        {"--domain": "a,b", "--bins": "1", "--records": "40"},
    ],
)
def test_a_plan_fits_100_columns_and_states_kinds_and_what_is_not_protected(run: Run, changes: dict[str, str]) -> None:
    code, said = run(typed("plan", PLAN | changes))
    assert code == 0
    assert max(len(line.rstrip()) for line in said.splitlines()) <= 100
    assert "NOT protected: being in the table at all" in said
    assert "\nepsilon-LDP\n" in said
    assert "\nepsilon-DP at the department\n" in said
    assert "\nTake " in said
    bins_in_clear = "epsilon-LDP within bin, bin disclosed (only where asked for by name)" in said
    assert bins_in_clear == ("NOT protected: the bin of every record" in said) == ("a,b" not in changes.values())


def test_a_plan_as_json_holds_everything(run: Run, tmp_path: Path) -> None:
    code, plan = run(typed("plan", PLAN | {"--target-error": "10%"}), "--json")
    assert code == 0
    assert (plan["values"], plan["records"], plan["epsilon"], plan["departments"]) == (85, 16685, 2.0, 17)
    assert (plan["recommended"], plan["bins"], plan["target_mape"]) == ("ss", [8, 16], 0.1)
    assert "equally frequent" in plan["case"]
    rows = {(item["mechanism"], item["bins"]): item for item in plan["options"]}
    assert {item["guarantee"]["kind"] for item in plan["options"]} == set(KINDS)
    binned, subsets = rows["brr", 16], rows["ss", 1]
    assert binned["bin_standard_errors"]["16"] == 0
    assert len(subsets["standard_errors"]) == 85
    assert subsets["standard_error"] == pytest.approx(107.7, abs=0.1)
    assert subsets["records_needed"] > 300_000 > 16_685 > binned["records_needed"]
    assert subsets["epsilon_needed"] > 2 > binned["epsilon_needed"]
    assert all(item["guarantee"]["not_protected"] for item in plan["options"])
    assert all(item["bytes_per_department"] > 0 for item in plan["options"])
    assert list(tmp_path.iterdir()) == []


def test_a_prior_is_used_and_said(run: Run) -> None:
    rows = ["age,count", *(f"{age},{100 if age < 40 else 0}" for age in range(15, 100))]
    Path("prior.csv").write_text("\n".join(rows))
    code, plan = run(typed("plan", PLAN | {"--prior": "prior.csv"}), "--json")
    assert (code, plan["values_with_records"]) == (0, 25)
    assert "as the prior has it" in plan["case"]
    Path("prior.csv").write_text("\n".join([*rows, "100,3"]))
    code, refused = run(typed("plan", PLAN | {"--prior": "prior.csv"}), "--json")
    assert code == 2
    assert refused["error"]["what"].endswith("row 87")


BAD = {
    "epsilon": ({"--epsilon": "17"}, "0.01 to 16"),
    "domain": ({"--domain": "15..15"}, "low end below its high end"),
    "records": ({"--records": "0"}, "1 to 2^53"),
    "negative departments": ({"--departments": "-1"}, "1 to 100000 departments"),
    "departments in words": ({"--departments": "many"}, "whole numbers"),
    "shares": ({"--departments": "16000,600"}, "sum to the number of records"),
    "bins of one value": ({"--bins": "8,43"}, "a bin of one value would show it; 43 were asked for"),
    "bins in words": ({"--bins": "8;16"}, "whole numbers"),
    "target without a unit": ({"--target-error": "10"}, "a percentage"),
    "target 0": ({"--target-error": "0%"}, "a percentage"),
    "target nan": ({"--target-error": "nan%"}, "a percentage"),
    "no prior there": ({"--prior": "absent.csv"}, "cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_no_mechanism_can_do_is_refused_in_words(run: Run, tmp_path: Path, case: str) -> None:
    changes, says = BAD[case]
    code, said = run(typed("plan", PLAN | changes), "--json")
    assert code == 2
    assert says in said["error"]["what"]
    assert list(tmp_path.iterdir()) == []


def test_departments_may_be_listed(run: Run) -> None:
    code, plan = run(typed("plan", PLAN | {"--departments": "16000,600,85"}), "--json")
    assert (code, plan["departments"], plan["largest_department_records"]) == (0, 3, 16000)


@pytest.mark.parametrize(("epsilon", "mechanism"), [("2", "ss"), ("6", "grr")])
def test_auto_is_stored_as_what_it_stands_for(run: Run, epsilon: str, mechanism: str) -> None:
    code, made = run(typed("new", NEW | {"--epsilon": epsilon, "--mechanism": "auto"}), "--json")
    assert (code, made["mechanism"]) == (0, mechanism)
    assert read_any(Path("age-v1.json")).survey.mechanism == mechanism
    assert b"auto" not in Path("age-v1.json").read_bytes()


def test_without_a_terminal_a_mechanism_is_to_be_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        code, said = run(typed("new", NEW), "--json")
        assert (code, said["error"]["kind"]) == (2, "usage")
        code, said = run(typed("new", NEW))
    assert code == 2
    assert "survey plan" in said
    assert list(tmp_path.iterdir()) == []


def walk(folder: Path, answers: str) -> tuple[int, str]:
    """`survey new` without a mechanism on a terminal, with these answers typed: exit code, and the screen."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "120", "TERM": "dumb"}
    command = [sys.executable, "-m", "tallyveil", *typed("new", NEW)]
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        screen = bytearray()
        try:
            while chunk := os.read(ours, 4096):
                screen += chunk
        except OSError:
            pass  # how a terminal ends on Linux
        os.close(ours)
    return process.returncode, screen.decode()


def test_on_a_terminal_the_author_is_walked_through_a_plan_to_the_recommended_mechanism(tmp_path: Path) -> None:
    code, screen = walk(tmp_path, "16685\n17\n\n")
    assert code == 0, screen
    assert "brr-sealed" in screen
    assert "Take ss" in screen
    assert "Mechanism [ss]" in screen
    survey = read_any(tmp_path / "age-v1.json").survey
    assert (survey.mechanism, survey.bins) == ("ss", 1)


def test_bins_are_disclosed_only_where_the_author_names_the_mechanism(tmp_path: Path) -> None:
    code, screen = walk(tmp_path, "16685\n\nbrrr\nbrr\n8\n")
    assert code == 0, screen
    assert "one of grr, brr" in screen
    survey = read_any(tmp_path / "age-v1.json").survey
    assert (survey.mechanism, survey.bins) == ("brr", 8)


def test_a_walk_with_an_impossible_answer_makes_nothing(tmp_path: Path) -> None:
    code, screen = walk(tmp_path, "16685\n20000\n")
    assert code == 2
    assert "at least one record each" in screen
    assert list(tmp_path.iterdir()) == []
