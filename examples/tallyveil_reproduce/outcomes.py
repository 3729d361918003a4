"""Trials run over and over: the estimates of every repeat, and the errors in them.

Not here: which trials a figure needs (`figures`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tallyveil.randomness import Randomness
from tallyveil_reproduce.trials import Trial, respond


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a trial's repeats showed; percentage errors are fractions.

    Args:
        trial: It.
        estimates: Unbiased, negative ones included, shape (repeats, K).
        expected_error: E|estimate − truth| of each count, in records, shape (K,).
        window: First and last value index that errors are taken over; all without.
    """

    trial: Trial
    estimates: NDArray[np.float64]
    expected_error: NDArray[np.float64]
    window: tuple[int, int] | None = None

    @property
    def repeats(self) -> int:
        return len(self.estimates)

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """Shape (K,)."""
        return self.trial.population.counts

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """The value indices of the window."""
        first, last = self.window or (0, self.truth.size - 1)
        return np.arange(first, last + 1)

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """Those with a true count above 0: percentage errors are taken over these."""
        return self.shown[self.truth[self.shown] > 0]

    @cached_property
    def errors(self) -> NDArray[np.float64]:
        """|estimate − truth| / truth of each value held and repeat, shape (repeats, values held)."""
        truth = self.truth[self.held]
        return np.abs(self.estimates[:, self.held] - truth) / truth

    @cached_property
    def mape(self) -> NDArray[np.float64]:
        """Of each repeat: the mean of `errors` over the values held, shape (repeats,)."""
        result: NDArray[np.float64] = self.errors.mean(axis=1)
        return result

    @property
    def expected_mape(self) -> float:
        """By the laws, without a draw."""
        return float((self.expected_error[self.held] / self.truth[self.held]).mean())

    @property
    def negative_share(self) -> float:
        """Share of negative ones among the estimates of the window."""
        return float((self.estimates[:, self.shown] < 0).mean())


def expected_mape(trial: Trial) -> float:
    """The mean of MAPE over all draws there may be, by their laws; nothing is drawn."""
    population = trial.population
    nothing = np.empty((0, population.domain_size))
    return Outcome(trial, nothing, respond(trial).expected_error).expected_mape


def run(
    trials: Iterable[Trial],
    repeats: int,
    advance: Callable[[int], None] = lambda done: None,
    randomness: Randomness | None = None,
) -> Mapping[Trial, Outcome]:
    """Run each different trial so many times.

    Args:
        trials: In any order, each as often as it is needed.
        repeats: How often, at least 2.
        advance: Called with 1 after each repeat.
        randomness: Source of the coins; secure by default.
    """
    outcomes: dict[Trial, Outcome] = {}
    for trial in dict.fromkeys(trials):
        response = respond(trial, randomness)
        estimates = np.empty((repeats, trial.population.domain_size))
        for number in range(repeats):
            estimates[number] = response.draw()
            advance(1)
        outcomes[trial] = Outcome(trial, estimates, response.expected_error)
    return outcomes
