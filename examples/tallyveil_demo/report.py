"""What the demo shows a person: each step as it happens, then the release beside the truth.

Not here: what is compared (`outcome`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tallyveil.release import VerifiedRelease
from tallyveil_demo.chart import Bar, draw_chart
from tallyveil_demo.offices import Office
from tallyveil_demo.outcome import REPEATS, Outcome, national_truth
from tallyveil_demo.processes import Answer

CHART_HEIGHT = 16
PLAIN_WIDTH = 100


class Report(Protocol):
    """What the demo tells while it runs."""

    def introduce(self, offices: Sequence[Office]) -> None: ...

    def step(self, what: str) -> AbstractContextManager[None]: ...

    def progress(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]: ...

    def show_preview(self, office: Office, preview: Answer) -> None: ...

    def show_outcome(
        self, verified: VerifiedRelease, outcome: Outcome, offices: Sequence[Office], seconds: float, keep: Path | None
    ) -> None: ...


class Silent:
    """Tells nothing: for ``--json``."""

    def introduce(self, offices: Sequence[Office]) -> None:
        pass

    @contextmanager
    def step(self, what: str) -> Generator[None]:
        yield

    @contextmanager
    def progress(self, what: str, total: int) -> Generator[Callable[[], None]]:
        yield lambda: None

    def show_preview(self, office: Office, preview: Answer) -> None:
        pass

    def show_outcome(
        self, verified: VerifiedRelease, outcome: Outcome, offices: Sequence[Office], seconds: float, keep: Path | None
    ) -> None:
        pass


class Told:
    """Tells a person in the terminal, or line by line where there is none."""

    def __init__(self) -> None:
        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
        self._console = Console(width=width, highlight=False)

    def introduce(self, offices: Sequence[Office]) -> None:
        heads = int(national_truth(offices).sum())
        self._console.print(
            f"[bold]Tallyveil demo[/bold]: {len(offices)} regional offices of the Philippines know the age of "
            f"{heads:,} heads of high-income households (PSA, FIES 2015). Nobody hands a record over; "
            "a national table by age comes out.\n"
        )

    @contextmanager
    def step(self, what: str) -> Generator[None]:
        if self._console.is_terminal:
            with self._console.status(what):
                yield
        else:
            yield
        self._console.print(f"[green]✓[/green] {what}")

    @contextmanager
    def progress(self, what: str, total: int) -> Generator[Callable[[], None]]:
        columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)
        self._console.print(f"[green]✓[/green] {what} ({total} processes)")

    def show_preview(self, office: Office, preview: Answer) -> None:
        heads, shown = int(office.counts.sum()), str(preview["message_bytes"])
        self._console.print(
            f"  office '{office.name}', {heads:,} records: one message of {shown} bytes would leave it, a histogram of "
            "perturbed reports.\n  Nothing was drawn for a real record: the preview's counts come from made-up values."
        )

    def show_outcome(
        self, verified: VerifiedRelease, outcome: Outcome, offices: Sequence[Office], seconds: float, keep: Path | None
    ) -> None:
        show, table = self._console.print, verified.release.tables[0]
        bars = [
            Bar(row.value, float(truth), float(row.estimate), float(row.low), float(row.high))
            for row, truth in zip(table.rows, national_truth(offices), strict=True)
        ]
        show(f"\n[bold]{verified.release.survey.title}[/bold]: the release beside the truth")
        show("[green]▒[/green] truth   [cyan]●[/cyan] published estimate   [cyan]│[/cyan] its 95 % interval\n")
        show(draw_chart(bars, height=CHART_HEIGHT, width=self._console.width))
        show(
            f"{outcome.records:,} records, {outcome.departments} departments, {outcome.bins} bins, {seconds:.1f} s. "
            "Verified: the signature holds, and every number was computed again.\n"
        )
        show("[bold]Mean absolute percentage error over the ages[/bold]")
        show(f"  BRR, this release; the bin is disclosed  {outcome.mape_brr:8.1%}")
        show(f"  GRR, all ages alike; by simulation       {outcome.mape_grr:8.1%}  (mean of {REPEATS} runs here)")
        show(
            f"  subset selection, likewise               {outcome.mape_ss:8.1%}  (the same epsilon, the same people)\n"
        )
        self._show_unprotected(verified, outcome)
        if keep is not None:
            show(f"\nKept in {keep}: release.json, release.pub, and every file of every party.")

    def _show_unprotected(self, verified: VerifiedRelease, outcome: Outcome) -> None:
        show, guarantee = self._console.print, verified.release.guarantees[0]
        show(f"[bold]What is protected[/bold]: {guarantee.text}")
        show("[bold yellow]What is NOT protected[/bold yellow]")
        for item in guarantee.not_protected:
            show(f"  • {item}")
        show(
            f"  • here: of {outcome.clear_counts} non-zero (office, bin) counts that the aggregator saw exactly, "
            f"[bold]{outcome.clear_below_10} are below 10 and {outcome.clear_of_1} are 1[/bold]; "
            f"{outcome.empty} more are zero, which shows too."
        )
        show(
            "    The agent stops at such cells (min_clear_cell, 10 by default). The demo's policy lowers it to 1 by "
            "name, since this table is public."
        )
