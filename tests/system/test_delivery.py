# pyright: standard
"""Delivery between real processes over mutual TLS: killed or cut anywhere, a round ends complete, counted once, with
the bytes that were stored first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from aggregator_calls import running
from aggregator_world import EDUCATION, HEALTH, HIGH, NOW, SURVEY, Pki, World
from cutting_proxy import CuttingProxy
from tallyveil.batch import Batch, decode_counts
from tallyveil.domain import Categories
from tallyveil.moments import moment_text
from tallyveil.survey import Dimension, sign_survey
from tallyveil_client.agent.store import Approval, Store

TESTS = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).with_name("tallyveil"))
REGIONS = tuple(f"region-{number}" for number in range(6))
WIDE = replace(SURVEY, name="wide", dimensions=(Dimension("region", Categories(REGIONS)),))
RECORDS = 20 * len(REGIONS)
ANSWERS = 3 + len(REGIONS)
"""Of a whole run: to the announcement, the opening, each batch, and the completion."""


@dataclass
class Agent:
    """A department's folder beside a world's aggregator."""

    folder: Path
    world: World

    def prepare(self, port: int) -> None:
        """Write everything, for an aggregator at this port, and approve the survey."""
        self.folder.mkdir(exist_ok=True)
        certificate, key = self.world.pki.client(HEALTH)
        rows = [f"{value},{region}" for value in range(10) for region in REGIONS for _ in range(2)]
        for name, content in {
            "ca.pem": self.world.pki.root,
            "certificate.pem": certificate,
            "private.key": key,
            "authority.pub": self.world.pki.surveys.public.to_pem(),
            "wide.survey": sign_survey(WIDE, self.world.pki.surveys),
            "people.csv": "\n".join(["age,region", *rows]).encode(),
            "agent.toml": (
                f'[aggregator]\naddress = "localhost:{port}"\nca = "ca.pem"\ncertificate = "certificate.pem"\n'
                'private_key = "private.key"\ntimeout_s = 10\n[authority]\npublic_key = "authority.pub"\n[store]\n'
                'path = "agent.sqlite"\n[policy]\npath = "policy.toml"\n[sources.people]\nformat = "csv"\n'
                'path = "people.csv"\n[sources.people.columns]\nage = "age"\nregion = "region"\n'
            ).encode(),
            "policy.toml": (
                b'[[accounts]]\nname = "people"\nperson = "a person"\nmax_rows_per_person = 1\ntotal_epsilon = 4\n'
                b'[[collections]]\nsource = "people"\nattribute = "age"\naccount = "people"\nmax_epsilon = 2\n'
                b'guarantees = ["epsilon-LDP within bin, bin disclosed"]\ndimensions = ["region"]\nmax_rounds = 3\n'
            ),
        }.items():
            (self.folder / name).write_bytes(content)
        document = (self.folder / "wide.survey").read_bytes()
        with Store(self.folder / "agent.sqlite") as store:
            store.approve(Approval(WIDE.hash, document, HIGH, moment_text(NOW)))

    def call(self, *arguments: str) -> Any:
        """One command that must succeed; its JSON."""
        command = [COMMAND, "agent", *arguments, "--json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def insist(self, *arguments: str) -> Any:
        """The same command again and again until it succeeds; its JSON."""
        for _ in range(20):
            command = [COMMAND, "agent", *arguments, "--json"]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)
            assert done.returncode == 75, done.stdout + done.stderr
        raise AssertionError("it never succeeded")

    def die(self, point: str, passage: int) -> None:
        """A run that kills itself there."""
        command = [sys.executable, str(TESTS / "agent_dying.py"), point, str(passage), "agent", "run"]
        environment = os.environ | {"PYTHONPATH": str(TESTS)}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr

    def stored(self) -> tuple[Batch, ...]:
        """The outbox."""
        with Store(self.folder / "agent.sqlite") as store:
            return tuple(item.batch for sent in store.submissions() for item in store.outgoing(sent.key.submission_id))

    def charges(self) -> int:
        """Entries of the ledger."""
        with Store(self.folder / "agent.sqlite") as store:
            return len(store.ledger().charges)


def counted(world: World) -> dict[int, list[int]]:
    """What the aggregator counts of the one complete submission, by cell."""
    with world.store() as store, store.reading() as transaction:
        (stored,) = transaction.submissions.complete(WIDE.hash, 1)
        assert sorted(transaction.batches.references(stored.number)) != []
        return {cell: tally.counts.tolist() for cell, tally in transaction.batches.strata(stored.number)}


def contents(batches: tuple[Batch, ...]) -> dict[int, list[int]]:
    return {batch.cell: decode_counts(batch.payload, WIDE.domain.size).tolist() for batch in batches}


@pytest.fixture(scope="module")
def pki() -> Pki:
    return Pki()


@pytest.fixture
def world(tmp_path: Path, pki: Pki) -> World:
    folder = tmp_path / "aggregator"
    folder.mkdir()
    world = World(folder, pki)
    world.set_up(HEALTH, EDUCATION, surveys=(WIDE,))
    return world


@pytest.fixture
def agent(tmp_path: Path, world: World) -> Agent:
    return Agent(tmp_path / "health", world)


def test_a_run_is_complete_and_a_second_one_says_so(world: World, agent: Agent) -> None:
    with running(world) as server:
        agent.prepare(server.port)
        first, second = agent.call("run"), agent.call("run")
    assert (first["records"], first["batches"], first["was_complete"]) == (RECORDS, len(REGIONS), False)
    assert (second["records"], second["was_complete"], second["charged"]) == (RECORDS, True, 2.0)
    assert counted(world) == contents(agent.stored())
    assert agent.charges() == 1


@pytest.mark.parametrize(
    ("point", "passage"),
    [
        ("charge", 1),
        ("charged", 1),
        ("send", 2),
        ("send", 3),
        ("send", 3 + len(REGIONS)),
        ("answer", 2),
        ("answer", 5),
        ("answer", ANSWERS - 1),
        ("answer", ANSWERS),
    ],
)
def test_an_agent_killed_anywhere_goes_on_with_the_same_bytes(
    world: World, agent: Agent, point: str, passage: int
) -> None:
    with running(world) as server:
        agent.prepare(server.port)
        agent.die(point, passage)
        before = agent.stored()
        assert len(before) == (0 if point == "charge" else len(REGIONS))
        outcome = agent.call("run")
    assert outcome["resumed"] is (point != "charge")
    after = agent.stored()
    assert point == "charge" or after == before
    assert counted(world) == contents(after)
    assert agent.charges() == 1


@contextmanager
def aggregator(world: World, *command: str) -> Generator[subprocess.Popen[str]]:
    """An aggregator's process, from the moment that it answers calls."""
    port_file = world.folder / "port"
    port_file.unlink(missing_ok=True)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True) as started:
        try:
            deadline = time.monotonic() + 60
            while not port_file.exists():
                assert started.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            yield started
        finally:
            started.kill()
            started.wait()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("commit", [2, 4, 2 + len(REGIONS)])
