"""The law of count-mean sketches: supports by hashing, unbiased over fresh hash seeds.

Not here: drawing (`sketches`). For one fixed seed, every value has a bias: what its bucket's other values bring, less
the average. The stated variance counts it as one more error, as if the seed were drawn anew; more records of the same
survey do not lessen it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.mechanisms.hadamard import transform
from tallyveil.mechanisms.hash_tables import hash_tables
from tallyveil.mechanisms.interval import chebyshev_interval, is_nearly_normal, normal_interval
from tallyveil.mechanisms.law import Cell, require_possible
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Chances


@dataclass(frozen=True)
class SketchCell:
    """A value's support count, with the variance that collisions add.

    Args:
        corrected: (C − n·q)/(p − q).
        variance: Of coins and collisions.
        limit: n.
        chances: p and q.
        collision: Of the sketch.
    """

    corrected: Fraction
    variance: Fraction
    limit: int
    chances: Chances
    collision: Fraction

    @property
    def nearly_normal(self) -> bool:
        return is_nearly_normal(self.limit, self.chances)

    def interval(self, level: float) -> tuple[float, float]:
        """By the normal law; where records are few, by Chebyshev's inequality from the largest possible variance."""
        if self.nearly_normal:
            return normal_interval(self.corrected, self.variance, self.limit, level)
        p, q, n = self.chances.p, self.chances.q, self.limit
        largest = n * max(p * (1 - p), q * (1 - q)) / (p - q) ** 2 + n * (n - 1) * self.collision
        return chebyshev_interval(self.corrected, largest, self.limit, level)


@dataclass(frozen=True)
class Sketch:
    """Rows of hash functions with a common number of buckets.

    Args:
        seed: Public; of the tables.
        rows: k.
        width: m.
        domain_size: K.
    """

    seed: bytes
    rows: int
    width: int
    domain_size: int

    @property
    def tables(self) -> NDArray[np.int64]:
        """Bucket of each value in each row, shape (k, K)."""
        return hash_tables(self.seed, self.rows, self.domain_size, self.width)

    @property
    def collision(self) -> Fraction:
        """1/(k·(m − 1)): what a pair of records with the same other value adds to an estimate's variance."""
        return Fraction(1, self.rows * (self.width - 1))


class SketchLaw:
    """A `SupportLaw` for one report, and collisions that reports of the same value share.

    Args:
        sketch: The hash functions.
        support: p, q and pairs for one report, over fresh seeds.
        signed_columns: Whether counts are of (row, column, sign) and supports follow by Hadamard's transform; else of
            set bits by (row, bucket).
    """

    signed: ClassVar[bool] = False

    def __init__(self, sketch: Sketch, support: SupportLaw, *, signed_columns: bool) -> None:
        self.sketch = sketch
        self.support = support
        self._signed_columns = signed_columns

    @property
    def domain_size(self) -> int:
        return self.sketch.domain_size

    @property
    def outputs(self) -> int:
        """Counts of the sketch."""
        return self.sketch.rows * self.sketch.width * (2 if self._signed_columns else 1)

    def check(self, tally: Tally) -> None:
        """No count is above the number of records; signs by column sum to it."""
        counts, records = tally.counts, tally.records
        require_possible(counts.shape == (self.outputs,) and int(counts.min()) >= 0 and int(counts.max()) <= records)
        if self._signed_columns:
            require_possible(sum(map(int, counts)) == records)
        else:  # bits of one report are in one row
            rows = counts.reshape(self.sketch.rows, self.sketch.width)
            require_possible(sum(map(int, rows.max(axis=1))) <= records)

    def total(self, tally: Tally) -> int:
        """n."""
        return tally.records

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """Reports that support each value in the row they are of, shape (K,)."""
        sketch = self.sketch
        rows = np.arange(sketch.rows)[:, None]
        if not self._signed_columns:
            counts = tally.counts.reshape(sketch.rows, sketch.width)
            set_bits: NDArray[np.int64] = counts[rows, sketch.tables].sum(axis=0)
            return set_bits
        pairs = tally.counts.reshape(sketch.rows, sketch.width, 2)
        agreements = transform(pairs[:, :, 1] - pairs[:, :, 0])[rows, sketch.tables].sum(axis=0)
        supports: NDArray[np.int64] = (tally.records + agreements) // 2
        return supports

    def cells(self, tally: Tally) -> Sequence[Cell]:
        """One for each value; see the module's text for what the variance counts."""
        plain = self.support.cells(Tally(tally.records, self.supports(tally)))
        chances, added = Chances(self.support.p, self.support.q), self._added([cell.corrected for cell in plain], plain)
        return [
            SketchCell(cell.corrected, cell.variance + extra, tally.records, chances, self.sketch.collision)
            for cell, extra in zip(plain, added, strict=True)
        ]

    def _added(self, corrected: Sequence[Fraction], plain: Sequence[Cell]) -> list[Fraction]:
        """Estimate of collision·Σ c_w·(c_w − 1) over the other values: unbiased but for being cut at 0."""
        share = self.sketch.collision
        pairs = [value**2 - cell.variance - value for value, cell in zip(corrected, plain, strict=True)]
        total = sum(pairs, Fraction(0)) / (1 - share + share * self.domain_size)
        own = [(pair - share * total) / (1 - share) for pair in pairs]
        return [share * max(total - mine, Fraction(0)) for mine in own]

    def corrected(self, tally: Tally) -> NDArray[np.float64]:
        """(C − n·q)/(p − q) in floats, shape (K,)."""
        return self.support.corrected(Tally(tally.records, self.supports(tally)))

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Of coins, and of seeds drawn anew, shape (K,)."""
        c = np.asarray(counts, dtype=np.float64)
        pairs = c * (c - 1)
        others: NDArray[np.float64] = np.maximum(pairs.sum() - pairs, 0)
        return self.support.variance(c) + float(self.sketch.collision) * others

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Of coins, and of seeds drawn anew, shape (K, K): two values that collide lift each other."""
        c = np.asarray(counts, dtype=np.float64)
        matrix: NDArray[np.float64] = self.support.covariance(c) + float(self.sketch.collision) * np.outer(c, c)
        np.fill_diagonal(matrix, self.variance(c))
        return matrix

    @property
    def parameters(self) -> tuple[dict[str, object], ...]:
        """The hash functions, and p and q over fresh ones."""
        named: dict[str, object] = {
            "hash_seed": self.sketch.seed.hex(),
            "hash_rows": self.sketch.rows,
            "hash_width": self.sketch.width,
        }
        return tuple(named | parameters for parameters in self.support.parameters)
