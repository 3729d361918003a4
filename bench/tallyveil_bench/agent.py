# pyright: standard
"""The agent on a large Parquet file: reading, checking, perturbing and sealing, beside pyarrow counting the column.

Not here: sending. Each part runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np

from tallyveil.cli.console import print_table
from tallyveil.domain import Integers
from tallyveil.epsilon import to_nano
from tallyveil.survey import Minimums, Round, Survey

LOW, HIGH, BINS, EPSILON = 15, 99, 16, 2.0
ROW_GROUP = 1_000_000

Result = TypeVar("Result")


@dataclass(frozen=True)
class AgentFigures:
    """Seconds and peak resident memory of the agent's pass, beside pyarrow's own."""

    rows: int
    accepted: int
    agent_s: float
    agent_peak_mb: float
    pyarrow_s: float
    pyarrow_peak_mb: float

    @property
    def ratio(self) -> float:
        """The agent's time over pyarrow's."""
        return self.agent_s / self.pyarrow_s


def measure_agent(rows: int) -> AgentFigures:
    """Make a file of `rows` rows, run both over it, and delete it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        _in_own_process(_write, path, rows)
        accepted, agent_s, agent_peak_mb = _in_own_process(_run_agent, path)
        counted, pyarrow_s, pyarrow_peak_mb = _in_own_process(_count_with_pyarrow, path)
    if not accepted == counted == rows:
        raise AssertionError("the agent and pyarrow did not see the same records")
    return AgentFigures(rows, accepted, agent_s, agent_peak_mb, pyarrow_s, pyarrow_peak_mb)


def show_agent(figures: AgentFigures) -> None:
    """A table in the terminal."""
    rows = [
        ("agent: read, check, perturb, seal", f"{figures.agent_s:.2f}", f"{figures.agent_peak_mb:.0f}"),
        ("pyarrow: read and count", f"{figures.pyarrow_s:.2f}", f"{figures.pyarrow_peak_mb:.0f}"),
        ("ratio", f"{figures.ratio:.1f}", ""),
    ]
    title = f"A Parquet file of {figures.rows:,} rows, one core"
    print_table(("", "seconds", "peak memory, MB"), rows, title=title, right=("seconds", "peak memory, MB"))


def _in_own_process(work: Callable[..., Result], *arguments: object) -> Result:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def _write(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("age", pa.int32()), ("household", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, ROW_GROUP):
            numbers = np.arange(start, min(start + ROW_GROUP, rows), dtype=np.int64)
            ages = (LOW + numbers * 7919 % (HIGH - LOW + 1)).astype(np.int32)
            writer.write_table(pa.table([ages, numbers], schema=schema))


def _run_agent(path: Path) -> tuple[int, float, float]:
    from tallyveil.batch import SubmissionKey
    from tallyveil.mechanisms import for_survey
    from tallyveil.randomness import public_token
    from tallyveil_client.agent.collect import collect, seal
    from tallyveil_client.agent.config import SourceConfig
    from tallyveil_client.agent.scan import scan

    survey, epsilon = _survey(), to_nano(EPSILON)
    source = SourceConfig(name="records", format="parquet", columns={"age": "age"}, path=path)
    start = time.perf_counter()
    mechanism = for_survey(survey, epsilon)
    collected = collect(scan(source, survey), survey, mechanism)
    seal(collected, mechanism.law, SubmissionKey(survey.hash, 1, epsilon, public_token()), public_token)
    return collected.summary.accepted, time.perf_counter() - start, _peak_mb()


def _count_with_pyarrow(path: Path) -> tuple[int, float, float]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    start = time.perf_counter()
    counted = 0
    for batch in pq.ParquetFile(path).iter_batches(columns=["age"]):
        counted += pc.sum(pc.value_counts(batch.column(0)).field("counts")).as_py()
    return counted, time.perf_counter() - start, _peak_mb()


def _survey() -> Survey:
    opens, closes = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    return Survey(
        name="bench",
        version=1,
        title="Ages",
        purpose="A benchmark.",
        attribute="age",
        domain=Integers(LOW, HIGH),
        bins=BINS,
        mechanism="brr",
        epsilons=(to_nano(EPSILON),),
        epsilon_floor=to_nano(EPSILON),
        dimensions=(),
        rounds=(Round(1, opens, closes),),
        minimums=Minimums(),
        quota=10**12,
        expires=closes,
    )


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
