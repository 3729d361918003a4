"""What commands show a person or a machine: tables, progress and JSON.

Not here: errors (`tallyveil.cli.failures`) and logs (`tallyveil.cli.logs`). rich is imported only when there
is something to draw.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager

_UNBOUNDED_WIDTH = 10_000


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


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", right: Collection[str] = ()
) -> None:
    """Print a table on standard output: fitted to the terminal, or never cut where output is not one.

    Args:
        headers: The columns, left to right.
        rows: For each row one cell a column, already formatted; shown as `plain` text without markup.
        title: A line above it.
        right: The headers of the columns to align right.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(plain(title)) if title else None, box=box.SIMPLE_HEAD, title_justify="left")
    for header in headers:
        table.add_column(Text(plain(header)), justify="right" if header in right else "left")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else _UNBOUNDED_WIDTH, soft_wrap=False).print(table)


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


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]


def _from_numpy(value: object) -> object:
    """Numpy's scalars and arrays as Python's, without importing numpy."""
    to_list = getattr(value, "tolist", None)
    if to_list is None:
        raise TypeError(f"{type(value).__name__} cannot be printed as JSON")
    return to_list()
