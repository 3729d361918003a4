"""What accuracy is measured on: a mechanism with its parameters, and true counts of a table or a formula.

Not here: what is measured. Every report is drawn by the mechanism's own code; nothing stands in for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms import Mechanism, Tally, create
from tallyveil.mechanisms.hash_tables import SEED_BYTES
from tallyveil.randomness import Randomness
from tallyveil_demo.offices import load_offices

SKETCHES = ("cms", "hcms")
"""Unbiased over fresh hash seeds only."""

LARGEST_RAPPOR = 128
"""Values up to which RAPPOR's least squares take a moment."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """One mechanism on one population.

    Args:
        mechanism: Its name.
        epsilon: Nats.
        population: What the population is called.
        counts: Its true counts, shape (K,).
        bins: 1 where the mechanism does not bin.
    """

    mechanism: str
    epsilon: float
    population: str
    counts: Counts = field(repr=False, compare=False)
    bins: int = 1

    @property
    def domain_size(self) -> int:
        """K."""
        return self.counts.size

    @property
    def records(self) -> int:
        """n."""
        return int(self.counts.sum())

    def make(self, randomness: Randomness) -> Mechanism:
        """The mechanism; its hash seed, if it has one, is drawn from the same source."""
        return create(
            self.mechanism,
            domain_size=self.domain_size,
            epsilon=self.epsilon,
            bins=self.bins,
            hash_seed=randomness.words(SEED_BYTES // 4, 32).tobytes(),
            randomness=randomness,
        )

    def draw(self, repeats: int, randomness: Randomness) -> Iterator[tuple[Mechanism, Tally]]:
        """As many tallies of the whole population; a sketch has fresh hash functions in each."""
        values = np.repeat(np.arange(self.domain_size), self.counts)
        mechanism = self.make(randomness)
        for _ in range(repeats):
            yield mechanism, mechanism.perturb_and_tally(values)
            if self.mechanism in SKETCHES:
                mechanism = self.make(randomness)


@cache
def heads_by_age() -> Counts:
    """The 16,685 household heads of the demo, by age from 15 to 99."""
    total: Counts = np.sum([office.counts for office in load_offices()], axis=0)
    return total


@cache
def zipf(domain_size: int, records: int, exponent: float = 1.1) -> Counts:
    """`records` shared out in proportion to 1/(v+1)^exponent; the largest remainders are rounded up."""
    weights = np.arange(1, domain_size + 1, dtype=np.float64) ** -exponent
    expected = records * weights / weights.sum()
    counts = np.floor(expected).astype(np.int64)
    missing = records - int(counts.sum())
    counts[np.argsort(counts - expected, kind="stable")[:missing]] += 1
    result: Counts = counts
    return result
