"""A verified release on a terminal: estimates with their error bars, the guarantee, and what is not protected.

Not here: files (`export`). Nothing unverified is ever rendered: the argument is a `VerifiedRelease`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from textwrap import fill

from tallyveil.cli.console import print_line, print_table, prose_width
from tallyveil.cli.guarantees import guarantee_text
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import Guarantee
from tallyveil.mechanisms import for_survey
from tallyveil.moments import moment_text
from tallyveil.release import COMPOSITION_NOTE, ERRORS_NOTE, VerifiedRelease
from tallyveil.tables import Row, Table

BAR_WIDTH = 24
BELOW_ZERO_NOTE = (
    "An estimate may be negative, since it is unbiased; its interval is of the true count, which cannot be."
)
_HEADERS = ("value", "bin", "estimate", "± s.e.", "95 % from", "to", "quality", "0 to the largest upper end")
_SPARE = ("bin", "0 to the largest upper end", "quality", "± s.e.")
_RIGHT = ("value", "bin", "estimate", "± s.e.", "95 % from", "to")


def guarantees_of(verified: VerifiedRelease) -> list[Guarantee]:
    """One for each epsilon that a participant chose."""
    survey = verified.release.survey
    return [
        for_survey(survey, epsilon).guarantee
        for epsilon in sorted({item.epsilon for item in verified.release.participants})
    ]


def choose_tables(verified: VerifiedRelease, cell: Mapping[str, str]) -> tuple[Table, ...]:
    """The tables of the dimension cells that agree with `cell`; the total where it is empty.

    Raises:
        ConfigurationError: The survey has no such dimension or value.
    """
    tables = verified.release.tables
    if not cell:
        return tables[:1]
    found = tuple(table for table in tables[1:] if cell.items() <= dict(table.cell or ()).items())
    if not found:
        survey = verified.release.survey
        known = "; ".join(f"{item.name}: {', '.join(item.domain.values)}" for item in survey.dimensions)
        raise ConfigurationError(
            "the release has no such cell",
            not_done="nothing was shown or kept",
            next_step=f"it has {known}" if known else "it has the total only",
        )
    return found


def print_release(verified: VerifiedRelease, tables: tuple[Table, ...]) -> None:
    """Head, guarantee, tables and notes; what is not protected comes before tables that may be long.

    Args:
        verified: The release.
        tables: Which of its tables to show.
    """
    release = verified.release
    survey = release.survey
    print_line(f"{survey.title} ({survey.name} version {survey.version}), round {release.round}")
    print_line(f"revision {release.revision}, released {moment_text(release.released_at)}, release {verified.hash}")
    departments = f"departments: {len(release.participants)}"
    print_line(f"{release.records} records, {departments}; verified: signature and every number")
    print(guarantee_text(guarantees_of(verified)))
    print()
    for table in tables:
        cell = "all records" if table.cell is None else ", ".join(f"{name} = {value}" for name, value in table.cell)
        top = max((float(row.high) for row in table.rows), default=0.0)
        rows = [_cells(row, top) for row in table.rows]
        print_table(_HEADERS, rows, title=f"{cell}: {table.records} records", right=_RIGHT, spare=_SPARE)
    if any(row.estimate < row.low for table in tables for row in table.rows):
        print(fill(BELOW_ZERO_NOTE, prose_width()))
    hidden = len(release.tables) - len(tables)
    if hidden:
        print_line(f"{hidden} more tables: choose with --cell NAME=VALUE, or export all")
        print()
    for note in (ERRORS_NOTE, COMPOSITION_NOTE):
        print(fill(note, prose_width()))


def release_text(verified: VerifiedRelease, tables: tuple[Table, ...]) -> str:
    """What `print_release` prints, as text of any width."""
    text = StringIO()
    with redirect_stdout(text):
        print_release(verified, tables)
    return text.getvalue()


def error_bar(row: Row, top: float) -> str:
    """From 0 to `top`: █ up to the interval's lower end, ▒ to its upper end, ● at the estimate."""
    if top <= 0:
        return ""
    low, high = _place(float(row.low), top), _place(float(row.high), top)
    bar = ["█"] * low + ["▒"] * (high - low) + [" "] * (BAR_WIDTH - high)
    bar[min(_place(float(row.estimate), top), BAR_WIDTH - 1)] = "●"
    return "".join(bar).rstrip()


def _place(value: float, top: float) -> int:
    return round(min(max(value / top, 0.0), 1.0) * BAR_WIDTH)


def _cells(row: Row, top: float) -> tuple[str, ...]:
    return (
        row.value,
        str(row.bin),
        f"{row.estimate:.1f}",
        f"{row.standard_error:.1f}",
        f"{row.low:.1f}".removesuffix(".0"),
        f"{row.high:.1f}".removesuffix(".0"),
        row.quality,
        error_bar(row, top),
    )
