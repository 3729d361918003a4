"""The demo's data: counts of household heads by office, sex and age, and the CSV file each office gets.

Not here: where the counts come from (`examples/README.md`).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LOW, HIGH = 15, 99
AGE_COLUMN = "Age of head"


@dataclass(frozen=True)
class Office:
    """One regional office.

    Args:
        name: Its identifier, as in its certificate.
        heads: (sex, age, count) for every combination that occurs.
    """

    name: str
    heads: tuple[tuple[str, int, int], ...]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Heads by age, shape (85,)."""
        counts = np.zeros(HIGH - LOW + 1, dtype=np.int64)
        for _, age, count in self.heads:
            counts[age - LOW] += count
        return counts

    def write_csv(self, path: Path) -> None:
        """One row per head, as the office's own register would hold them."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["Household", "Sex of head", AGE_COLUMN])
            rows = [(sex, age) for sex, age, count in self.heads for _ in range(count)]
            writer.writerows((number, sex, age) for number, (sex, age) in enumerate(rows, start=1))


def load_offices() -> tuple[Office, ...]:
    """The 17 offices, in the table's order."""
    by_office: dict[str, list[tuple[str, int, int]]] = {}
    with files("tallyveil_demo").joinpath("high_income_heads.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            by_office.setdefault(row["office"], []).append((row["sex"], int(row["age"]), int(row["count"])))
    return tuple(Office(name, tuple(heads)) for name, heads in by_office.items())
