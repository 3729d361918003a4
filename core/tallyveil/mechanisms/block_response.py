"""A mechanism that keeps the bin and draws randomised response inside it: the common body of `grr` and `brr`.

Not here: their guarantees, which differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import InputError
from tallyveil.guarantee import Guarantee
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.estimate import Estimate, estimate_of
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.response import draw_offsets, shift_within
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Weights
from tallyveil.randomness import Keystream, Randomness, Words

CHUNK_RECORDS = 16_384
"""Records drawn at a time: their words stay in the processor's cache."""


class BlockResponse(ABC):
    """Randomised response inside each bin of a binning.

    Args:
        binning: Which values share a bin; every bin has at least two.
        epsilon: Of one report, in nano-nats.
        randomness: Source of the coins; a keystream of the operating system's entropy by default.
    """

    def __init__(self, binning: Binning, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        self.blocks = Blocks(binning, epsilon)
        self.epsilon = epsilon
        self._randomness = Keystream() if randomness is None else randomness
        self._start_of = binning.starts[binning.bin_of].astype(np.uint32)
        self._weights_by_size: dict[int, Weights] = {item.size: item for item in self.blocks.weights}
        self._size_of = binning.sizes[binning.bin_of]
        self._dtype = np.min_scalar_type(binning.domain_size - 1)

    @property
    @abstractmethod
    def name(self) -> str:
        """The mechanism's identifier in surveys."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What one report protects, and what it does not."""

    @property
    def domain_size(self) -> int:
        return self.blocks.binning.domain_size

    def perturb(self, values: ArrayLike) -> Reports:
        """One report per record.

        Args:
            values: Whole numbers in 0..K−1, any shape.

        Returns:
            Reports in 0..K−1 and in the bin of their truth, same shape, the smallest unsigned type that holds them.

        Raises:
            InputError: A value is not a whole number in 0..K−1; nothing was drawn.
        """
        truth = checked_indices(values, self.domain_size)
        reports = np.empty(truth.size, dtype=self._dtype)
        flat = truth.reshape(-1)
        for start in range(0, flat.size, CHUNK_RECORDS):
            chunk = flat[start : start + CHUNK_RECORDS]
            reports[start : start + CHUNK_RECORDS] = self._respond(chunk)
        return reports.reshape(truth.shape)

    def _respond(self, truth: NDArray[np.integer[Any]]) -> NDArray[Any]:
        if len(self._weights_by_size) == 1:
            (weights,) = self._weights_by_size.values()
            return self._respond_with(weights, truth)
        reports = np.empty(truth.size, dtype=self._dtype)
        sizes = self._size_of[truth]
        for size, weights in self._weights_by_size.items():
            here = np.flatnonzero(sizes == size)
            reports[here] = self._respond_with(weights, truth[here])
        return reports

    def _respond_with(self, weights: Weights, truth: NDArray[np.integer[Any]]) -> NDArray[Any]:
        offsets = draw_offsets(weights, truth.size, self._randomness)
        if weights.size == self.domain_size:
            return shift_within(truth, offsets, weights.size)
        starts = self._start_of[truth]
        reports: Words = shift_within(truth - starts, offsets, weights.size) + starts
        return reports

    def tally(self, reports: ArrayLike) -> Tally:
        """Support counts: how often each value was reported.

        Raises:
            InputError: A report is not a whole number in 0..K−1.
        """
        flat = checked_indices(reports, self.domain_size).reshape(-1)
        return Tally(flat.size, np.bincount(flat, minlength=self.domain_size))

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts, corrected in each bin with that bin's own n."""
        return estimate_of(self.blocks, tally)

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact variance of each estimate, were `counts` the truth, shape (K,)."""
        return self.blocks.variance(counts)

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact covariance of the estimates, were `counts` the truth, shape (K, K)."""
        return self.blocks.covariance(counts)

    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value, shape (K, K), rows sum to 1."""
        return self.blocks.channel()


def checked_indices(values: ArrayLike, domain_size: int) -> NDArray[np.integer[Any]]:
    """The array, known to hold whole numbers in 0..domain_size−1."""
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(array.shape, dtype=np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError("values are whole numbers: indices into the domain", not_done="nothing was drawn or counted")
    if int(array.min()) < 0 or int(array.max()) >= domain_size:
        raise InputError(
            f"a value lies outside the domain's indices 0..{domain_size - 1}",
            not_done="nothing was drawn or counted",
        )
    return array
