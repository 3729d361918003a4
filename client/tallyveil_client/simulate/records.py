# pyright: standard
"""The true counts of one column of a local file, read exactly as an agent reads its source.

Not here: what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tallyveil.domain import Domain
from tallyveil.epsilon import HIGHEST
from tallyveil.errors import ConfigurationError, TallyveilError
from tallyveil.survey import LEAST_BIN_VALUES, Minimums, Round, Survey
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.filter import filter_columns, parse_filter
from tallyveil_client.agent.scan import Progress, Summary, refuse_rejected, scan

_FORMAT_OF = {
    ".csv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
_SOURCE = "input"

# The agent's errors speak of its configuration file; here there are options.
_OPTION_OF = {
    f"[sources.{_SOURCE}.columns]": "--column or --filter",
    f"[sources.{_SOURCE}]": "--input",
    "correct the agent's configuration": "correct the options",
    "declare missing codes or recodes": "declare missing codes with --missing",
    'on_invalid = "reject"': "--on-invalid reject",
}


@dataclass(frozen=True, repr=False)
class Counted:
    """A column's true counts; raw, so its repr shows nothing.

    Args:
        counts: Accepted records by domain index, shape (K,).
        summary: Records read, accepted, left out by the filter, and rejected by reason.
    """

    counts: NDArray[np.int64]
    summary: Summary


def source_of(
    path: Path, column: str, *, table: str | None, filter: str | None, missing: Sequence[str], on_invalid: str
) -> SourceConfig:
    """The file as an agent's source; its ending says its format.

    Raises:
        ConfigurationError: An ending nobody knows, a table where there is none, or a filter that cannot be read.
    """
    form = _FORMAT_OF.get(path.suffix.lower())
    if form is None:
        raise ConfigurationError(
            f"the ending of {path} does not say what it is",
            not_done="nothing was read",
            next_step=f"give it one of {', '.join(_FORMAT_OF)}",
        )
    if (form == "sqlite") != (table is not None):
        what = "an SQLite file needs --table" if table is None else "--table is for SQLite files"
        raise ConfigurationError(what, not_done="nothing was read", next_step="see tallyveil simulate --help")
    conditions = parse_filter(filter) if filter is not None else ()
    used = filter_columns(conditions)
    return SourceConfig(
        name=_SOURCE,
        format=form,
        columns={**{name: name for name in used}, _attribute(used): column},
        path=path,
        table=table,
        missing=("", *missing),
        conditions=conditions,
        on_invalid=on_invalid,
    )


def count(
    source: SourceConfig,
    domain: Domain,
    on_progress: Callable[[Progress], None] | None = None,
) -> Counted:
    """Read the whole source.

    Raises:
        ConfigurationError: No such file or column.
        InputError: It cannot be read, or a record is rejected and the source refuses that.
    """
    survey = _survey(source, domain)
    counted = Counted(np.zeros(domain.size, dtype=np.int64), Summary())
    try:
        for batch in scan(source, survey, on_progress):
            counted.summary.add(batch)
            counted.counts[:] += np.bincount(batch.values, minlength=domain.size)
        refuse_rejected(source, counted.summary)
    except TallyveilError as error:
        raise _in_options(error) from None
    return counted


def _in_options(error: TallyveilError) -> TallyveilError:
    next_step = error.next_step
    for key, option in _OPTION_OF.items():
        next_step = next_step.replace(key, option)
    return type(error)(error.what, not_done="nothing was simulated", next_step=next_step)


def _attribute(used: Sequence[str]) -> str:
    """A logical name that no filter column has."""
    name = "value"
    while name in used:
        name += "-"
    return name


def _survey(source: SourceConfig, domain: Domain) -> Survey:
    """A survey nobody signed, which reading a source asks for: one column, no dimensions."""
    start, end = datetime(2000, 1, 1, tzinfo=UTC), datetime(2001, 1, 1, tzinfo=UTC)
    return Survey(
        name="simulation",
        version=1,
        title="Simulation",
        purpose="To try a mechanism on a local file",
        attribute=_attribute(filter_columns(source.conditions)),
        domain=domain,
        bins=1,
        mechanism="grr",
        epsilons=(HIGHEST,),
        epsilon_floor=HIGHEST,
        dimensions=(),
        rounds=(Round(1, start, end),),
        minimums=Minimums(bin_values=LEAST_BIN_VALUES),
        quota=2**53 - 1,
        expires=end,
    )
