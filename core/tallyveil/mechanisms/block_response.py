"""A mechanism that keeps the bin and draws randomised response inside it: the common body of `grr` and `brr`.

Not here: their guarantees, which differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import InputError
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.response import draw_offsets, shift_within
from tallyveil.mechanisms.response_base import RecordResponse
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Randomness, Words

CHUNK_RECORDS = 16_384
"""Records drawn at a time: their words stay in the processor's cache."""


class BlockResponse(RecordResponse):
    """Randomised response inside each bin of a binning.

    Args:
        binning: Which values share a bin; every bin has at least two.
        epsilon: Of one report, in nano-nats.
        randomness: Source of the coins; a keystream of the operating system's entropy by default.
    """

    def __init__(self, binning: Binning, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(binning.domain_size, epsilon, randomness)
        self.blocks = Blocks(binning, epsilon)
        self._widest = max(self.blocks.weights, key=lambda item: item.size)
        word = np.dtype(f"u{self._widest.bits // 8}").type
        totals = np.array([item.total for item in self.blocks.weights], dtype=word)
        self._uniform = bool((binning.sizes == binning.sizes[0]).all())
        self._total = word(self._widest.total)
        self._size = word(self._widest.size)
        self._total_of = totals[binning.bin_of]
        self._size_of = binning.sizes[binning.bin_of].astype(word)
        self._start_of = binning.starts[binning.bin_of].astype(word)
        self._dtype = np.min_scalar_type(binning.domain_size - 1)

    @property
    def binning(self) -> Binning:
        """The bins that reports disclose."""
        return self.blocks.binning

    @property
    def law(self) -> Blocks:
        """The bins and their weights."""
        return self.blocks

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

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Words:
        totals = self._total if self._uniform else self._total_of[truth]
        sizes = self._size if self._uniform else self._size_of[truth]
        offsets = draw_offsets(self._widest, totals, truth.size, self._randomness)
        if self.binning.bins == 1:
            return shift_within(truth, offsets, sizes)
        starts = self._start_of[truth]
        reports = shift_within(truth - starts, offsets, sizes)
        reports += starts
        return reports

    def tally(self, reports: ArrayLike) -> Tally:
        """Support counts: how often each value was reported.

        Raises:
            InputError: A report is not a whole number in 0..K−1.
        """
        array = np.asarray(reports)
        if array.dtype.kind != "u" or array.dtype.itemsize > 2:  # our own reports are checked by counting them
            array = checked_indices(array, self.domain_size)
        flat = array.reshape(-1)
        counts = np.zeros(self.domain_size, dtype=np.int64)
        for start in range(0, flat.size, CHUNK_RECORDS):  # in cache, since bincount widens what it counts
            counted = np.bincount(flat[start : start + CHUNK_RECORDS], minlength=self.domain_size)
            if counted.size > self.domain_size:
                raise outside(self.domain_size)
            counts += counted
        return Tally(flat.size, counts)

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
        raise outside(domain_size)
    return array


def outside(domain_size: int) -> InputError:
    """The error for an index that the domain does not have."""
    return InputError(
        f"a value lies outside the domain's indices 0..{domain_size - 1}", not_done="nothing was drawn or counted"
    )
