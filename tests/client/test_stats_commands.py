# pyright: standard
"""How releases are shown, verified and exported by `tallyveil stats`.

Not here: what is fetched and believed (`test_statistics`).
"""

from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from consumer_scene import TWO, Scene, release_of, summary, survey_of
from tallyveil.cli import dispatch
from tallyveil.domain import Categories
from tallyveil.errors import IntegrityError
from tallyveil.release import Participant, VerifiedRelease, open_release, sign_release
from tallyveil.survey import Dimension, sign_survey
from tallyveil_client.consumer.export import to_csv, to_document
from tallyveil_client.consumer.rendering import BAR_WIDTH, error_bar


def run(*arguments: str) -> int:
    return dispatch.run(["stats", *arguments])


def test_stats_get_shows_uncertainty_guarantee_and_what_is_not_protected(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("get", "age", *scene.connection) == 0
    said = capsys.readouterr().out
    assert "± s.e." in said
    assert "95 % from" in said
    assert "2 more tables" in said
    assert "NOT protected" in said
    assert "the bin of every record" in said
    assert "being in the table at all" in said
    assert "all records: 137 records" in said


def test_stats_get_shows_the_cells_asked_for(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("get", "age", "--cell", "sex=Male", *scene.connection) == 0
    said = capsys.readouterr().out
    assert "sex = Male: 72 records" in said
    assert "sex = Female" not in said
    for wrong in ("sex=Unknown", "region=1", "sex"):
        assert run("get", "age", "--cell", wrong, *scene.connection) == 2


def test_stats_get_keeps_the_signed_bytes_and_overwrites_nothing(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "age.release.json"
    assert run("get", "age", "--output", str(output), *scene.connection, "--json") == 0
    assert json.loads(capsys.readouterr().out)["records"] == 137
    assert output.read_bytes() == scene.stand_in.document
    assert run("get", "age", "--output", str(output), *scene.connection) == 2
    assert run("get", "age", "--output", str(output), "--force", *scene.connection) == 0


def test_stats_get_says_whether_the_release_was_kept(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("get", "age", *scene.connection) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Not kept: --output FILE keeps the signed file."
    assert run("get", "age", "--output", str(tmp_path / "kept"), *scene.connection) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Kept, as it was signed: {tmp_path / 'kept'}"


def test_what_is_not_protected_is_said_before_a_table_and_an_interval_s_meaning_below_it(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("get", "age", *scene.connection) == 0
    said = capsys.readouterr().out
    table = said.index("all records: 137 records")
    assert said.index("NOT protected") < table
    assert any(row.estimate < row.low for row in release_of().tables[0].rows)
    assert "its interval is of the true count, which cannot be" in " ".join(said[table:].split())


def test_a_narrow_terminal_shows_estimates_and_intervals_whole(
    scene: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    scene.stand_in.releases = [summary()]
    assert run("list", *scene.connection) == 0
    assert run("get", "age", *scene.connection) == 0
    said = capsys.readouterr().out
    assert "Too narrow here for: release, revision, released." in " ".join(said.split())
    row = release_of().tables[0].rows[0]
    numbers = (f"{row.estimate:.1f}", f"{row.standard_error:.1f}", f"{row.low.normalize():f}", f"{row.high:.0f}")
    assert re.search(" +".join(map(re.escape, (row.value, *numbers))), said)
    assert all(len(line) <= 40 or re.fullmatch("[0-9a-f]{64}", line) for line in said.splitlines())


def test_stats_summary_shows_mean_and_quartiles_with_their_errors(
    tmp_path: Path, scene: Scene, chain: list[VerifiedRelease], capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key", str(scene.folder / "release.pub"))
    assert run("summary", str(tmp_path / "first.json"), *key, "--range", "0..3", "--second") == 0
    said = capsys.readouterr().out
    assert "quantile 0.5" in said and "0 to 3" in said
    assert said.index("NOT protected") < said.index("Second columns")
    assert run("summary", str(tmp_path / "first.json"), *key, "--json") == 0
    assert json.loads(capsys.readouterr().out)["summaries"][0]["records"] == 137


def test_a_folder_that_is_no_consumer_s_is_said_so(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for name, says in (("absent", "there is no folder"), ("empty", "not the folder of a consumer's credentials")):
        assert run("get", "age", "--server", scene.server, "--credentials", str(tmp_path / name)) == 2
        said = capsys.readouterr().err
        assert says in said
        assert "not done: nothing was fetched" in said and "tallyveil pki consumer" in said
    (scene.folder / "release.pub").unlink()
    assert run("get", "age", *scene.connection) == 2
    assert "the the" not in capsys.readouterr().err


def test_a_survey_is_called_one_and_not_an_altered_release(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "age.survey").write_bytes(sign_survey(survey_of(), scene.key))
    (tmp_path / "age.json").write_text(json.dumps(survey_of().to_json(), indent=1))
    key = ("--key", str(scene.folder / "release.pub"))
    for command in ("verify", "summary", "export"):
        for name, says in (("age.survey", "is a survey, not a release"), ("age.json", "is the draft of a survey")):
            assert run(command, str(tmp_path / name), *key) == IntegrityError.exit_code
            assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["get", "age", "--timeout", "nan"],
        ["get", "age", "--timeout", "0"],
        ["get", "age", "--round", "0"],
        ["get", "age", "--cell", "sex"],
        ["get", "age", "--cell", "sex=Unknown"],
        ["export", "first.json"],
        ["export", "absent.json"],
        ["verify", "first.json", "--key", "first.json"],
    ],
)
def test_a_mistake_says_what_was_not_done_and_what_to_do(
    scene: Scene,
    chain: list[VerifiedRelease],
    tmp_path: Path,
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, *(scene.connection if arguments[0] == "get" else ()), "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["not_done"] and error["next"]


def test_what_is_exported_to_standard_output_is_the_file_whatever_the_encoding(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = survey_of(dimensions=(Dimension("sex", Categories(("Âgée", "Âgé"))),))
    scene.stand_in.document = sign_release(release_of(survey), scene.key)
    assert run("export", "age", "--output", str(tmp_path / "file"), *scene.connection) == 0
    printed = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(printed, encoding="ascii"))
    assert run("export", "age", *scene.connection) == 0
    assert printed.getvalue() == (tmp_path / "file").read_bytes()


def test_stats_list_says_that_it_is_unverified(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.stand_in.releases = [summary()]
    assert run("list", *scene.connection) == 0
    assert "As the server says" in capsys.readouterr().out
    assert run("list", *scene.connection, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["verified"] is False
    assert listed["releases"][0]["release_hash"] == "01" * 32


@pytest.fixture
def chain(tmp_path: Path, scene: Scene) -> list[VerifiedRelease]:
    """Two releases, the second after the first, kept as first.json and second.json."""
    first = open_release(sign_release(release_of(), scene.key), scene.key.public)
    second = open_release(sign_release(release_of(round=2, previous=first.hash), scene.key), scene.key.public)
    (tmp_path / "first.json").write_bytes(first.document)
    (tmp_path / "second.json").write_bytes(second.document)
    return [first, second]


def verified_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run("verify", *arguments, "--json") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_stats_verify_says_what_was_checked(
    tmp_path: Path, scene: Scene, chain: list[VerifiedRelease], capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key", str(scene.folder / "release.pub"))
    first, second = str(tmp_path / "first.json"), str(tmp_path / "second.json")
    assert verified_json(capsys, first, *key)["chain"] == "first"
    assert verified_json(capsys, second, *key)["chain"] == "not checked"
    linked = verified_json(capsys, second, *key, "--previous", first)
    assert (linked["verified"], linked["chain"], linked["release_hash"]) == (True, "holds", chain[1].hash)
    assert [item["check"] for item in linked["checks"]] == [
        "form",
        "signature",
        "numbers",
        "survey",
        "chain",
        "release",
    ]
    assert linked["numbers"] == 3 * (8 * 5 + 2)
    assert run("verify", first, *key) == 0
    said = capsys.readouterr().out
    assert "VERIFIED: age version 1, round 1" in said
    assert "NOT protected" in said


def test_stats_verify_fails_where_a_release_does_not_follow(
    tmp_path: Path, scene: Scene, chain: list[VerifiedRelease], capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key", str(scene.folder / "release.pub"))
    first, second = str(tmp_path / "first.json"), str(tmp_path / "second.json")
    assert run("verify", first, *key, "--previous", second) == IntegrityError.exit_code
    assert run("verify", second, *key, "--previous", second) == IntegrityError.exit_code
    assert run("verify", second, "--key", str(scene.folder / "certificate.pem")) == 2
    assert run("verify", str(tmp_path / "absent.json"), *key) == 2
    capsys.readouterr()


def test_the_csv_carries_uncertainty_guarantee_and_hash_in_every_line(
    tmp_path: Path, scene: Scene, chain: list[VerifiedRelease]
) -> None:
    output = tmp_path / "age.csv"
    arguments = ["export", str(tmp_path / "first.json"), "--key", str(scene.folder / "release.pub")]
    assert run(*arguments, "--format", "csv", "--output", str(output)) == 0
    rows = list(csv.DictReader(StringIO(output.read_text())))
    assert ",".join(rows[0]) == (
        "survey,version,round,revision,sex,value,bin,estimate,standard_error,low,high,quality,n,guarantee,release_hash"
    )
    assert len(rows) == 3 * 8
    assert {row["release_hash"] for row in rows} == {chain[0].hash}
    assert all("bin disclosed" in row["guarantee"] and "not protected" in row["guarantee"] for row in rows)
    assert [row["sex"] for row in rows] == [""] * 8 + ["Female"] * 8 + ["Male"] * 8
    assert [row["n"] for row in rows[::8]] == ["137", "65", "72"]
    row = chain[0].release.tables[2].rows[4]
    assert (rows[20]["estimate"], rows[20]["low"]) == (f"{row.estimate:f}", f"{row.low:f}")


def test_the_json_holds_numbers_and_sums_of_each_bin(
    scene: Scene, chain: list[VerifiedRelease], capsys: pytest.CaptureFixture[str]
) -> None:
    document: Any = json.loads(json.dumps(to_document(chain[0])))
    for table in document["tables"]:
        for item in table["bins"]:
            held = sum(row["estimate"] for row in table["rows"] if row["bin"] == item["bin"])
            assert held == pytest.approx(item["records"], abs=1e-5)
        assert all(isinstance(row[name], float) for row in table["rows"] for name in ("estimate", "standard_error"))
    assert document["guarantees"][0]["not_protected"]
    assert run("export", "age", *scene.connection, "--json") == 0
    assert json.loads(capsys.readouterr().out) == document


def test_a_table_is_exported_to_a_file_whole(
    tmp_path: Path, scene: Scene, chain: list[VerifiedRelease], capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "age.txt"
    arguments = [
        "export",
        str(tmp_path / "first.json"),
        "--key",
        str(scene.folder / "release.pub"),
        "--format",
        "table",
    ]
    assert run(*arguments, "--output", str(output)) == 0
    assert capsys.readouterr().out == ""
    text = output.read_text()
    assert "sex = Female" in text
    assert "NOT protected" in text
    assert run(*arguments) == 0
    assert capsys.readouterr().out == text


def test_export_refuses_what_it_cannot_verify(tmp_path: Path, scene: Scene, chain: list[VerifiedRelease]) -> None:
    altered = tmp_path / "altered.json"
    altered.write_bytes(chain[0].document.replace(b'"round":1', b'"round":2'))
    output = tmp_path / "age.csv"
    key = ("--key", str(scene.folder / "release.pub"))
    assert run("export", str(altered), *key, "--output", str(output)) == IntegrityError.exit_code
    assert run("export", str(tmp_path / "first.json"), "--output", str(output)) == 2
    assert run("export", "age", "--output", str(output)) == 2
    assert not output.exists()


def test_an_error_bar_spans_its_interval_and_marks_the_estimate(chain: list[VerifiedRelease]) -> None:
    row = chain[0].release.tables[0].rows[0]
    assert error_bar(row, 0.0) == ""
    for top in (float(row.high), 2 * float(row.high)):
        bar = error_bar(row, top)
        assert bar.count("●") == 1
        assert len(bar) == pytest.approx(BAR_WIDTH * float(row.high) / top, abs=1)
    negative = replace(row, estimate=-row.estimate, low=row.low * 0, high=row.low * 0)
    assert error_bar(negative, 10.0) == "●"


def test_an_empty_release_is_shown_and_exported(scene: Scene) -> None:
    empty = release_of(participants=(Participant("health", TWO),), pools=())
    scene.stand_in.document = sign_release(empty, scene.key)
    with scene.consumer() as statistics:
        verified = statistics.get("age")
    assert to_csv(verified).count("\n") == 1 + 3 * 8
    assert run("get", "age", *scene.connection) == 0
