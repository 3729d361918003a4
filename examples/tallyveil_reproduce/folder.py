"""The folder a run leaves: a CSV file for each figure and table, and the pictures.

Not here: what is in them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeVar

from tallyveil.errors import ConfigurationError
from tallyveil_reproduce.numeric_noise import MagnitudeRow, OneAnswer
from tallyveil_reproduce.page import write_page
from tallyveil_reproduce.pictures import Picture, paint
from tallyveil_reproduce.results import Results
from tallyveil_reproduce.views import Row

PAGE = "figures.html"

_Line = TypeVar("_Line", Row, OneAnswer, MagnitudeRow)


def prepare(folder: Path) -> None:
    """Make the folder, before anything is simulated.

    Raises:
        ConfigurationError: It cannot be made, or holds something already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = any(folder.iterdir())
    except OSError:
        raise ConfigurationError(
            f"{folder} cannot be made or read", not_done="nothing was simulated", next_step="name another folder"
        ) from None
    if used:
        raise ConfigurationError(
            f"{folder} is not empty", not_done="nothing was simulated", next_step="name a new folder with --out"
        )


def fill(folder: Path, results: Results, pictures: bool, advance: Callable[[int], None]) -> list[str]:
    """Write everything.

    Args:
        folder: An empty one.
        results: What to write.
        pictures: Whether to draw, too.
        advance: Called with 1 after each figure.

    Returns:
        The names of the files.
    """
    drawn: dict[int, Picture] = {}
    for item in results.figures:
        rows = [row for part in item.rows for row in part]
        _write_csv(folder / f"figure-{item.number:02}.csv", Row, rows)
        if pictures:
            picture = drawn[item.number] = paint(item.figure, item.rows)
            (folder / f"figure-{item.number:02}.svg").write_text(picture.svg, encoding="utf-8")
            (folder / f"figure-{item.number:02}.png").write_bytes(picture.png)
        advance(1)
    _write_csv(folder / "note-one-answer.csv", OneAnswer, [results.one_answer])
    _write_csv(folder / "note-two-answers.csv", MagnitudeRow, results.two_answers)
    if pictures:
        (folder / PAGE).write_text(write_page(results, drawn), encoding="utf-8")
    return sorted(path.name for path in folder.iterdir())


def _write_csv(path: Path, kind: type[_Line], lines: Sequence[_Line]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [item.name for item in fields(kind)])
        writer.writeheader()
        writer.writerows(_texts(asdict(line) for line in lines))


def _texts(lines: Iterable[Mapping[str, object]]) -> Iterable[dict[str, object]]:
    """Numbers with the digits that mean something."""
    return ({name: f"{x:.6g}" if isinstance(x, float) else x for name, x in line.items()} for line in lines)
