"""The parameters of randomised response in blocks: which bin a value is in, and the weights of that bin.

Not here: drawing (`block_response`) and estimates (`estimate`). Both roles build this from the survey alone,
so that p and q never come from a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.law import SupportCell, chances_text, require_possible
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Weights, response_weights

MAX_MATRIX_VALUES = 4_096


@dataclass(frozen=True)
class Blocks:
    """Bins of a domain with randomised response in each; one bin is plain GRR.

    Raises:
        ConfigurationError: A bin of a single value, which would show it.
    """

    binning: Binning
    epsilon: NanoEpsilon
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.binning.smallest < 2:
            raise ConfigurationError(
                f"{self.binning.describe()}: a bin of one value would show that value in clear",
                not_done="no mechanism was made",
                next_step=f"ask for at most {self.binning.domain_size // 2} bins",
            )

    @cached_property
    def weights(self) -> tuple[Weights, ...]:
        """The weights of each bin, shape (bins,): keep and lie are the same in all, the totals follow the sizes."""
        widest = response_weights(int(self.binning.sizes.max()), self.epsilon)
        return tuple(widest.resized(int(size)) for size in self.binning.sizes)

    @cached_property
    def p(self) -> NDArray[np.float64]:
        """Keep-probability of each value, shape (K,)."""
        return np.array([float(item.p) for item in self.weights])[self.binning.bin_of]

    @cached_property
    def q(self) -> NDArray[np.float64]:
        """Probability that another value of the same bin supports this one, shape (K,)."""
        return np.array([float(item.q) for item in self.weights])[self.binning.bin_of]

    @property
    def realised_epsilon(self) -> float:
        """Largest log-ratio of the channel within a bin, in nats."""
        return self.weights[0].realised_epsilon

    @property
    def domain_size(self) -> int:
        return self.binning.domain_size

    @property
    def outputs(self) -> int:
        """K: reports are values."""
        return self.binning.domain_size

    def total(self, tally: Tally) -> int:
        """n."""
        return tally.records

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """How often each value was reported."""
        return tally.counts

    def check(self, tally: Tally) -> None:
        """Every report supports one value: the counts sum to the number of records."""
        require_possible(tally.counts.shape == (self.domain_size,) and int(tally.counts.min()) >= 0)
        require_possible(sum(map(int, tally.counts)) == tally.records)

    def cells(self, tally: Tally) -> Sequence[SupportCell]:
        """One for each value, sought among the records of its bin."""
        counts, cells = tally.counts.tolist(), list[SupportCell]()
        for start, size, weights in zip(self.binning.starts, self.binning.sizes, self.weights, strict=True):
            block = counts[int(start) : int(start + size)]
            chances, records = weights.chances, sum(block)
            cells += [SupportCell(count, records, chances) for count in block]
        return cells

    def corrected(self, tally: Tally) -> NDArray[np.float64]:
        """(C − n·q)/(p − q) in floats, n the records of the value's bin, shape (K,)."""
        result: NDArray[np.float64] = (tally.counts - self.bin_totals(tally.counts) * self.q) / (self.p - self.q)
        return result

    @property
    def parameters(self) -> tuple[dict[str, object], ...]:
        """The weights of each bin size there is."""
        by_size = {weights.size: weights for weights in self.weights}
        return tuple(
            {"bin_values": size, "keep_weight": weights.keep, "lie_weight": weights.lie}
            | chances_text({"p": weights.p, "q": weights.q})
            for size, weights in sorted(by_size.items())
        )

    def bin_totals(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Sum of counts in each value's bin, shape (K,)."""
        values = np.asarray(counts, dtype=np.float64)
        return np.add.reduceat(values, self.binning.starts)[self.binning.bin_of]

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact variance of each estimate, were `counts` the truth, shape (K,).

        [c·p(1−p) + (n−c)·q(1−q)] / (p−q)², with n the total of the value's bin.
        """
        c, n, p, q = np.asarray(counts, dtype=np.float64), self.bin_totals(counts), self.p, self.q
        result: NDArray[np.float64] = (c * p * (1 - p) + (n - c) * q * (1 - q)) / (p - q) ** 2
        return result

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact covariance of the estimates, were `counts` the truth, shape (K, K).

        Within a bin −[(c_v + c_w)·p·q + (n − c_v − c_w)·q²] / (p−q)²; 0 between bins, which are drawn apart.
        """
        check_matrix_size(self.domain_size)
        c, n, p, q = np.asarray(counts, dtype=np.float64), self.bin_totals(counts), self.p, self.q
        pairs = c[:, None] + c[None, :]
        matrix = -(pairs * (p * q)[:, None] + (n[:, None] - pairs) * (q**2)[:, None]) / ((p - q) ** 2)[:, None]
        matrix[self._other_bin] = 0.0
        np.fill_diagonal(matrix, self.variance(c))
        return matrix

    def channel(self) -> NDArray[np.float64]:
        """The output law of each true value, shape (K, K): row = truth, column = report; rows sum to 1."""
        check_matrix_size(self.domain_size)
        matrix = np.repeat(self.q[:, None], self.binning.domain_size, axis=1)
        matrix[self._other_bin] = 0.0
        np.fill_diagonal(matrix, self.p)
        return matrix

    @property
    def _other_bin(self) -> NDArray[np.bool_]:
        bin_of = self.binning.bin_of
        result: NDArray[np.bool_] = bin_of[:, None] != bin_of[None, :]
        return result


def check_matrix_size(domain_size: int) -> None:
    """Raise ConfigurationError where a matrix of the domain would be too large to make."""
    if domain_size > MAX_MATRIX_VALUES:
        raise ConfigurationError(f"matrices are made for at most {MAX_MATRIX_VALUES} values")
