"""What the agent's commands show, for people and for machines.

Not here: how anything shown was found. What is counted of records is shown on this machine only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tallyveil.batch import Batch
from tallyveil.canonical import Json
from tallyveil.cli.console import plain, print_table
from tallyveil.cli.guarantees import guarantee_json, guarantee_text
from tallyveil.epsilon import epsilon_text
from tallyveil.errors import TallyveilError
from tallyveil.mechanisms import Mechanism
from tallyveil.mechanisms.payload import decode_tally
from tallyveil.moments import moment_text
from tallyveil.survey import Survey
from tallyveil_client.agent.cells import Reason
from tallyveil_client.agent.collect import Collected
from tallyveil_client.agent.config import AggregatorConfig
from tallyveil_client.agent.connection import certificate_text
from tallyveil_client.agent.costs import cost_json, cost_text
from tallyveil_client.agent.histogram import HistogramGuarantee
from tallyveil_client.agent.outlook import Outlook
from tallyveil_client.agent.overlap import Overlap
from tallyveil_client.agent.policy import Collection
from tallyveil_client.agent.selection import Approved

_SHOWN_CELLS = 30
_SHOWN_COUNTS = 12


def cell_name(survey: Survey, cell: int) -> Json:
    """The dimensions' values of a cell; empty without dimensions."""
    return {d.name: value for d, value in zip(survey.dimensions, survey.cells[cell], strict=True)}


def cell_text(survey: Survey, cell: int) -> str:
    """The same as one phrase."""
    return ", ".join(f"{name} = {value}" for name, value in cell_name(survey, cell).items()) or "all records"


def error_json(error: TallyveilError | None) -> Json | None:
    """What stands in the way, as commands report errors."""
    if error is None:
        return None
    return {"kind": error.kind, "what": error.what, "not_done": error.not_done, "next": error.next_step}


@dataclass(frozen=True, repr=False)
class Checked:
    """What `agent check` found.

    Args:
        item: The survey.
        limits: The policy's, for it.
        collected: Of the pass that only counted.
        ahead: What is to come of the survey, and its cost.
        aggregator: How it would be reached.
        problem: What would stop a run, if anything; the first of several.
        connection: What of it concerns certificate, key and CA.
        histogram: What counting reports adds to their guarantee.
        overlaps: With earlier tables, which the policy allows by name.
        warnings: What does not stop a run, a sentence each.
    """

    item: Approved
    limits: Collection
    collected: Collected
    ahead: Outlook
    aggregator: AggregatorConfig
    problem: TallyveilError | None
    connection: TallyveilError | None
    histogram: HistogramGuarantee | None
    overlaps: tuple[Overlap, ...]
    warnings: tuple[str, ...]

    def to_json(self, now: datetime) -> Json:
        """For machines."""
        survey, summary, small = self.item.survey, self.collected.summary, self._small()
        return {
            "survey": self.item.label,
            "survey_hash": survey.hash,
            "source": self.limits.source,
            "read": summary.read,
            "accepted": summary.accepted,
            "filtered": summary.filtered,
            "rejected": {reason.value: count for reason, count in sorted_reasons(summary.rejected)},
            "first_rejected": {reason.value: at for reason, at in sorted_reasons(summary.first_rejected)},
            "cells": [
                {"cell": cell_name(survey, cell), "records": count}
                for cell, count in sorted(self.collected.cell_counts.items())
            ],
            "clear_cells": {
                "not_empty": len(self.collected.clear_counts),
                "min_clear_cell": self.limits.min_clear_cell,
                "min_clear_cell_reason": self.limits.min_clear_cell_reason,
                "below_min_clear_cell": small,
                "below_ten": self._below(10),
                "of_one_record": self._below(2),
            },
            "cost": cost_json(self.ahead.cost),
            "next_round": self.ahead.ahead[0].number if self.ahead.ahead else None,
            "histogram": None if self.histogram is None else self.histogram.to_json(),
            "charged": 0,
            "overlaps": [item.to_json() for item in self.overlaps],
            "connection": error_json(self.connection),
            "warnings": [*self.warnings, *self.ahead.warnings(now)],
            "problem": error_json(self.problem),
        }

    def show(self, now: datetime) -> None:
        """For people."""
        survey, summary = self.item.survey, self.collected.summary
        rows: list[tuple[str, object, object]] = [
            ("read", summary.read, ""),
            ("accepted", summary.accepted, ""),
            ("left out by the filter", summary.filtered, ""),
            *(
                (f"rejected: {reason.value}", count, summary.first_rejected[reason])
                for reason, count in sorted_reasons(summary.rejected)
            ),
        ]
        print_table(
            ("records", "count", "first"),
            rows,
            title=f"{self.item.label} from source '{self.limits.source}': counted here, nothing drawn, charged or sent",
            right=("count", "first"),
        )
        cells = sorted(self.collected.cell_counts.items())
        if survey.dimensions:
            shown = [(cell_text(survey, cell), count) for cell, count in cells[:_SHOWN_CELLS]]
            print_table(("cell sent in clear", "records"), shown, right=("records",))
            if len(cells) > _SHOWN_CELLS:
                print(f"… and {len(cells) - _SHOWN_CELLS} more cells: see --json")
        print(
            f"Clear cells (dimension cell × bin) that are not empty: {len(self.collected.clear_counts)}; below the "
            f"policy's {self.limits.min_clear_cell}: {self._small()}; of one record: {self._below(2)}."
        )
        if self.limits.min_clear_cell_reason:
            print(f"min_clear_cell is {self.limits.min_clear_cell}: {plain(self.limits.min_clear_cell_reason)}")
        for item in self.overlaps:
            print(plain(item.describe(self.limits.allow_overlap)))
        if self.histogram is not None:
            print(self.histogram.text)
        print(cost_text(self.ahead.cost))
        if self.connection is None:
            print(plain(certificate_text(self.aggregator)))
        else:
            print(plain(f"No connection is possible: {self.connection.what}."))
        for warning in (*self.warnings, *self.ahead.warnings(now)):
            print(plain(f"Warning: {warning}"))
        if self.problem is None:
            print(self._would_do(now))

    def _would_do(self, now: datetime) -> str:
        run = f"tallyveil agent run {self.item.label}"
        if not self.ahead.ahead:
            return "A run would charge nothing: see tallyveil agent status."
        following = self.ahead.ahead[0]
        if now < following.opens:
            opens = moment_text(following.opens)
            return f"A run would go ahead when round {following.number} opens on {opens}: {run}"
        return f"A run would go ahead: {run}"

    def _small(self) -> int:
        return self._below(self.limits.min_clear_cell)

    def _below(self, limit: int) -> int:
        return sum(1 for count in self.collected.clear_counts.values() if 0 < count < limit)


