"""Running the `tallyveil` command as separate processes, as operators would.

Not here: which commands the demo runs (`deployment`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from tallyveil.errors import InternalError

TIMEOUT_S = 60.0
PARALLEL = 2

Answer = dict[str, object]


def run_tallyveil(arguments: Sequence[str | Path], folder: Path) -> Answer:
    """Run one command with ``--json`` and return what it printed.

    Raises:
        InternalError: It failed; its own error is told.
    """
    finished = subprocess.run(
        [sys.executable, "-m", "tallyveil", *map(str, arguments), "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if finished.returncode != 0:
        raise InternalError(
            f"the demo's step failed: tallyveil {' '.join(map(str, arguments))}: "
            f"{(finished.stdout + finished.stderr).strip()[-2000:]}",
            not_done="the demo stopped here",
            next_step="run it again with --keep DIR and look at the files there",
        )
    return cast(Answer, json.loads(finished.stdout)) if finished.stdout.strip() else {}


def run_together(jobs: Sequence[Callable[[], Answer]], on_done: Callable[[], None]) -> list[Answer]:
    """Run jobs a few at a time, in order of their places; `on_done` is called after each."""
    with ThreadPoolExecutor(PARALLEL) as pool:

        def run(job: Callable[[], Answer]) -> Answer:
            answer = job()
            on_done()
            return answer

        return list(pool.map(run, jobs))


@contextmanager
def serving(arguments: Sequence[str | Path], folder: Path, port_file: Path) -> Generator[int]:
    """Keep a server running; yields the port it wrote to `port_file` once it served.

    Raises:
        InternalError: It ended, or did not serve in time; the end of its log is told.
    """
    log_file = folder / "aggregator.log"
    with log_file.open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "tallyveil", *map(str, arguments), "--port-file", str(port_file)],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            yield _await_port(server, port_file, log_file)
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _await_port(server: subprocess.Popen[bytes], port_file: Path, log_file: Path) -> int:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        if port_file.exists():
            return int(port_file.read_text())
        time.sleep(0.02)
    raise InternalError(
        f"the aggregator did not start: {log_file.read_text(errors='replace').strip()[-2000:]}",
        not_done="the demo stopped here",
        next_step="run it again with --keep DIR and look at the files there",
    )
