"""Records a second of perturb + tally on one core, beside counting alone, the keystream's limit, and other libraries.

Not here: the agent around it (`agent`) and the other libraries themselves (`peers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallyveil.cli.console import print_table
from tallyveil.mechanisms import create
from tallyveil.randomness import Keystream, WordBits, Words
from tallyveil_bench.peers import PeerSpeed
from tallyveil_bench.timing import best_seconds

EPSILON = 2.0
CASES = (
    ("grr", 64, 1, 2_000_000),
    ("grr", 1024, 1, 2_000_000),
    ("brr", 64, 8, 2_000_000),
    ("brr", 1024, 16, 2_000_000),
    ("brr", 85, 16, 2_000_000),
    ("brr-sealed", 64, 8, 1_000_000),
    ("brr-sealed", 1024, 16, 1_000_000),
    ("ss", 64, 1, 100_000),
    ("ss", 1024, 1, 20_000),
    ("sue", 64, 1, 200_000),
    ("sue", 1024, 1, 20_000),
    ("oue", 64, 1, 200_000),
    ("oue", 1024, 1, 20_000),
    ("olh", 64, 1, 200_000),
    ("olh", 1024, 1, 50_000),
    ("hr", 64, 1, 1_000_000),
    ("hr", 1024, 1, 1_000_000),
    ("rappor", 64, 1, 50_000),
    ("cms", 64, 1, 50_000),
    ("cms", 1024, 1, 10_000),
    ("hcms", 64, 1, 1_000_000),
    ("hcms", 1024, 1, 1_000_000),
)
"""Mechanism, K, bins, records: fewer where a report is many numbers."""


class Metered:
    """A keystream that says how many bytes were asked of it."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._stream = Keystream()

    def words(self, count: int, bits: WordBits) -> Words:
        self.nbytes += count * bits // 8
        return self._stream.words(count, bits)


@dataclass(frozen=True)
class Speed:
    """Figures of one case.

    Args:
        ratio: To `bincount` alone in the same run.
        keystream_bytes: Of randomness a record needs.
        keystream_share: This over what the keystream alone would allow; 1 would leave no time for anything else.
    """

    mechanism: str
    domain_size: int
    bins: int
    records: int
    perturb_per_s: float
    perturb_and_tally_per_s: float
    bincount_per_s: float
    ratio: float
    keystream_bytes: float
    keystream_share: float


def measure_speeds() -> list[Speed]:
    """One `Speed` per case."""
    stream = Keystream()
    keystream_per_s = 2**20 / best_seconds(lambda: [stream.words(2**14, 32) for _ in range(16)])
    return [_measure(keystream_per_s, *case) for case in CASES]


def _measure(keystream_per_s: float, name: str, domain_size: int, bins: int, records: int) -> Speed:
    meter = Metered()
    mechanism = create(name, domain_size=domain_size, epsilon=EPSILON, bins=bins, randomness=meter)
    values = np.arange(records, dtype=np.int64) * 7919 % domain_size  # every value alike often, in no order
    mechanism.perturb_and_tally(values)
    per_record = meter.nbytes / records
    few = values[: min(records, 2**27 // 8 // domain_size)]  # all reports of `perturb` stand in memory together
    perturb = best_seconds(lambda: mechanism.perturb(few), repeats=5) / few.size
    both = best_seconds(lambda: mechanism.perturb_and_tally(values), repeats=5) / records
    alone = best_seconds(lambda: np.bincount(values, minlength=domain_size)) / records
    share = per_record / keystream_per_s / both
    return Speed(name, domain_size, bins, records, 1 / perturb, 1 / both, 1 / alone, alone / both, per_record, share)


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
            f"{speed.ratio:.4f}",
            f"{speed.keystream_bytes:.1f}",
            f"{speed.keystream_share:.2f}",
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
        "ratio to bincount",
        "keystream B",
        "share of its limit",
    )
    title = f"Records a second on one core, epsilon {EPSILON:g}"
    print_table(headers, rows, title=title, right=headers[1:])


def show_peers(speeds: Sequence[Speed], peers: Sequence[PeerSpeed]) -> None:
    """Each peer beside ours: how many times as fast ours is, and against the best of them."""
    ours = {(speed.mechanism, speed.domain_size): speed for speed in speeds}
    rows = list[tuple[object, ...]]()
    for peer in peers:
        own = ours[peer.mechanism, peer.domain_size]
        if peer.perturb_per_s is None or peer.perturb_and_tally_per_s is None:
            rows.append((peer.mechanism, peer.domain_size, peer.library, peer.reason, "", ""))
            continue
        rows.append(
            (
                peer.mechanism,
                peer.domain_size,
                peer.library,
                f"{peer.perturb_and_tally_per_s:,.0f}",
                f"{own.perturb_per_s / peer.perturb_per_s:,.0f}",
                f"{own.perturb_and_tally_per_s / peer.perturb_and_tally_per_s:,.0f}",
            )
        )
    headers = ("mechanism", "K", "library", "perturb + tally a second", "ours: perturb ×", "ours: perturb + tally ×")
    print_table(headers, rows, title="Other libraries, in the same run", right=(headers[1], *headers[3:]))
