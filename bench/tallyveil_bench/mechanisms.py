"""Records a second of perturb + tally on one core, beside counting the same records unperturbed.

Not here: the agent around it (`agent`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.cli.console import print_table
from tallyveil.mechanisms import create
from tallyveil_bench.timing import best_seconds

RECORDS = 2_000_000
EPSILON = 2.0
CASES = (("grr", 64, 1), ("grr", 1024, 1), ("brr", 64, 8), ("brr", 1024, 16), ("brr", 85, 16))


@dataclass(frozen=True)
class Speed:
    """Figures of one case; `ratio` is this over `bincount` alone in the same run."""

    mechanism: str
    domain_size: int
    bins: int
    perturb_per_s: float
    perturb_and_tally_per_s: float
    bincount_per_s: float
    ratio: float


def measure_speeds() -> list[Speed]:
    """One `Speed` per case."""
    return [_measure(*case) for case in CASES]


def _measure(name: str, domain_size: int, bins: int) -> Speed:
    mechanism = create(name, domain_size=domain_size, epsilon=EPSILON, bins=bins)
    values = np.arange(RECORDS, dtype=np.int64) * 7919 % domain_size  # every value alike often, in no order
    perturb = best_seconds(lambda: mechanism.perturb(values))
    both = best_seconds(lambda: mechanism.tally(mechanism.perturb(values)))
    alone = best_seconds(lambda: np.bincount(values, minlength=domain_size))
    return Speed(name, domain_size, bins, RECORDS / perturb, RECORDS / both, RECORDS / alone, alone / both)


def show_speeds(speeds: list[Speed]) -> None:
    """A table in the terminal."""
    rows = [
        (
            speed.mechanism,
            speed.domain_size,
            speed.bins,
            f"{speed.perturb_per_s / 1e6:.1f}",
            f"{speed.perturb_and_tally_per_s / 1e6:.1f}",
            f"{speed.bincount_per_s / 1e6:.1f}",
            f"{speed.ratio:.2f}",
        )
        for speed in speeds
    ]
    headers = ("mechanism", "K", "bins", "perturb M/s", "perturb + tally M/s", "bincount M/s", "ratio to bincount")
    title = f"Records a second on one core, epsilon {EPSILON:g}, {RECORDS:,} records"
    print_table(headers, rows, title=title, right=headers[1:])
