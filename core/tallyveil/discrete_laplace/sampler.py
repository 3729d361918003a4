"""Exact draws, many at a time, decided by integers alone: no float and no logarithm comes near them.

Not here: the law (`law`). Arrays hold 64-bit words where every intermediate number fits them, Python's own integers
where one does not; the steps are the same.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tallyveil.discrete_laplace.scale import checked_scale
from tallyveil.errors import ConfigurationError
from tallyveil.randomness import Randomness

Integers = NDArray[Any]
"""uint64 or int64, or Python's integers."""

WORD_BITS: Final = 64
MAX_WORD_TERM = 2**56
"""Words serve while both terms of a scale are below: fine + t·runs passes 2^63 from 127 runs on only, of chance e^-127.
"""

CHUNK_CANDIDATES = 16_384
"""Their words stay in the processor's cache."""

SPARE_CANDIDATES = 64
"""Drawn beside those needed, so that the time of a single draw is that of the slowest of many."""


def draw(scale: Fraction, count: int, randomness: Randomness) -> NDArray[np.int64]:
    """Independent draws, shape (count,).

    Args:
        scale: t, from 1/64 to 2^56, of terms however large; hundreds of thousands of draws a second where both
            terms are below 2^56, tens of thousands else.
        count: How many, not negative.
        randomness: Source of the words.

    Raises:
        ConfigurationError: The scale is out of range, or the count is negative.

    Privacy: P(x)/P(x + d) ≤ e^(d/t) exactly, for every whole d ≥ 0; so whole numbers of L1 sensitivity D are made
        D/t-DP by a draw on each. How long a call takes still tells a little about the largest of its candidates.
    Accuracy: mean 0, variance 2a/(1−a)² with a = e^(−1/t).
    Source: Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy, NeurIPS 2020, algorithms 1 and 2.
    """
    checked_scale(scale)
    if count < 0:
        raise ConfigurationError("the number of draws is not negative", not_done="no noise was drawn")
    noise = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        candidates = min(2 * (count - filled) + SPARE_CANDIDATES, CHUNK_CANDIDATES)
        standing = _standing(scale, candidates, randomness)[: count - filled]
        noise[filled : filled + standing.size] = standing
        filled += standing.size
    return noise


def bernoulli_exp(numerators: Integers, denominator: int, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability exp(−γ) each, exactly, for γ = numerator/denominator from 0 to 1.

    Coins of chance γ/1, γ/2, γ/3 … are thrown until one fails. The k-th is thrown at all with probability
    γ^(k−1)/(k−1)!, so the number thrown is odd with probability 1 − γ + γ²/2! − γ³/3! + … = exp(−γ).

    Args:
        numerators: Shape (count,), each from 0 to the denominator.
        denominator: Above 0.
        randomness: Source of the words.
    """
    odd = np.empty(numerators.size, dtype=np.bool_)
    running, thrown = np.arange(numerators.size), 1
    while running.size:
        succeeded = uniform_below(denominator * thrown, running.size, randomness) < numerators[running]
        odd[running[~succeeded]] = thrown % 2 == 1
        running, thrown = running[succeeded], thrown + 1
    return odd


def uniform_below(limit: int, count: int, randomness: Randomness) -> Integers:
    """Uniform integers in 0..limit−1, shape (count,); what lies past the last multiple of the limit is drawn again."""
    words_each = -(-limit.bit_length() // WORD_BITS)
    last = 2 ** (WORD_BITS * words_each) // limit * limit - 1
    numbers = _uniform(words_each, count, randomness)
    rejected = np.flatnonzero(numbers > last)
    if rejected.size:
        numbers = numbers.copy()
    while rejected.size:
        numbers[rejected] = _uniform(words_each, rejected.size, randomness)
        rejected = rejected[numbers[rejected] > last]
    return numbers % limit


def _uniform(words_each: int, count: int, randomness: Randomness) -> Integers:
    """Uniform integers of that many words, shape (count,)."""
    words: Integers = randomness.words(words_each * count, WORD_BITS)
    if words_each == 1:
        return words
    numbers = np.zeros(count, dtype=object)
    for row in words.reshape(words_each, count).astype(object):
        numbers = (numbers << WORD_BITS) | row
    return numbers


def _standing(scale: Fraction, count: int, randomness: Randomness) -> Integers:
    """Those of `count` candidates that stand.

    For a scale t/s, fine + t·runs is geometric with ratio exp(−1/t): the runs by coins of chance 1/e, the fine part,
    below t, by rejection. Its quotient by s is geometric with ratio exp(−s/t): the size of a draw, which lacks a sign.
    """
    t, s = scale.numerator, scale.denominator
    whole = np.dtype(np.int64 if max(t, s) < MAX_WORD_TERM else object)
    fine = uniform_below(t, count, randomness)
    kept = bernoulli_exp(fine, t, randomness)
    size: Integers = (fine.astype(whole) + t * _runs(count, randomness).astype(whole)) // s
    negative = uniform_below(2, count, randomness) == 1
    kept &= ~(negative & (size == 0))  # zero has one sign, or it would come twice as often
    standing: Integers = np.where(negative, -size, size)[kept]
    return standing


def _runs(count: int, randomness: Randomness) -> NDArray[np.int64]:
    """How many coins of chance 1/e succeed before one fails."""
    runs = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        running = running[bernoulli_exp(np.ones(running.size, dtype=np.uint64), 1, randomness)]
        runs[running] += 1
    return runs
