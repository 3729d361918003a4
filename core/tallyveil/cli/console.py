"""What commands show a person or a machine: tables, progress and JSON.

Not here: errors (`tallyveil.cli.failures`) and logs (`tallyveil.cli.logs`). rich is imported only when there
is something to draw.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import fill

_UNBOUNDED_WIDTH = 10_000
_PROSE_WIDTH = 100
_LONGEST_WHOLE_WORD = 32
_FOLDED_WIDTH = 16
_GAP = 3


def plain(text: object) -> str:
    """``text`` as a string that cannot steer a terminal: names and notes may come from the other side."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def print_json(value: object) -> None:
    """Print one JSON document on standard output.

    Args:
        value: Of dicts, lists, strings, numbers, booleans and None, or numpy arrays and scalars of those.

    Raises:
        ValueError: There is a NaN or an infinity in it, which JSON cannot say.
    """
    print(json_text(value, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    """One JSON document; characters that could steer a terminal are escaped, every other one stands as it is."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_from_numpy)
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def prose_width() -> int:
    """Columns for running text: 100, or what a narrower terminal has."""
    return min(_PROSE_WIDTH, _width())


def print_line(text: str) -> None:
    """Print one line of `plain` text, folded between words where the terminal is narrower."""
    print(fill(plain(text), _width(), break_long_words=False, break_on_hyphens=False))


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    right: Collection[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print a table on standard output, folded to the terminal's width; nothing in it is cut.

    Where output is no terminal its width is COLUMNS, or without that no limit.

    Args:
        headers: The columns, left to right.
        rows: For each row one cell a column, already formatted; shown as `plain` text without markup.
        title: A line above it.
        right: The headers of the columns to align right.
        spare: The headers of columns to leave out where they do not fit, the first one first; a line below says so.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[plain(cell) for cell in row] for row in rows]
    columns = [_Column(plain(header), [row[place] for row in cells]) for place, header in enumerate(headers)]
    width = _width()
    absent = _left_out(headers, columns, spare, width)
    shown = [(header, column) for header, column in zip(headers, columns, strict=True) if header not in absent]
    tight = sum(column.natural + _GAP for _, column in shown) + 1 > width
    table = Table(
        title=Text(plain(title)) if title else None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        show_edge=not tight,
        pad_edge=not tight,
    )
    for header, column in shown:
        table.add_column(
            Text(column.header),
            justify="right" if header in right else "left",
            overflow="fold",
            width=column.least if tight and column.of_words else None,
        )
    for number in range(len(cells)):
        table.add_row(*(Text(column.cells[number]) for _, column in shown))
    Console(width=width, soft_wrap=False).print(table)
    if absent:
        print_line(f"Too narrow here for: {', '.join(absent)}. A wider terminal or --json shows all.")


@contextmanager
def progress(what: str, total: int | None = None) -> Generator[Callable[[int], None]]:
    """A progress bar on standard error, where that is a terminal; elsewhere nothing.

    Args:
        what: What is going on, in a few words.
        total: How many steps it takes; None if unknown.

    Yields:
        A function to call with the number of steps just done.
    """
    if not sys.stderr.isatty():
        yield lambda steps: None
        return

    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(plain(what), total=total)
        yield lambda steps: bar.advance(task, steps)


def _width() -> int:
    """Columns to print in: as COLUMNS says, else the terminal's, else no limit."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal() and 0 < int(columns) < _UNBOUNDED_WIDTH:
        return int(columns)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNBOUNDED_WIDTH


@dataclass(frozen=True)
class _Column:
    """A column's texts, and how wide they make it."""

    header: str
    cells: Sequence[str]

    @property
    def natural(self) -> int:
        """Without folding."""
        return max(map(len, (self.header, *self.cells)))

    @property
    def least(self) -> int:
        """Without breaking a word of ordinary length."""
        longest = max((len(word) for cell in (self.header, *self.cells) for word in cell.split()), default=0)
        return longest if longest <= _LONGEST_WHOLE_WORD else _FOLDED_WIDTH

    @property
    def of_words(self) -> bool:
        """Whether each cell is one word that is not to be broken."""
        return all(len(cell) <= _LONGEST_WHOLE_WORD and len(cell.split()) <= 1 for cell in self.cells)


def _left_out(headers: Sequence[str], columns: Sequence[_Column], spare: Sequence[str], width: int) -> Sequence[str]:
    """The first of `spare`, as many as it takes for the others to fit."""
    absent = 0
    while absent < len(spare):
        kept = [column for header, column in zip(headers, columns, strict=True) if header not in spare[:absent]]
        if sum(column.least + _GAP for column in kept) - _GAP <= width:
            break
        absent += 1
    return spare[:absent]


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]


def _from_numpy(value: object) -> object:
    """Numpy's scalars and arrays as Python's, without importing numpy."""
    to_list = getattr(value, "tolist", None)
    if to_list is None:
        raise TypeError(f"{type(value).__name__} cannot be printed as JSON")
    return to_list()
