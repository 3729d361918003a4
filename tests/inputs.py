"""Surveys, sources and files for tests of the agent's input."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tallyveil.domain import Categories, Domain, Integers
from tallyveil.epsilon import to_nano
from tallyveil.survey import Dimension, Minimums, Round, Survey
from tallyveil_client.agent.cells import Reason
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.filter import parse_filter
from tallyveil_client.agent.scan import Summary, scan

MESSY = Path(__file__).parent / "vectors" / "messy"
AGES = Integers(15, 98)
_START = datetime(2026, 12, 1, tzinfo=UTC)


def survey(
    domain: Domain = AGES,
    *,
    attribute: str = "age",
    mechanism: str = "grr",
    bins: int = 1,
    bin_values: int = 2,
    epsilon: float = 2,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    rounds: int = 1,
) -> Survey:
    """A survey, of no interest but for what is said."""
    starts = [_START + timedelta(days=number) for number in range(rounds + 1)]
    return Survey(
        name="a-survey",
        version=1,
        title="A survey",
        purpose="To be tested.",
        attribute=attribute,
        domain=domain,
        bins=bins,
        mechanism=mechanism,
        epsilons=(to_nano(epsilon),),
        epsilon_floor=to_nano(epsilon),
        dimensions=tuple(Dimension(name, Categories(tuple(values))) for name, values in (dimensions or {}).items()),
        rounds=tuple(
            Round(number, opens, closes) for number, (opens, closes) in enumerate(itertools.pairwise(starts), 1)
        ),
        minimums=Minimums(bin_values=bin_values),
        quota=10**9,
        expires=starts[-1],
    )


def source(
    path: Path | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    kind: str | None = None,
    where: str | None = None,
    **others: Any,
) -> SourceConfig:
    """A source named ``s``; the format is the path's suffix unless said."""
    return SourceConfig(
        name="s",
        format=kind or (path.suffix[1:] if path is not None else "csv"),
        path=path,
        columns=columns or {"age": "age"},
        conditions=parse_filter(where) if where else (),
        **others,
    )


def read(config: SourceConfig, definition: Survey | None = None) -> tuple[Summary, list[str], list[int]]:
    """A whole source: what it came to, the accepted values as the domain writes them, and their cells."""
    definition = definition or survey()
    summary, values, cells = Summary(), list[str](), list[int]()
    for encoded in scan(config, definition):
        assert encoded.read == len(encoded.values) + encoded.filtered + encoded.rejected.total()
        assert len(encoded.values) == len(encoded.cells)
        summary.add(encoded)
        values += [definition.domain.labels[index] for index in encoded.values.tolist()]
        cells += encoded.cells.tolist()
    return summary, values, cells


def reasons(**counts: int) -> Counter[Reason]:
    """Counts of rejected records, by the reasons' names in lower case."""
    return Counter({Reason[name.upper()]: count for name, count in counts.items()})


def chain(error: BaseException) -> str:
    """Everything an error and the errors behind it say."""
    texts = list[str]()
    left: list[BaseException | None] = [error]
    while left:
        if (seen := left.pop()) is not None:
            texts += [str(seen), repr(seen), repr(getattr(seen, "__notes__", ""))]
            left += [seen.__cause__, seen.__context__]
    return "\n".join(texts)