def test_an_aggregator_killed_at_a_commit_is_waited_for(world: World, agent: Agent, moment: str, commit: int) -> None:
    port_file, config = str(world.folder / "port"), str(world.config_file)
    dying = [sys.executable, str(TESTS / "aggregator_dying.py"), config, port_file, moment, str(commit)]
    with aggregator(world, *dying) as first:
        port = int((world.folder / "port").read_text())
        agent.prepare(port)
        world.config_file.write_text(world.config_file.read_text().replace("localhost:0", f"localhost:{port}"))
        command = [COMMAND, "agent", "run", "--json"]
        with subprocess.Popen(
            command, cwd=agent.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            assert first.wait(60) == -signal.SIGKILL
            stored = agent.stored()
            with aggregator(world, COMMAND, "aggregator", "serve", "--config", config, "--port-file", port_file):
                out, err = run.communicate(timeout=120)
    assert run.returncode == 0, out + err
    assert "trying again in" in err and "the perturbed batches are safe on disk" in err
    assert agent.stored() == stored and len(stored) == len(REGIONS)
    assert counted(world) == contents(stored)
    assert agent.charges() == 1


WHOLE = 10**9
BUDGETS = (WHOLE, WHOLE, *range(900, 9_000, 600))
"""The announcement takes two connections. Those after it are cut in the handshake, before the first answer, between
answers, and at the end."""


def test_a_network_that_cuts_every_connection_for_a_while_loses_and_doubles_nothing(world: World, agent: Agent) -> None:
    with running(world) as server, CuttingProxy(server.port, BUDGETS) as proxy:
        agent.prepare(proxy.port)
        outcome = agent.insist("run")
        assert proxy.cut >= 3
    assert outcome["records"] == RECORDS
    assert counted(world) == contents(agent.stored())
    assert agent.charges() == 1


def test_a_round_closed_early_charges_nothing(world: World, agent: Agent) -> None:
    with running(world) as server:
        agent.prepare(server.port)
        with world.store() as store, store.writing() as transaction:
            transaction.rounds.set_closed(WIDE.hash, 1, NOW)
        command = [COMMAND, "agent", "run"]
        done = subprocess.run(command, cwd=agent.folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 7, done.stderr
    assert "the round is closed" in done.stderr and "nothing was charged, stored or sent" in done.stderr
    assert agent.stored() == () and agent.charges() == 0


def test_a_second_submission_is_refused_uncharged(world: World, agent: Agent) -> None:
    with running(world) as server:
        agent.prepare(server.port)
        agent.call("run")
        twin = Agent(agent.folder.with_name("twin"), world)
        twin.prepare(server.port)
        command = [COMMAND, "agent", "run"]
        done = subprocess.run(command, cwd=twin.folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 7, done.stderr
    assert "this department has another submission for this round" in done.stderr
    assert twin.stored() == () and twin.charges() == 0
    assert counted(world) == contents(agent.stored())


def test_a_survey_is_approved_by_its_hash(world: World, agent: Agent) -> None:
    with running(world) as server:
        agent.prepare(server.port)
        assert agent.call("approve", WIDE.hash, "--epsilon", "2", "--yes")["approved"] == "wide@1"
