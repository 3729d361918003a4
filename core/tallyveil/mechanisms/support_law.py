"""The law of mechanisms whose reports support several values at once, the same for all values.

Not here: reports that keep a bin (`blocks`). p, q and the two pair probabilities are all there is to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.mechanisms.blocks import check_matrix_size
from tallyveil.mechanisms.law import SupportCell, chances_text, require_possible
from tallyveil.mechanisms.tally import Tally


@dataclass(frozen=True)
class SupportLaw:
    """p, q, and how two supports of one report go together; exact.

    Args:
        domain_size: K.
        p: A record's own value is supported with this probability.
        q: Another value is.
        with_truth: Own value and one other both are; p·q where they are independent.
        among_others: Two others both are; q² where they are independent.
        size: Values every report supports, or None where that varies.
        stated: The whole numbers that p and q follow from.
    """

    domain_size: int
    p: Fraction
    q: Fraction
    with_truth: Fraction
    among_others: Fraction
    size: int | None
    stated: dict[str, object]
    signed: ClassVar[bool] = False

    def __hash__(self) -> int:
        return hash((self.p, self.q))

    @property
    def parameters(self) -> tuple[dict[str, object], ...]:
        """The numbers that p and q follow from, and both."""
        return (self.stated | chances_text({"p": self.p, "q": self.q}),)

    @property
    def outputs(self) -> int:
        """K: a tally holds support counts."""
        return self.domain_size

    def total(self, tally: Tally) -> int:
        """n."""
        return tally.records

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """The tally's counts themselves."""
        return tally.counts

    def check(self, tally: Tally) -> None:
        """Every support count is at most the number of records; with a fixed size, they sum to size times as many."""
        counts, records = tally.counts, tally.records
        require_possible(counts.shape == (self.domain_size,))
        require_possible(int(counts.min()) >= 0 and int(counts.max()) <= records)
        require_possible(self.size is None or sum(map(int, counts)) == records * self.size)

    def cells(self, tally: Tally) -> Sequence[SupportCell]:
        """One for each value, sought among all records."""
        return [SupportCell(int(count), tally.records, self) for count in tally.counts]

    def corrected(self, tally: Tally) -> NDArray[np.float64]:
        """(C − n·q)/(p − q) in floats, shape (K,)."""
        p, q = float(self.p), float(self.q)
        result: NDArray[np.float64] = (tally.counts.astype(np.float64) - tally.records * q) / (p - q)
        return result

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """[c·p(1−p) + (n−c)·q(1−q)]/(p−q)², shape (K,)."""
        c = np.asarray(counts, dtype=np.float64)
        p, q = float(self.p), float(self.q)
        result: NDArray[np.float64] = (c * p * (1 - p) + (c.sum() - c) * q * (1 - q)) / (p - q) ** 2
        return result

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """[(c_v + c_w)·(with_truth − pq) + (n − c_v − c_w)·(among_others − q²)]/(p−q)² off the diagonal, (K, K)."""
        check_matrix_size(self.domain_size)
        c = np.asarray(counts, dtype=np.float64)
        pairs = c[:, None] + c[None, :]
        scale = float((self.p - self.q) ** 2)
        near, far = float(self.with_truth - self.p * self.q), float(self.among_others - self.q**2)
        matrix: NDArray[np.float64] = (pairs * near + (c.sum() - pairs) * far) / scale
        np.fill_diagonal(matrix, self.variance(c))
        return matrix
