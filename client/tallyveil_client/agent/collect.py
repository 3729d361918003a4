"""From records to perturbed batches: one pass that counts, checks and perturbs, and nothing stored until its end.

Not here: reading records (`scan`), the charge (`store`) and sending (`upload`). Randomness is an argument. Every
record that is accepted is perturbed exactly once, as it is read; what a pass drew is thrown away with the pass, unless
`seal` and the store's one transaction follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tallyveil.batch import Batch, SubmissionKey, make_batch
from tallyveil.errors import ConfigurationError, InputError, InternalError
from tallyveil.mechanisms import Mechanism, Tally
from tallyveil.mechanisms.law import Law
from tallyveil.mechanisms.payload import encode_tally
from tallyveil.survey import Survey
from tallyveil_client.agent.clear_cells import check_clear_cells
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.encode import Encoded
from tallyveil_client.agent.policy import Collection
from tallyveil_client.agent.scan import Summary, refuse_rejected

MAX_COUNTS = 2**25
"""Histogram counts held at a time, over all cells: a quarter of a gigabyte."""

_UNSENT = "nothing was charged, stored or sent"


@dataclass(repr=False)
class Collected:
    """What one pass over the records came to. Its repr shows nothing of it.

    Args:
        summary: Records read, accepted, left out and rejected.
        clear_counts: Accepted records by (dimension cell, bin), where there are any.
        tallies: Tally of the reports by dimension cell; empty where nothing was perturbed.
    """

    summary: Summary = field(default_factory=Summary)
    clear_counts: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])
    tallies: dict[int, Tally] = field(default_factory=dict[int, Tally])

    @property
    def cell_counts(self) -> Mapping[int, int]:
        """Accepted records by dimension cell, where there are any."""
        counts = Counter[int]()
        for (cell, _), count in self.clear_counts.items():
            counts[cell] += count
        return counts


def collect(batches: Iterable[Encoded], survey: Survey, mechanism: Mechanism | None = None) -> Collected:
    """Read all batches to their end.

    Args:
        batches: As `scan` yields them.
        survey: What they were encoded for.
        mechanism: Perturbs each accepted record once; None to count only.

    Raises:
        ConfigurationError: The histograms of all cells would not fit into memory.
    """
    collected = Collected()
    bin_of, bins = survey.binning.bin_of, survey.binning.bins
    for batch in batches:
        collected.summary.add(batch)
        codes, counts = np.unique(batch.cells * bins + bin_of[batch.values], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            collected.clear_counts[divmod(code, bins)] += count
        if mechanism is not None:
            for cell, values in _by_cell(batch):
                _add(collected.tallies, cell, mechanism.gather(values))
    if mechanism is not None:
        _finish(collected.tallies, survey, mechanism)
    return collected


def require_admissible(collected: Collected, source: SourceConfig, survey: Survey, limits: Collection) -> None:
    """Stop, uncharged, unless every check of the records is passed.

    Raises:
        InputError: Records were rejected and the source refuses that; none was accepted; or more than the quota.
        PolicyError: A clear cell holds fewer records than the policy asks.
        InternalError: The sums do not agree.
    """
    summary = collected.summary
    refuse_rejected(source, summary)
    in_cells = sum(collected.clear_counts.values())
    if summary.read != summary.accepted + summary.filtered + summary.rejected.total() or in_cells != summary.accepted:
        raise InternalError(
            "the numbers of records do not add up", not_done=_UNSENT, next_step="report this as a fault"
        )
    if summary.accepted == 0:
        raise InputError(
            f"source '{source.name}': of {summary.read} records none was accepted "
            f"({summary.filtered} left out by the filter, {summary.rejected.total()} rejected)",
            not_done=_UNSENT,
            next_step="check the source's path or table, its filter and its columns",
        )
    if summary.accepted > survey.quota:
        raise InputError(
            f"source '{source.name}': {summary.accepted} records were accepted, and the survey's quota is "
            f"{survey.quota} a department and round",
            not_done=_UNSENT,
            next_step="ask the survey authority for a larger quota, or correct the source's filter",
        )
    check_clear_cells(limits, survey, collected.clear_counts)


def seal(collected: Collected, law: Law, key: SubmissionKey, token: Callable[[], bytes]) -> tuple[Batch, ...]:
    """One batch for each dimension cell that was perturbed, by cell.

    Args:
        collected: Perturbed.
        law: Of the mechanism that did it.
        key: What the batches belong to.
        token: Draws 16 fresh random bytes.

    Raises:
        InternalError: The reports are not as many as the records.
    """
    batches = tuple(
        make_batch(key, token(), token(), cell, tally.records, encode_tally(law, tally))
        for cell, tally in sorted(collected.tallies.items(), key=lambda item: item[0])
    )
    counted = {batch.cell: batch.records for batch in batches if batch.records}
    if counted and counted != dict(collected.cell_counts):
        raise InternalError("reports and records do not add up", not_done=_UNSENT, next_step="report this as a fault")
    return batches


def made_up(survey: Survey, mechanism: Mechanism, cell_counts: Mapping[int, int]) -> dict[int, Tally]:
    """Tallies as large as the real ones, of reports drawn from made-up values spread evenly over the domain."""
    tallies = dict[int, Tally]()
    for cell, count in sorted(cell_counts.items()):
        for start in range(0, count, 2**17):
            values = np.arange(start, min(start + 2**17, count)) % survey.domain.size
            _add(tallies, cell, mechanism.gather(values))
    _finish(tallies, survey, mechanism)
    return tallies


def _finish(tallies: dict[int, Tally], survey: Survey, mechanism: Mechanism) -> None:
    """Make what was gathered fit to leave; with noise at the department, empty cells too, or they would show."""
    if mechanism.at_department:
        nothing = mechanism.gather(np.array([], dtype=np.int64))
        for cell in range(survey.cell_count):
            if cell not in tallies:
                _add(tallies, cell, nothing)
    for cell, tally in tallies.items():
        tallies[cell] = mechanism.finish(tally)


def _by_cell(batch: Encoded) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The values of each dimension cell of a batch that has any."""
    if batch.cells.size == 0:
        return
    if not batch.cells.any():
        yield 0, batch.values
        return
    order = np.argsort(batch.cells, kind="stable")
    cells, starts = np.unique(batch.cells[order], return_index=True)
    yield from zip(cells.tolist(), np.split(batch.values[order], starts[1:]), strict=True)


def _add(tallies: dict[int, Tally], cell: int, tally: Tally) -> None:
    if cell in tallies:
        tallies[cell] += tally
        return
    if (len(tallies) + 1) * tally.counts.size > MAX_COUNTS:
        raise ConfigurationError(
            f"the survey's table is too large: more than {MAX_COUNTS} counts over all dimension cells",
            not_done=_UNSENT,
            next_step="ask the survey authority for fewer dimensions or a smaller domain",
        )
    tallies[cell] = tally
