"""Noise at the department: its histogram as it is, and discrete Laplace noise on every count of it, once.

Not here: perturbing records one by one. What is gathered is in clear until `finish`, and stays on the department's
machine until then.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.discrete_laplace import draw, scale_for
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.guarantee import ADD_OR_REMOVE, REPLACE_ONE, Guarantee, at_department
from tallyveil.mechanisms.indices import checked_indices
from tallyveil.mechanisms.laplace_law import LaplaceLaw
from tallyveil.mechanisms.response_base import MechanismBase
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Randomness

SENSITIVITY = {REPLACE_ONE: 2, ADD_OR_REMOVE: 1}
"""How far one record moves the whole histogram, in all: replacing one takes from a count and adds to another."""


class HistogramLaplace(MechanismBase):
    """A department's histogram with noise of scale sensitivity/epsilon on each of the K counts.

    Privacy: epsilon-DP at the department. Replace-one, and n is told; or add-or-remove, and n is not told.
    Accuracy: var ĉ_v = 2a/(1−a)² with a = e^(−epsilon/sensitivity), for each histogram, whatever n and K are.
    Source: Ghosh, Roughgarden, Sundararajan 2009 (the two-sided geometric law); Dwork et al. 2006.
    """

    at_department: ClassVar[bool] = True

    def __init__(
        self, domain_size: int, epsilon: NanoEpsilon, neighbours: str, randomness: Randomness | None = None
    ) -> None:
        super().__init__(domain_size, epsilon, randomness)
        self._neighbours = neighbours

    @property
    def name(self) -> str:
        return "histogram-laplace"

    @property
    def law(self) -> LaplaceLaw:
        """The noise's."""
        return self._law

    @cached_property
    def _law(self) -> LaplaceLaw:
        scale = scale_for(SENSITIVITY[self._neighbours], self.epsilon)
        return LaplaceLaw(self.domain_size, scale, counted=self._neighbours == REPLACE_ONE)

    @property
    def guarantee(self) -> Guarantee:
        return at_department(self.epsilon, self._neighbours)

    def gather(self, values: ArrayLike) -> Tally:
        """The histogram in clear; `finish` alone makes it fit to leave."""
        flat = checked_indices(values, self.domain_size).reshape(-1)
        return Tally(flat.size, np.bincount(flat, minlength=self.domain_size))

    def finish(self, tally: Tally) -> Tally:
        """The histogram with noise; without n where that is not told."""
        noise = draw(self.law.scale, self.domain_size, self._randomness)
        return Tally(tally.records if self.law.counted else 0, tally.counts + noise, histograms=1)

    def perturb_and_tally(self, values: ArrayLike) -> Tally:
        """The noisy histogram of all these records."""
        return self.finish(self.gather(values))

    def perturb(self, values: ArrayLike) -> NDArray[np.int64]:
        """One report for all records: the noisy histogram, shape (1, K)."""
        return self.perturb_and_tally(values).counts[None, :]

    def tally(self, reports: ArrayLike) -> Tally:
        """The sum of noisy histograms, shape (histograms, K); it knows no n.

        Raises:
            InputError: They are not such histograms.
        """
        array = np.asarray(reports)
        if array.ndim != 2 or array.shape[1] != self.domain_size or array.dtype.kind != "i":
            raise InputError("a report is a histogram of the domain", not_done="nothing was counted")
        return Tally(0, array.sum(axis=0, dtype=np.int64), histograms=array.shape[0])

    def channel(self) -> NDArray[np.float64]:
        """There is none: records are not perturbed one by one.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("noise at the department has no channel of single records")
