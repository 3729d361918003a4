# pyright: standard
"""kill -9 of the aggregator between receiving and committing, and between committing and answering."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import grpc
import pytest

from aggregator_calls import Conversation, channel_of, running, send_upload
from aggregator_world import HEALTH, SURVEY, Pki, World, make_upload
from tallyveil.wire.codec import Acknowledged, Completed, Opened, Request

TESTS = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("tallyveil")
UPLOAD = make_upload()
STEPS: tuple[Request, ...] = (UPLOAD.key, *UPLOAD.batches, UPLOAD.manifest)


@contextmanager
def process(world: World, *command: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """A server process and its port; killed in the end, if it lives."""
    port_file = world.folder / "port"
    port_file.unlink(missing_ok=True)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        try:
            deadline = time.monotonic() + 30
            while not port_file.exists():
                assert started.poll() is None, started.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield started, int(port_file.read_text())
        finally:
            started.kill()
            started.communicate()


def dying(world: World, moment: str, commit: int) -> tuple[str, ...]:
    """The command of a server that dies at a commit."""
    script = str(TESTS / "aggregator_dying.py")
    return (sys.executable, script, str(world.config_file), str(world.folder / "port"), moment, str(commit))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("commit", [1, 2, 4])
def test_what_was_cut_off_by_a_kill_is_completed_after_a_restart_and_counted_once(
    world: World, pki: Pki, moment: str, commit: int
) -> None:
    world.set_up()
    with process(world, *dying(world, moment, commit)) as (server, port), channel_of(pki, port, HEALTH) as channel:
        with closing(Conversation(channel)) as conversation:
            answers = []
            with pytest.raises(grpc.RpcError):
                for step in STEPS:
                    answers.append(conversation.say(step))
        assert len(answers) == commit - 1  # the step whose commit was cut off was never acknowledged
        assert server.wait() == -signal.SIGKILL
    survived = moment == "after"
    held = tuple(batch.reference for batch in UPLOAD.batches)[: max(commit - 2 + survived, 0)]
    with running(world) as again, channel_of(pki, again.port, HEALTH) as channel:
        assert send_upload(channel, UPLOAD) == [
            Opened(held, complete=survived and commit == len(STEPS)),
            *(Acknowledged(batch.reference) for batch in UPLOAD.batches),
            Completed(len(UPLOAD.batches), UPLOAD.manifest.records),
        ]
    with world.store() as store, store.reading() as transaction:
        (stored,) = transaction.submissions.complete(SURVEY.hash, 1)
        counts = {cell: tally.counts.tolist() for cell, tally in transaction.batches.strata(stored.number)}
    assert counts == {0: list(range(1, 11)), 1: list(range(2, 12))}
    assert world.records() == UPLOAD.manifest.records


def test_serve_tells_its_port_and_ends_in_order_when_asked_to(world: World, pki: Pki) -> None:
    world.set_up()
    command = (str(COMMAND), "aggregator", "serve", "--config", str(world.config_file))
    with process(world, *command, "--port-file", str(world.folder / "port")) as (server, port):
        with channel_of(pki, port, HEALTH) as channel:
            send_upload(channel, UPLOAD)
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=60)
        assert server.returncode == 0
    lines = [json.loads(line) for line in log.splitlines()]
    events = [line["event"] for line in lines]
    assert events == ["ready", "serving", "submission opened", "submission completed", "stopping", "stopped"]
    assert lines[1]["fields"] == {"address": f"localhost:{port}", "port": port}
