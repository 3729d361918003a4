"""What mechanisms that report one of a fixed number of outputs have in common: checks, chunks, estimates.

Not here: their coins, and bins in clear (`block_response`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.guarantee import Guarantee, full_ldp
from tallyveil.mechanisms.block_response import CHUNK_RECORDS, checked_indices
from tallyveil.mechanisms.estimate import Estimate, estimate_of
from tallyveil.mechanisms.nested_law import NestedLaw
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Keystream, Randomness, Words


class OutputResponse(ABC):
    """A mechanism over the whole domain whose reports are numbers 0..outputs−1 under a `NestedLaw`.

    Args:
        domain_size: K.
        epsilon: Of one report, in nano-nats.
        randomness: Source of the coins; a keystream of the operating system's entropy by default.
    """

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        self.domain_size = domain_size
        self.epsilon = epsilon
        self._randomness = Keystream() if randomness is None else randomness

    @property
    @abstractmethod
    def name(self) -> str:
        """The mechanism's identifier in surveys."""

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

    def perturb_and_tally(self, values: ArrayLike) -> Tally:
        """The tally of one report per record."""
        return self.tally(self.perturb(values))

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts with their errors."""
        return estimate_of(self.law, tally)

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact variance of each estimate, were `counts` the truth, shape (K,)."""
        return self.law.variance(counts)

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact covariance of the estimates, were `counts` the truth, shape (K, K)."""
        return self.law.covariance(counts)
