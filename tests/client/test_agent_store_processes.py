"""The agent's store between processes: killed in the middle, or several at once."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from agent_world import KEY, NOW, SURVEY, charge_often, make_round, store_the_same, stored_in
from tallyveil.epsilon import NANO
from tallyveil.errors import PolicyError
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


def run_script(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_failing_write_is_said_plainly_and_leaves_nothing_half_done(path: Path) -> None:
    """A limit on file sizes stands for a disk that fails in the middle."""
    with Store(path) as store:
        store.commit_round(make_round())
    script = (
        "import resource, sys\n"
        "from agent_world import make_round\n"
        "from pathlib import Path\n"
        "from tallyveil.errors import UnavailableError\n"
        "from tallyveil_client.agent.store import Store\n"
        "with Store(Path(sys.argv[1])) as store:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000))\n"
        "    try:\n"
        "        store.commit_round(make_round(number=2, cells=1000))\n"
        "    except UnavailableError as error:\n"
        "        print(error.what)\n"
    )
    done = run_script(script, path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("writing or reading failed")
    with Store(path) as store:
        assert stored_in(store) == (1, 1, 2)


KILLED = """
import os, signal, sys
from pathlib import Path
from agent_world import make_round
from tallyveil_client.agent.store import Store

statements = 0
def count(sql):
    global statements
    statements += 1
    if statements == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

with Store(Path(sys.argv[1])) as store:
    store._database.connection.set_trace_callback(count)
    store.commit_round(make_round(number=2, cells=5))
print(statements)
"""


def test_kill_9_in_the_middle_leaves_charge_and_batches_or_neither(path: Path) -> None:
    with Store(path) as store:
        store.commit_round(make_round())
    before = path.with_name("before")
    before.mkdir()
    for file in (path, path.with_name(path.name + ".head")):
        shutil.copy(file, before)
    statements = int(run_script(KILLED, path, -1).stdout)
    assert statements > 10
    found = set[tuple[int, int, int]]()
    for at in range(1, statements + 1):
        for file in [*path.parent.glob("agent.sqlite*")]:
            file.unlink()
        for file in before.iterdir():
            shutil.copy(file, path.parent)
        assert run_script(KILLED, path, at).returncode == -9
        with Store(path) as store:
            found.add(stored_in(store))
            if stored_in(store)[0] == 1:
                store.commit_round(make_round(number=2, cells=5))
            assert stored_in(store) == (2, 2, 7)
    assert found == {(1, 1, 2), (2, 2, 7)}


def test_eight_processes_with_fifty_charges_each_come_to_the_exact_total(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=charge_often, args=(str(path), number, 50)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(240)
    assert [worker.exitcode for worker in workers] == [0] * 8
    with Store(path) as store:
        assert stored_in(store) == (400, 400, 400)
        assert store.ledger().spent("people") == 800 * NANO
        with pytest.raises(PolicyError):
            store.commit_round(make_round(name="more", total=800 * NANO))


def test_of_two_runs_at_once_one_stores_and_the_other_is_told_so(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    workers = [context.Process(target=store_the_same, args=(str(path), barrier, seed)) for seed in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert sorted(worker.exitcode or 0 for worker in workers) == [0, 4]
    with Store(path) as store:
        assert stored_in(store) == (1, 1, 2)
