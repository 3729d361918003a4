"""Exact draws, many at a time, decided by integers alone: no float and no logarithm comes near them.

Not here: the law (`law`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ConfigurationError
from tallyveil.randomness import Randomness

MAX_TERM = 2**56
"""Numerator and denominator of a scale stay below: every intermediate number then fits 64 bits."""


def draw(scale: Fraction, count: int, randomness: Randomness) -> NDArray[np.int64]:
    """Independent draws, shape (count,).

    Args:
        scale: t, above 0, in lowest terms below 2^56 / 2^56.
        count: How many.
        randomness: Source of the words.

    Raises:
        ConfigurationError: The scale is not positive, or too fine or large.

    Privacy: P(x)/P(x + d) ≤ e^(d/t) exactly, for every whole d ≥ 0; so a function of whole numbers whose L1
        sensitivity is D is made D/t-DP by it.
    Accuracy: variance 2a/(1−a)² with a = e^(−1/t).
    Source: Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy, NeurIPS 2020, algorithms 1 and 2.
    """
    if not scale > 0 or scale.numerator >= MAX_TERM or scale.denominator >= MAX_TERM:
        raise ConfigurationError(
            "a noise scale is a positive fraction whose terms are below 2^56",
            not_done="no noise was drawn",
            next_step="use a coarser grid, or an epsilon with fewer digits",
        )
    noise = np.empty(count, dtype=np.int64)
    waiting = np.arange(count)
    while waiting.size:
        drawn, taken = _attempt(scale, waiting.size, randomness)
        noise[waiting[taken]] = drawn[taken]
        waiting = waiting[~taken]
    return noise


def bernoulli_exp(numerators: NDArray[np.uint64], denominator: int, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability exp(−numerator/denominator) each, exactly; no numerator is above the denominator.

    Coins of chance γ/1, γ/2, γ/3 … are thrown until one fails: its number is odd with probability Σ (−γ)^k/k!.
    """
    odd = np.empty(numerators.size, dtype=np.bool_)
    running, number = np.arange(numerators.size), 1
    while running.size:
        succeeded = uniform_below(denominator * number, running.size, randomness) < numerators[running]
        odd[running[~succeeded]] = number % 2 == 1
        running, number = running[succeeded], number + 1
    return odd


def uniform_below(limit: int, count: int, randomness: Randomness) -> NDArray[np.uint64]:
    """Uniform integers in 0..limit−1, shape (count,); words past the last multiple of the limit are drawn again."""
    last = np.uint64(2**64 // limit * limit - 1)
    words = randomness.words(count, 64).copy()
    rejected = np.flatnonzero(words > last)
    while rejected.size:
        words[rejected] = randomness.words(rejected.size, 64)
        rejected = rejected[words[rejected] > last]
    result: NDArray[np.uint64] = words % np.uint64(limit) if limit < 2**64 else words
    return result


def _attempt(scale: Fraction, count: int, randomness: Randomness) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Candidates, and which of them stand: a whole part by coins of chance 1/e, a fine part by rejection, a sign."""
    t = scale.numerator
    fine = uniform_below(t, count, randomness)
    taken = bernoulli_exp(fine, t, randomness)
    size = (fine.astype(np.int64) + t * _runs(count, randomness)) // scale.denominator
    negative = uniform_below(2, count, randomness) == 1
    taken &= ~(negative & (size == 0))  # zero has one sign, or it would come twice as often
    return np.where(negative, -size, size), taken


def _runs(count: int, randomness: Randomness) -> NDArray[np.int64]:
    """How many coins of chance 1/e succeed before one fails."""
    runs = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        running = running[bernoulli_exp(np.ones(running.size, dtype=np.uint64), 1, randomness)]
        runs[running] += 1
    return runs