@dataclass(frozen=True, repr=False)
class Previewed:
    """What `agent preview` shows: the real shape of a submission with made-up reports.

    Args:
        item: The survey.
        department: Whom our certificate names; empty where there is none yet.
        number: Of the round.
        mechanism: Of the reports.
        histogram: What counting reports adds to their guarantee.
        batches: With made-up reports.
        message_bytes: Of each batch as it goes on the wire.
    """

    item: Approved
    department: str
    number: int
    mechanism: Mechanism
    histogram: HistogramGuarantee | None
    batches: tuple[Batch, ...]
    message_bytes: tuple[int, ...]

    def to_json(self) -> Json:
        """For machines."""
        survey = self.item.survey
        return {
            "made_up": True,
            "header": self._header(),
            "batches": [
                {
                    "cell": batch.cell,
                    "dimensions": cell_name(survey, batch.cell),
                    "records": batch.records,
                    "made_up_counts": decode_tally(self.mechanism.law, batch.records, batch.payload).counts.tolist(),
                    "payload_bytes": len(batch.payload),
                    "message_bytes": size,
                }
                for batch, size in zip(self.batches, self.message_bytes, strict=True)
            ],
            "records": sum(batch.records for batch in self.batches),
            "message_bytes": sum(self.message_bytes),
            "guarantee": guarantee_json(self.mechanism.guarantee),
            "histogram": None if self.histogram is None else self.histogram.to_json(),
        }

    def show(self) -> None:
        """For people."""
        survey = self.item.survey
        print_table(("header", "as it would be sent"), [(k.replace("_", " "), v) for k, v in self._header().items()])
        rows: list[tuple[object, ...]] = []
        for batch, size in list(zip(self.batches, self.message_bytes, strict=True))[:_SHOWN_CELLS]:
            counts = decode_tally(self.mechanism.law, batch.records, batch.payload).counts.tolist()
            some = " ".join(map(str, counts[:_SHOWN_COUNTS])) + (" …" if len(counts) > _SHOWN_COUNTS else "")
            rows.append((batch.cell, cell_text(survey, batch.cell), batch.records, size, some))
        print_table(
            ("cell", "in clear", "records", "bytes", "MADE-UP counts"),
            rows,
            title="One batch for each cell. Numbers of records are the real ones; the reports are of MADE-UP values.",
            right=("cell", "records", "bytes"),
        )
        if len(self.batches) > _SHOWN_CELLS:
            print(f"… and {len(self.batches) - _SHOWN_CELLS} more cells: see --json")
        total = sum(batch.records for batch in self.batches)
        print(f"{total} records in {len(self.batches)} messages, {sum(self.message_bytes)} bytes.")
        print(guarantee_text([self.mechanism.guarantee]))
        if self.histogram is not None:
            print(self.histogram.text)

    def _header(self) -> Json:
        return {
            "department": plain(self.department or "(no certificate yet)"),
            "survey": self.item.label,
            "survey_hash": self.item.survey.hash,
            "round": self.number,
            "epsilon": epsilon_text(self.item.epsilon),
            "submission_id": "16 random bytes, drawn by the first run",
        }


def sorted_reasons(counts: Mapping[Reason, int]) -> list[tuple[Reason, int]]:
    """By reason."""
    return sorted(counts.items(), key=lambda item: item[0].value)
