"""What every mechanism that perturbs record by record has in common.

Not here: coins and laws. Reports are counted as they are drawn, so what is gathered may leave as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.epsilon import NanoEpsilon
from tallyveil.guarantee import Guarantee
from tallyveil.mechanisms.estimate import Estimate, estimate_of
from tallyveil.mechanisms.law import Law
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Keystream, Randomness


class RecordResponse(ABC):
    """One report for each record.

    Args:
        domain_size: K.
        epsilon: Of one report, in nano-nats.
        randomness: Source of the coins; a keystream of the operating system's entropy by default.
    """

    at_department: ClassVar[bool] = False

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        self.domain_size = domain_size
        self.epsilon = epsilon
        self._randomness = Keystream() if randomness is None else randomness

    @property
    @abstractmethod
    def name(self) -> str:
        """The mechanism's identifier in surveys."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What one report protects, and what it does not."""

    @property
    @abstractmethod
    def law(self) -> Law:
        """How counts come from true counts."""

    @abstractmethod
    def perturb(self, values: ArrayLike) -> Reports:
        """One report per record."""

    @abstractmethod
    def tally(self, reports: ArrayLike) -> Tally:
        """The counts of reports."""

    def perturb_and_tally(self, values: ArrayLike) -> Tally:
        """The tally of one report per record."""
        return self.tally(self.perturb(values))

    def gather(self, values: ArrayLike) -> Tally:
        """The same."""
        return self.perturb_and_tally(values)

    def finish(self, tally: Tally) -> Tally:
        """The tally itself."""
        return tally

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts with their errors."""
        return estimate_of(self.law, tally)

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact variance of each estimate, were `counts` the truth, shape (K,)."""
        return self.law.variance(counts)

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact covariance of the estimates, were `counts` the truth, shape (K, K)."""
        return self.law.covariance(counts)
