"""The two tables of the note on numeric noise: one answer, and two of different magnitude under one sensitivity.

Not here: the noise itself (`tallyveil.discrete_laplace`). The note rounds continuous noise computed in floats; here
whole-number noise is drawn exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np

from tallyveil.discrete_laplace import draw, within
from tallyveil.randomness import Keystream, Randomness
from tallyveil_reproduce.mean_error import mean_size_of_noise

REACH = 5
SEEN_BY_NOTE = 0.99


@dataclass(frozen=True)
class OneAnswer:
    """How many of the noisy answers are off by at most `REACH`; shares of 1.

    Args:
        true_answer: 3000.
        sensitivity: 1.
        epsilon: 1.
        draws: Noisy answers in each repeat.
        repeats: How often.
        share: Mean over the repeats.
        share_sd: Of one repeat.
        share_expected: By the exact law of this project's noise.
        share_of_note: By the law of the note's rounded continuous noise.
        seen_by_note: In its only run.
    """

    true_answer: int
    sensitivity: int
    epsilon: float
    draws: int
    repeats: int
    share: float
    share_sd: float
    share_expected: float
    share_of_note: float
    seen_by_note: float


@dataclass(frozen=True)
class MagnitudeRow:
    """One of the answers that share a sensitivity; errors relative to the true answer, as fractions.

    Args:
        low: The 5 % quantile of the noisy answers.
        high: The 95 % quantile.
        relative_error: Mean of |noise| / true answer.
        relative_error_sd: Of that mean, from one repeat to another.
        relative_error_expected: By the exact law.
    """

    true_answer: int
    sensitivity: int
    epsilon: float
    draws: int
    repeats: int
    low: float
    high: float
    relative_error: float
    relative_error_sd: float
    relative_error_expected: float


def one_answer(repeats: int, randomness: Randomness | None = None) -> OneAnswer:
    """100 noisy answers in each repeat."""
    draws, scale = 100, Fraction(1)
    noise = draw(scale, repeats * draws, randomness or Keystream()).reshape(repeats, draws)
    shares = (np.abs(noise) <= REACH).mean(axis=1)
    rounded = 1 - exp(-(REACH + 0.5) / float(scale))
    return OneAnswer(3000, 1, 1.0, draws, repeats, float(shares.mean()), float(shares.std(ddof=1)),
                     within(scale, REACH), rounded, SEEN_BY_NOTE)  # fmt: skip


def two_answers(repeats: int, randomness: Randomness | None = None) -> Sequence[MagnitudeRow]:
    """1,000 noisy answers to each of the two questions in each repeat."""
    draws, scale, coins = 1_000, Fraction(5), randomness or Keystream()
    rows = list[MagnitudeRow]()
    for answer in (3000, 10):
        noise = draw(scale, repeats * draws, coins).reshape(repeats, draws)
        errors = np.abs(noise).mean(axis=1) / answer
        low, high = np.quantile(answer + noise, (0.05, 0.95))
        rows.append(MagnitudeRow(answer, 5, 1.0, draws, repeats, float(low), float(high), float(errors.mean()),
                                 float(errors.std(ddof=1)), mean_size_of_noise(float(scale)) / answer))  # fmt: skip
    return rows
