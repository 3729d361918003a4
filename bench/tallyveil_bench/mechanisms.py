"""Records a second of perturb + tally on one core, beside counting the same records unperturbed.

Not here: the agent around it (`agent`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.cli.console import print_table
from tallyveil.mechanisms import create
from tallyveil_bench.timing import best_seconds

EPSILON = 2.0
CASES = (
    ("grr", 64, 1, 2_000_000),
    ("grr", 1024, 1, 2_000_000),
    ("brr", 64, 8, 2_000_000),
    ("brr", 1024, 16, 2_000_000),
    ("brr", 85, 16, 2_000_000),
    ("ss", 64, 1, 100_000),
    ("ss", 1024, 1, 10_000),
    ("sue", 64, 1, 100_000),
    ("oue", 64, 1, 100_000),
    ("oue", 1024, 1, 10_000),
)
"""Mechanism, K, bins, records: fewer where a report is many numbers."""


@dataclass(frozen=True)
class Speed:
    """Figures of one case; `ratio` is this over `bincount` alone in the same run."""

    mechanism: str
    domain_size: int
    bins: int
    records: int
    perturb_per_s: float
    perturb_and_tally_per_s: float
    bincount_per_s: float
    ratio: float


def measure_speeds() -> list[Speed]:
    """One `Speed` per case."""
    return [_measure(*case) for case in CASES]


def _measure(name: str, domain_size: int, bins: int, records: int) -> Speed:
    mechanism = create(name, domain_size=domain_size, epsilon=EPSILON, bins=bins)
    values = np.arange(records, dtype=np.int64) * 7919 % domain_size  # every value alike often, in no order
    perturb = best_seconds(lambda: mechanism.perturb(values))
    both = best_seconds(lambda: mechanism.perturb_and_tally(values))
    alone = best_seconds(lambda: np.bincount(values, minlength=domain_size))
    return Speed(name, domain_size, bins, records, records / perturb, records / both, records / alone, alone / both)


def show_speeds(speeds: list[Speed]) -> None:
    """A table in the terminal."""
    rows = [
        (
            speed.mechanism,
            speed.domain_size,
            speed.bins,
            f"{speed.records:,}",
            f"{speed.perturb_per_s / 1e6:.2f}",
            f"{speed.perturb_and_tally_per_s / 1e6:.2f}",
            f"{speed.bincount_per_s / 1e6:.0f}",
            f"{speed.ratio:.4f}",
        )
        for speed in speeds
    ]
    headers = (
        "mechanism",
        "K",
        "bins",
        "records",
        "perturb M/s",
        "perturb + tally M/s",
        "bincount M/s",
        "ratio to bincount",
    )
    title = f"Records a second on one core, epsilon {EPSILON:g}"
    print_table(headers, rows, title=title, right=headers[1:])
