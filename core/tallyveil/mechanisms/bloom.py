"""Bloom filters of a known candidate list, and the exact least-squares way back from their bits.

Not here: perturbing bits (`rappor`). Whole numbers only: every machine finds the same coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import count

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms.hash_tables import hash_tables

Exact = NDArray[np.object_]
"""Whole numbers of any size."""


@dataclass(frozen=True)
class Bloom:
    """Which bits each candidate sets in each cohort's filter.

    Args:
        seed: Public.
        cohorts: Filters with hash functions of their own.
        bits: Of one filter, a power of two.
        hashes: Bits a candidate sets in one filter; fewer where two of its hashes meet.
        candidates: K.
    """

    seed: bytes
    cohorts: int
    bits: int
    hashes: int
    candidates: int

    @cached_property
    def design(self) -> NDArray[np.int64]:
        """1 where a candidate sets a bit, shape (cohorts, bits, K)."""
        tables = hash_tables(self.seed, self.cohorts * self.hashes, self.candidates, self.bits)
        design = np.zeros((self.cohorts, self.bits, self.candidates), dtype=np.int64)
        cohorts, values = np.indices((self.cohorts, self.candidates))
        for hashed in tables.reshape(self.cohorts, self.hashes, self.candidates).transpose(1, 0, 2):
            design[cohorts, hashed, values] = 1
        return design

    @cached_property
    def inverse(self) -> tuple[Exact, int] | None:
        """(XᵀX)⁻¹Xᵀ as numerators, shape (K, cohorts·bits), and their denominator; None where candidates look alike.

        Every bit has the same weight: at one epsilon all bits' errors are alike.
        """
        stacked = self.design.reshape(-1, self.candidates)
        solved = _adjugate((stacked.T @ stacked).astype(object))
        return None if solved is None else (solved[0] @ stacked.T.astype(object), solved[1])


@lru_cache(maxsize=16)
def bloom_for(seed: bytes, cohorts: int, bits: int, hashes: int, candidates: int) -> Bloom:
    """The first filter, of those that follow from the seed, under which no candidates look alike."""
    for attempt in count():
        bloom = Bloom(sha256(seed + attempt.to_bytes(4, "big")).digest(), cohorts, bits, hashes, candidates)
        if bloom.inverse is not None:
            return bloom
    raise AssertionError("unreachable")


def _adjugate(matrix: Exact) -> tuple[Exact, int] | None:
    """Adjugate and determinant of a symmetric matrix of whole numbers, or None where it is singular.

    Source: Bareiss 1968: elimination without fractions, every division exact.
    """
    size = matrix.shape[0]
    work: Exact = np.concatenate([matrix, np.eye(size, dtype=np.int64).astype(object)], axis=1)
    previous = 1
    for place in range(size):
        pivot = work[place, place]
        if pivot == 0:  # X'X is positive semidefinite: a pivot of 0 means that it is singular
            return None
        others = np.ones(size, dtype=np.bool_)
        others[place] = False
        work[others] = (work[others] * pivot - np.outer(work[others, place], work[place])) // previous
        previous = pivot
    return work[:, size:], int(previous)


def fractions_of(numerators: Exact, denominator: int) -> list[Fraction]:
    """A row of exact numbers as fractions."""
    return [Fraction(int(numerator), denominator) for numerator in numerators]
