"""What all mechanisms have in common, and what all that perturb record by record have.

Not here: coins and laws. Reports of single records are counted as they are drawn, so what is gathered may leave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.guarantee import Guarantee, full_ldp
from tallyveil.mechanisms.estimate import Estimate, estimate_of
from tallyveil.mechanisms.indices import checked_indices
from tallyveil.mechanisms.law import Law
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Keystream, Randomness

CHUNK_RECORDS = 65_536
"""Records drawn at a time: few enough for the processor's cache, enough that the calls cost little beside the work."""


class MechanismBase(ABC):
    """Parameters, and what follows from the law alone.

    Args:
        domain_size: K.
        epsilon: Of one report, or of a department's histogram, in nano-nats.
        randomness: Source of the coins; a keystream of the operating system's entropy by default.
    """

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        self.domain_size = domain_size
        self.epsilon = epsilon
        self._randomness = Keystream() if randomness is None else randomness

    @property
    @abstractmethod
    def law(self) -> Law:
        """How counts come from true counts."""

    @property
    def binning(self) -> Binning:
        """The bins that reports disclose: one bin, none is disclosed."""
        return Binning(self.domain_size, 1)

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts with their errors."""
        return estimate_of(self.law, tally)

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact variance of each estimate, were `counts` the truth, shape (K,)."""
        return self.law.variance(counts)

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact covariance of the estimates, were `counts` the truth, shape (K, K)."""
        return self.law.covariance(counts)


class RecordResponse(MechanismBase):
    """One report for each record, over the whole domain unless a mechanism says otherwise."""

    at_department: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The mechanism's identifier in surveys."""

    @property
    @abstractmethod
    def realised_epsilon(self) -> float:
        """Largest log-ratio of the channel as drawn, in nats."""

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects, and what it does not."""
        return full_ldp(self.epsilon, self.realised_epsilon, self.domain_size)

    @property
    @abstractmethod
    def _report_type(self) -> DTypeLike:
        """Of the numbers in a report."""

    @property
    def _report_shape(self) -> tuple[int, ...]:
        """Of one report; a single number unless a mechanism says otherwise."""
        return ()

    @property
    def _chunk_records(self) -> int:
        """Records at a time."""
        return CHUNK_RECORDS

    @abstractmethod
    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        """One report per record of a chunk, shape (records, *report shape)."""

    @abstractmethod
    def tally(self, reports: ArrayLike) -> Tally:
        """The counts of reports.

        Raises:
            InputError: They are not reports of this mechanism.
        """

    @abstractmethod
    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value, shape (K, outputs), rows sum to 1; for small K.

        Raises:
            ConfigurationError: It is too large to be written down.
        """

    def perturb(self, values: ArrayLike) -> Reports:
        """One report per record.

        Args:
            values: Whole numbers in 0..K−1, any shape.

        Returns:
            Shape of `values`, and the axes of a report where that is more than one number; unsigned integers.

        Raises:
            InputError: A value is not a whole number in 0..K−1; nothing was drawn.
        """
        truth = checked_indices(values, self.domain_size)
        reports = np.empty((truth.size, *self._report_shape), dtype=self._report_type)
        start = 0
        for chunk in self._chunks(truth):
            reports[start : start + chunk.size] = self._respond(chunk)
            start += chunk.size
        return reports.reshape((*truth.shape, *self._report_shape))

    def perturb_and_tally(self, values: ArrayLike) -> Tally:
        """Both, chunk by chunk, so that the reports of many records never stand in memory together."""
        truth = checked_indices(values, self.domain_size)
        tally = Tally(0, np.zeros(self.law.outputs, dtype=np.int64))
        for chunk in self._chunks(truth):
            tally += self._perturbed_tally(chunk)
        return tally

    def _perturbed_tally(self, truth: NDArray[np.integer[Any]]) -> Tally:
        """Of one report per record of a chunk."""
        return self.tally(self._respond(truth).astype(self._report_type, copy=False))

    def gather(self, values: ArrayLike) -> Tally:
        """The same as `perturb_and_tally`."""
        return self.perturb_and_tally(values)

    def finish(self, tally: Tally) -> Tally:
        """The tally itself."""
        return tally

    def _chunks(self, truth: NDArray[np.integer[Any]]) -> Iterator[NDArray[np.integer[Any]]]:
        flat, size = truth.reshape(-1), self._chunk_records
        return (flat[start : start + size] for start in range(0, flat.size, size))


def other_stream(randomness: Randomness | None) -> Randomness:
    """Where what is published comes from: another stream than the coins'; a test's one source serves both."""
    return Keystream() if randomness is None else randomness
