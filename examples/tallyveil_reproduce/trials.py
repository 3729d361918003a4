"""One configuration of an experiment, how its estimates are drawn, and how large their errors are on average.

Not here: bins of one value (`open_bins`), and how often a trial is run (`outcomes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NANO
from tallyveil.guarantee import REPLACE_ONE, Guarantee
from tallyveil.mechanisms import Mechanism, Tally, create
from tallyveil.mechanisms.histogram_laplace import SENSITIVITY
from tallyveil.randomness import Randomness
from tallyveil_reproduce.mean_error import mean_errors, mean_size_of_noise
from tallyveil_reproduce.open_bins import OpenBins
from tallyveil_reproduce.populations import Population

Name = Literal["grr", "brr", "ss", "brr-sealed", "histogram-laplace"]


@dataclass(frozen=True)
class Trial:
    """A mechanism with its parameters on a population.

    Args:
        population: Whose records.
        mechanism: Its name in `create`.
        epsilon: Nats.
        bins: The paper's fxs; 1 where the mechanism does not bin.
    """

    population: Population
    mechanism: Name
    epsilon: float
    bins: int = 1

    @property
    def disclosing(self) -> bool:
        """Whether a bin of one value shows that value in clear: no survey can be made so."""
        smallest = Binning(self.population.domain_size, self.bins).smallest
        return self.mechanism == "brr" and smallest < 2

    @cached_property
    def guarantee(self) -> Guarantee | None:
        """What is promised to each record; None where a value is shown in clear."""
        return None if self.disclosing else _create(self, None).guarantee


class Response(Protocol):
    """How one trial's estimates come about."""

    def draw(self) -> NDArray[np.float64]:
        """Unbiased estimates of the true counts from fresh coins, shape (K,)."""
        ...

    @property
    def expected_error(self) -> NDArray[np.float64]:
        """E|estimate − truth| of each count, in records, shape (K,)."""
        ...


def respond(trial: Trial, randomness: Randomness | None = None) -> Response:
    """The response of a trial; secure coins by default."""
    if trial.disclosing:
        return OpenBins(trial.population.counts, trial.bins, trial.epsilon, randomness)
    mechanism = _create(trial, randomness)
    if mechanism.at_department:
        return _NoiseAtDepartments(mechanism, trial.population.histograms)
    return _RecordByRecord(mechanism, trial.population.counts)


@dataclass(frozen=True)
class _RecordByRecord:
    """Every record is perturbed by the mechanism's own code."""

    mechanism: Mechanism
    counts: NDArray[np.int64]

    @cached_property
    def _values(self) -> NDArray[np.unsignedinteger]:
        kind = np.min_scalar_type(self.counts.size - 1)
        return np.repeat(np.arange(self.counts.size, dtype=kind), self.counts)

    def draw(self) -> NDArray[np.float64]:
        return self.mechanism.law.corrected(self.mechanism.perturb_and_tally(self._values))

    @property
    def expected_error(self) -> NDArray[np.float64]:
        return mean_errors(self.mechanism, self.counts)


@dataclass(frozen=True)
class _NoiseAtDepartments:
    """Every department adds noise to its own histogram, once; the noisy histograms are added up."""

    mechanism: Mechanism
    histograms: NDArray[np.int64]

    def draw(self) -> NDArray[np.float64]:
        total = Tally.of([0] * self.mechanism.domain_size)
        for counts in self.histograms:
            total += self.mechanism.finish(Tally.of(counts))
        return self.mechanism.law.corrected(total)

    @property
    def expected_error(self) -> NDArray[np.float64]:
        scale = SENSITIVITY[REPLACE_ONE] * NANO / self.mechanism.epsilon
        return np.full(self.mechanism.domain_size, mean_size_of_noise(scale, len(self.histograms)))


def _create(trial: Trial, randomness: Randomness | None) -> Mechanism:
    size = trial.population.domain_size
    return create(trial.mechanism, domain_size=size, bins=trial.bins, epsilon=trial.epsilon, randomness=randomness)
