"""A mechanism that keeps the bin and draws randomised response inside it: the common body of `grr` and `brr`.

Not here: their guarantees, which differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.indices import checked_indices, outside
from tallyveil.mechanisms.response import draw_offsets, shift_within
from tallyveil.mechanisms.response_base import CHUNK_RECORDS, RecordResponse
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Randomness, Words


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

    @property
    def binning(self) -> Binning:
        """The bins that reports disclose."""
        return self.blocks.binning

    @property
    def law(self) -> Blocks:
        """The bins and their weights."""
        return self.blocks

    @property
    def realised_epsilon(self) -> float:
        """Largest log-ratio of the channel within a bin, in nats."""
        return self.blocks.realised_epsilon

    @property
    def _report_type(self) -> DTypeLike:
        return np.min_scalar_type(self.domain_size - 1)

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

    def _perturbed_tally(self, truth: NDArray[np.integer[Any]]) -> Tally:
        """Our own reports need no check, and no narrower type before they are counted."""
        counts = np.bincount(self._respond(truth).astype(np.intp), minlength=self.domain_size)
        return Tally(truth.size, counts)

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
