"""Terminals that cannot show every character: no command fails on one, and JSON loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON_ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
SYSTEM_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ASCII = pytest.mark.parametrize("encoding", [PYTHON_ASCII, SYSTEM_ASCII], ids=["of Python", "of the system"])

SAYS = """
import sys, typer
from tallyveil.cli import console, dispatch, logs
app = typer.Typer()

@app.command()
def say(json: bool = False, log: bool = False) -> None:
    if log:
        logs.configure()
        logs.Log("agent").info("done", title="\\u00c2ge \\u7edf")
    elif json:
        console.print_json({"title": "\\u00c2ge \\u7edf \\U0001f600 \\udcc3"})
    else:
        rows = [("1", "\\u2588\\u2592\\u25cf|"), ("2\\u20133", "\\u00c2ge\\u2026")]
        console.print_table(("\\u00b1 s.e.", "bar"), rows)
        print("2 \\u00d7 3 \\u7edf \\udcc3")
        print("\\u00e9lev\\u00e9", file=sys.stderr)

dispatch.installed = lambda: {"say": lambda: app}
sys.exit(dispatch.run(["say", *sys.argv[1:]]))
"""


def start(
    encoding: dict[str, str], folder: Path, *command: str | bytes, **more: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, check=False, env=environment | encoding | more
    )


@ASCII
def test_what_an_encoding_lacks_is_shown_by_the_nearest_it_has(encoding: dict[str, str], tmp_path: Path) -> None:
    done = start(encoding, tmp_path, "-c", SAYS)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode("ascii")
    assert "+- s.e." in said
    assert "#=o|" in said
    assert "2-3" in said and "Age..." in said
    assert said.endswith("2 x 3 ? ?\n")
    assert done.stderr == b"eleve\n"


@ASCII
def test_json_is_the_same_in_every_encoding(encoding: dict[str, str], tmp_path: Path) -> None:
    done = start(encoding, tmp_path, "-c", SAYS, "--json")
    assert json.loads(done.stdout.decode("ascii")) == {"title": "Âge 统 😀 \udcc3"}
    done = start(encoding, tmp_path, "-c", SAYS, "--log")
    assert json.loads(done.stderr.decode("ascii"))["fields"] == {"title": "Âge 统"}


def test_a_utf_8_terminal_shows_every_character(tmp_path: Path) -> None:
    said = start({"PYTHONIOENCODING": "utf-8"}, tmp_path, "-c", SAYS).stdout.decode()
    assert "± s.e." in said and "Âge…" in said and "2 × 3 统 ?" in said


@ASCII
def test_a_survey_with_an_accented_title_is_made_or_the_encoding_is_named(
    encoding: dict[str, str], tmp_path: Path
) -> None:
    new = ("-m", "tallyveil", "survey", "new", "--name", "age", "--title", "Âge élevé".encode(), "--purpose", "x")
    rest = ("--attribute", "age", "--domain", "15..99", "--mechanism", "grr", "--epsilon", "2")
    days = ("--opens", "2026-12-01", "--closes", "2027-01-01")
    done = start(encoding, tmp_path, *new, *rest, *days)
    said = (done.stdout + done.stderr).decode("ascii")
    if encoding is PYTHON_ASCII:  # Python reads arguments as UTF-8 all the same
        assert done.returncode == 0, said
        assert "Age eleve" in said
        assert json.loads((tmp_path / "age-v1.json").read_bytes())["title"] == "Âge élevé"
    else:
        assert done.returncode == 2
        assert "--title holds bytes that are none of the terminal's encoding, ascii" in said
        assert "UTF-8" in said
        assert list(tmp_path.iterdir()) == []
