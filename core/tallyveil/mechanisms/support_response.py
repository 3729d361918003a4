"""What mechanisms whose reports support several values have in common: checks, chunks, estimates.

Not here: their coins.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.guarantee import Guarantee, full_ldp
from tallyveil.mechanisms.block_response import checked_indices
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.response_base import RecordResponse
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.tally import Tally

CHUNK_ENTRIES = 1 << 18
"""Numbers drawn at a time."""


class SupportResponse(RecordResponse):
    """A mechanism over the whole domain with one p and one q."""

    @cached_property
    @abstractmethod
    def _law(self) -> SupportLaw:
        """Made once."""

    @property
    def law(self) -> SupportLaw:
        """p, q and how supports go together."""
        return self._law

    @property
    @abstractmethod
    def realised_epsilon(self) -> float:
        """Largest log-ratio of the channel as drawn, in nats."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in one report."""

    @abstractmethod
    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value, shape (K, outputs), rows sum to 1; for small K."""

    @abstractmethod
    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        """One report per record of a chunk, shape (records, width)."""

    @abstractmethod
    def _supports(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Support counts of a chunk of checked reports, shape (K,)."""

    @property
    def binning(self) -> Binning:
        """One bin: reports disclose none."""
        return Binning(self.domain_size, 1)

    @property
    def guarantee(self) -> Guarantee:
        return full_ldp(self.epsilon, self.realised_epsilon, self.domain_size)

    def perturb(self, values: ArrayLike) -> Reports:
        """One report per record, shape of `values` and one more axis of `width`.

        Raises:
            InputError: A value is not a whole number in 0..K−1; nothing was drawn.
        """
        truth = checked_indices(values, self.domain_size)
        chunks = [self._respond(chunk) for chunk in self._chunks(truth.reshape(-1))]
        reports = np.concatenate(chunks) if chunks else np.empty((0, self.width), dtype=np.uint8)
        return reports.reshape(*truth.shape, self.width)

    def tally(self, reports: ArrayLike) -> Tally:
        """Support counts of reports.

        Raises:
            InputError: They are not reports of this mechanism.
        """
        array = np.asarray(reports).reshape(-1, self.width)
        return Tally(array.shape[0], self._supports(array))

    def perturb_and_tally(self, values: ArrayLike) -> Tally:
        """Both, chunk by chunk, so that the reports of many records never stand in memory together."""
        truth = checked_indices(values, self.domain_size).reshape(-1)
        tally = Tally.of(np.zeros(self.domain_size, dtype=np.int64))
        for chunk in self._chunks(truth):
            tally += Tally(chunk.size, self._perturbed_supports(chunk))
        return tally

    def _perturbed_supports(self, truth: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Support counts of one report per record of a chunk, shape (K,)."""
        return self._supports(self._respond(truth))

    @property
    def _chunk_records(self) -> int:
        """Records at a time."""
        return max(CHUNK_ENTRIES // self.domain_size, 1)

    def _chunks(self, truth: NDArray[np.integer[Any]]) -> list[NDArray[np.integer[Any]]]:
        size = self._chunk_records
        return [truth[start : start + size] for start in range(0, truth.size, size)]
