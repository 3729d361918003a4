"""The law of RAPPOR's bits: linear estimates of all candidates at once, by least squares on the known hash matrix.

Not here: the matrix (`bloom`) and the coins (`rappor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.errors import InternalError
from tallyveil.mechanisms.bloom import Bloom, Exact, fractions_of
from tallyveil.mechanisms.interval import chebyshev_interval, is_nearly_normal, normal_interval
from tallyveil.mechanisms.law import chances_text, require_possible
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Chances


@dataclass(frozen=True)
class RapporCell:
    """An estimate by least squares.

    Args:
        corrected: Unbiased.
        variance: Of bits and cohorts.
        limit: n.
        largest: No truth gives a larger variance.
        nearly_normal: Each cohort has many records.
    """

    corrected: Fraction
    variance: Fraction
    limit: int
    largest: Fraction
    nearly_normal: bool

    def interval(self, level: float) -> tuple[float, float]:
        """By the normal law; where records are few, by Chebyshev's inequality from the largest possible variance."""
        if self.nearly_normal:
            return normal_interval(self.corrected, self.variance, self.limit, level)
        return chebyshev_interval(self.corrected, self.largest, self.limit, level)


class RapporLaw:
    """A record is of a uniform cohort; a bit its value sets there is 1 with probability p, any other with 1 − p.

    Args:
        bloom: The filters.
        p: Of a bit after both responses.
        stated: The whole numbers it follows from.
    """

    signed: ClassVar[bool] = False

    def __init__(self, bloom: Bloom, p: Fraction, stated: dict[str, object]) -> None:
        self.bloom = bloom
        self.p = p
        self._stated = stated

    @property
    def domain_size(self) -> int:
        return self.bloom.candidates

    @property
    def outputs(self) -> int:
        """For each cohort its number of reports, then how often each of its bits was 1."""
        return self.bloom.cohorts * (1 + self.bloom.bits)

    def check(self, tally: Tally) -> None:
        """Cohorts sum to the number of records; no bit is 1 more often than its cohort has reports."""
        require_possible(tally.counts.shape == (self.outputs,) and int(tally.counts.min()) >= 0)
        reports, ones = self._parts(tally)
        require_possible(sum(map(int, reports)) == tally.records and bool((ones <= reports[:, None]).all()))

    def total(self, tally: Tally) -> int:
        """n."""
        return tally.records

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """How often the bits that a value sets were 1, over all cohorts, shape (K,)."""
        ones = self._parts(tally)[1]
        supports: NDArray[np.int64] = np.einsum("cb,cbv->v", ones, self.bloom.design)
        return supports

    def cells(self, tally: Tally) -> Sequence[RapporCell]:
        """One for each value."""
        corrected, n = self._exact(tally), tally.records
        normal = is_nearly_normal(n // self.bloom.cohorts, Chances(self.p, 1 - self.p))
        cells = list[RapporCell]()
        for value, (bits, means) in enumerate(zip(self._bit_variances, self._squared_means, strict=True)):
            between = sum((c * mean for c, mean in zip(corrected, means, strict=True)), Fraction(0)) - corrected[value]
            largest = n * (bits + max(means))
            cells.append(RapporCell(corrected[value], n * bits + max(between, Fraction(0)), n, largest, normal))
        return cells

    def corrected(self, tally: Tally) -> NDArray[np.float64]:
        """In floats, shape (K,)."""
        reports, ones = self._parts(tally)
        p = float(self.p)
        bits = (ones - (1 - p) * reports[:, None]) / (2 * p - 1)
        result: NDArray[np.float64] = self._coefficients.reshape(self.domain_size, -1) @ bits.reshape(-1)
        return result

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Of bits and cohorts, shape (K,)."""
        return np.diag(self.covariance(counts)).copy()

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Of bits and cohorts, shape (K, K)."""
        c, cohorts = np.asarray(counts, dtype=np.float64), self.bloom.cohorts
        flat = self._coefficients.reshape(self.domain_size, -1)
        # What a record of value u in a cohort adds on average to each estimate, shape (cohorts, K, K).
        means = np.einsum("vcb,cbu->cvu", self._coefficients, self.bloom.design)
        between = np.einsum("cvu,u,cwu->vw", means, c, means) / cohorts
        bits = flat @ flat.T * (c.sum() / cohorts * float(self._bit_variance))
        matrix: NDArray[np.float64] = between + bits - np.diag(c)
        return matrix

    @property
    def parameters(self) -> tuple[dict[str, object], ...]:
        """The filters, and p."""
        named: dict[str, object] = {
            "hash_seed": self.bloom.seed.hex(),
            "cohorts": self.bloom.cohorts,
            "filter_bits": self.bloom.bits,
            "hashes": self.bloom.hashes,
        }
        return (named | self._stated | chances_text({"p": self.p, "q": 1 - self.p}),)

    def _parts(self, tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        table = tally.counts.reshape(self.bloom.cohorts, 1 + self.bloom.bits)
        return table[:, 0], table[:, 1:]

    def _exact(self, tally: Tally) -> list[Fraction]:
        numerators, denominator = self._inverse
        reports, ones = self._parts(tally)
        # (ones − (1 − p)·n)/(2p − 1), in units of 1/(numerator of 2p − 1); a cohort is one of many.
        scale, lean = self.p.denominator, 2 * self.p.numerator - self.p.denominator
        bits = ones.astype(object) * scale - reports[:, None].astype(object) * (scale - self.p.numerator)
        sums = numerators @ bits.reshape(-1) * self.bloom.cohorts
        return fractions_of(sums, denominator * lean)

    @cached_property
    def _inverse(self) -> tuple[Exact, int]:
        inverse = self.bloom.inverse
        if inverse is None:
            raise InternalError("a filter that does not tell its candidates apart", not_done="nothing was estimated")
        return inverse

    @property
    def _bit_variance(self) -> Fraction:
        """Of one bit, corrected."""
        return self.p * (1 - self.p) / (2 * self.p - 1) ** 2

    @cached_property
    def _coefficients(self) -> NDArray[np.float64]:
        """What a corrected bit adds to each estimate, shape (K, cohorts, bits), times the number of cohorts."""
        numerators, denominator = self._inverse
        floats = np.array([[float(Fraction(int(item), denominator)) for item in row] for row in numerators])
        return (floats * self.bloom.cohorts).reshape(self.domain_size, self.bloom.cohorts, self.bloom.bits)

    @cached_property
    def _bit_variances(self) -> list[Fraction]:
        """For each value the variance of its estimate per record that the bits bring."""
        numerators, denominator = self._inverse
        share = self._bit_variance * self.bloom.cohorts
        return [share * Fraction(int((row * row).sum()), denominator**2) for row in numerators]

    @cached_property
    def _squared_means(self) -> list[list[Fraction]]:
        """For each value, and each value u a record may hold: mean square, over cohorts, of what it adds on average."""
        numerators, denominator = self._inverse
        cohorts, size = self.bloom.cohorts, self.domain_size
        rows = numerators.reshape(size, cohorts, self.bloom.bits)
        squares: Exact = np.zeros((size, size), dtype=np.int64).astype(object)
        for cohort in range(cohorts):
            means = rows[:, cohort, :] @ self.bloom.design[cohort].astype(object)
            squares = squares + means * means
        return [[cohorts * item for item in fractions_of(row, denominator**2)] for row in squares]
