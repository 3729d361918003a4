"""What mechanisms that report one of a fixed number of outputs have in common: checks, chunks, estimates.

Not here: their coins, and bins in clear (`block_response`).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.guarantee import Guarantee, full_ldp
from tallyveil.mechanisms.block_response import CHUNK_RECORDS, checked_indices
from tallyveil.mechanisms.nested_law import NestedLaw
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.response_base import RecordResponse
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Words


class OutputResponse(RecordResponse):
    """A mechanism over the whole domain whose reports are numbers 0..outputs−1 under a `NestedLaw`."""

    @cached_property
    @abstractmethod
    def _law(self) -> NestedLaw:
        """Made once."""

    @property
    def law(self) -> NestedLaw:
        """How outputs follow from values."""
        return self._law

    @property
    @abstractmethod
    def realised_epsilon(self) -> float:
        """Largest log-ratio of the channel as drawn, in nats."""

    @abstractmethod
    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value, shape (K, outputs), rows sum to 1; for small K."""

    @abstractmethod
    def _respond(self, truth: NDArray[np.integer[Any]]) -> Words:
        """One report per record of a chunk, shape (records,)."""

    @property
    def binning(self) -> Binning:
        """One bin: none is disclosed."""
        return Binning(self.domain_size, 1)

    @property
    def guarantee(self) -> Guarantee:
        return full_ldp(self.epsilon, self.realised_epsilon, self.domain_size)

    def perturb(self, values: ArrayLike) -> Reports:
        """One report per record.

        Args:
            values: Whole numbers in 0..K−1, any shape.

        Returns:
            Reports in 0..outputs−1, same shape, the smallest unsigned type that holds them.

        Raises:
            InputError: A value is not a whole number in 0..K−1; nothing was drawn.
        """
        truth = checked_indices(values, self.domain_size)
        reports = np.empty(truth.size, dtype=np.min_scalar_type(self.law.outputs - 1))
        flat = truth.reshape(-1)
        for start in range(0, flat.size, CHUNK_RECORDS):
            chunk = flat[start : start + CHUNK_RECORDS]
            reports[start : start + CHUNK_RECORDS] = self._respond(chunk)
        return reports.reshape(truth.shape)

    def tally(self, reports: ArrayLike) -> Tally:
        """How often each output was reported.

        Raises:
            InputError: A report is not a whole number in 0..outputs−1.
        """
        outputs = self.law.outputs
        flat = checked_indices(reports, outputs).reshape(-1)
        counts = np.zeros(outputs, dtype=np.int64)
        for start in range(0, flat.size, CHUNK_RECORDS):
            counts += np.bincount(flat[start : start + CHUNK_RECORDS], minlength=outputs)
        return Tally(flat.size, counts)
