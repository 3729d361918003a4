"""What every mechanism answers: perturb on the agent, tally, estimate on the aggregator.

Not here: any mechanism.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.guarantee import Guarantee
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.mechanisms.law import Law
from tallyveil.mechanisms.tally import Tally

Reports = NDArray[np.integer[Any]]


class Mechanism(Protocol):
    """One mechanism with all its parameters; value indices are 0..K−1.

    Attributes:
        at_department: Whether noise is added once to a department's histogram, not to each record.
    """

    at_department: ClassVar[bool]

    @property
    def name(self) -> str: ...

    @property
    def domain_size(self) -> int:
        """K."""
        ...

    @property
    def epsilon(self) -> NanoEpsilon:
        """Of one report, in nano-nats."""
        ...

    @property
    def binning(self) -> Binning:
        """The bins that reports disclose; one bin where they disclose none."""
        ...

    @property
    def law(self) -> Law:
        """How its support counts come from true counts: p, q, variance, covariance."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """Kind, epsilon, realised epsilon, text, and what is not protected."""
        ...

    def perturb(self, values: ArrayLike) -> Reports:
        """One report per record, shape as `values`; every call draws anew, so call it once per record."""
        ...

    def perturb_and_tally(self, values: ArrayLike) -> Tally:
        """The tally of all these records, perturbed; `gather` and `finish` in one."""
        ...

    def gather(self, values: ArrayLike) -> Tally:
        """What reading these records adds to a tally under way; it is not to leave before `finish`."""
        ...

    def finish(self, tally: Tally) -> Tally:
        """What may leave of everything gathered for one cell; called once."""
        ...

    def tally(self, reports: ArrayLike) -> Tally:
        """Support counts of reports."""
        ...

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts with their errors."""
        ...

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact variance of each estimate, were `counts` (real numbers allowed) the truth, shape (K,)."""
        ...

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact covariance of the estimates, were `counts` the truth, shape (K, K)."""
        ...

    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value, shape (K, outputs); for small K."""
        ...
