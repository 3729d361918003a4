"""`tallyveil demo` from the command line: what it prints, what it keeps, and that an independent script believes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tallyveil.binning import Binning
from tallyveil.release import open_release
from tallyveil.signing import VerifyingKey
from tallyveil.survey import survey_from_json
from tallyveil_demo.chart import Bar, draw_chart
from tallyveil_demo.deployment import SIGNED_SURVEY
from tallyveil_demo.offices import load_offices
from tallyveil_demo.outcome import clear_counts, mape, national_truth, simulated_mape

pytestmark = pytest.mark.xdist_group("demo")  # one process runs the demo once for all of these
VERIFIER = Path(__file__).parents[1] / "verify_release.py"
COMMAND = str(Path(sys.executable).with_name("tallyveil"))


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    folder = tmp_path_factory.mktemp("demo") / "kept"
    done = run(COMMAND, "demo", "--json", "--keep", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, json.loads(done.stdout)


def test_the_demo_prints_one_object_with_the_figures(kept: tuple[Path, dict[str, object]]) -> None:
    _, figures = kept
    assert figures["records"] == 16_685
    assert figures["departments"] == 17
    assert figures["bins"] == 16
    assert figures["release_verified"] is True
    mape_brr, mape_grr = figures["mape_brr"], figures["mape_grr"]
    assert isinstance(mape_brr, float) and isinstance(mape_grr, float)
    assert 0.05 < mape_brr < 0.5  # 0.214 with a standard deviation of 0.029 in one run
    assert mape_grr > 10 * mape_brr
    assert isinstance(figures["mape_ss"], float)
    assert (figures["clear_counts"], figures["empty"]) == (256, 16)


def test_an_independent_script_verifies_what_the_demo_keeps(kept: tuple[Path, dict[str, object]]) -> None:
    folder, _ = kept
    release, key = folder / "release.json", folder / "release.pub"
    assert run(sys.executable, VERIFIER, release, key).returncode == 0
    altered = folder / "altered.json"
    altered.write_bytes(release.read_bytes().replace(b'"records":16685', b'"records":16686', 1))
    assert run(sys.executable, VERIFIER, altered, key).returncode != 0


def test_the_demo_s_release_is_of_the_survey_the_offices_approved(kept: tuple[Path, dict[str, object]]) -> None:
    folder, _ = kept
    key = VerifyingKey.from_pem((folder / "release.pub").read_bytes())
    release = open_release((folder / "release.json").read_bytes(), key).release
    signed = json.loads((folder / SIGNED_SURVEY).read_bytes())
    assert release.survey == survey_from_json(signed["body"])
    assert [item.department for item in release.participants] == sorted(office.name for office in load_offices())


def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    done = run(COMMAND, "demo", "--keep", tmp_path)
    assert done.returncode == 2
    assert "is not an empty folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("place", ["/proc/x", "/proc/x/y", "file/kept", "sealed/kept", "n" * 300])
def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "sealed").mkdir(mode=0o500)
    if place.startswith("sealed") and os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    done = run(COMMAND, "demo", "--keep", tmp_path / place)
    assert done.returncode == 2, done.stderr
    assert "cannot make folder" in done.stderr
    assert "not done: the demo was not run" in done.stderr


@pytest.mark.parametrize("place", ["kept", "new/kept", "there"])
def test_an_interrupted_demo_removes_what_it_made(tmp_path: Path, place: str) -> None:
    (tmp_path / "there").mkdir()
    keep = tmp_path / place
    demo = subprocess.Popen(
        [COMMAND, "demo", "--keep", keep], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (keep.exists() and any(keep.iterdir())):
        time.sleep(0.02)
    os.killpg(demo.pid, signal.SIGINT)
    _, said = demo.communicate(timeout=60)
    assert demo.returncode == 130, said
    assert "the files it had made are removed" in said
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert list((tmp_path / "there").iterdir()) == []


def test_the_table_of_counts_is_the_one_described() -> None:
    offices = load_offices()
    truth = national_truth(offices)
    assert len(offices) == 17
    assert int(truth.sum()) == 16_685
    assert truth.size == 85 and int(truth.min()) > 0
    assert [int(truth[age - 15]) for age in (15, 17, 89, 96, 98)] == [2, 4, 5, 3, 4]


def test_an_office_s_file_has_a_row_for_each_head(tmp_path: Path) -> None:
    office = load_offices()[0]
    office.write_csv(tmp_path / "heads.csv")
    assert len((tmp_path / "heads.csv").read_text().splitlines()) == 1 + int(office.counts.sum())


def test_errors_are_judged_over_the_cells_that_hold_somebody() -> None:
    offices = load_offices()
    truth = national_truth(offices)
    assert mape((truth * 1.5).astype(np.float64), truth) == pytest.approx(0.5)
    truth[3] = 0
    assert mape(truth.astype(np.float64), truth) == 0.0
    assert 5 < simulated_mape("grr", national_truth(offices), 2.0) < 14  # 9.16, sd of one run 1.6


def test_the_clear_counts_are_those_per_office_and_bin() -> None:
    offices = load_offices()
    clear = clear_counts(offices, Binning(85, 16))
    assert clear.shape == (17, 16)
    assert [int(total) for total in clear.sum(axis=1)] == [int(office.counts.sum()) for office in offices]


def test_a_chart_shows_every_bar_or_thins_them_evenly() -> None:
    bars = [Bar(str(15 + number), 10.0, 8.0, 4.0, 12.0) for number in range(85)]
    wide = draw_chart(bars, height=8, width=100).plain.splitlines()
    narrow = draw_chart(bars, height=8, width=60).plain.splitlines()
    assert len(wide) == len(narrow) == 8 + 2
    assert sum(line.count("●") for line in wide) == 85
    assert sum(line.count("●") for line in narrow) == 43
    assert all(len(line) <= 60 for line in narrow)
