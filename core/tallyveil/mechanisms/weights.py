"""Integer weights for "keep" and "lie", rounded so that the realised epsilon is never above the one asked for.

Not here: drawing with them (`response`). Both the agent and the aggregator take p and q from this one function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor

from tallyveil.epsilon import NANO, NanoEpsilon
from tallyveil.errors import InternalError
from tallyveil.randomness import WordBits

LARGEST_LOSS = 1e-5
"""Where 32-bit words lose more of epsilon than this, 64-bit words are drawn."""


@dataclass(frozen=True)
class Chances:
    """p and q as numbers made once, since a Fraction costs more to make than to use."""

    p: Fraction
    q: Fraction


@dataclass(frozen=True)
class Weights:
    """P(keep) = keep / total and P(each other value) = lie / total, drawn from words of `bits` bits.

    Args:
        size: k, how many values the response has; at least 2.
        keep: a, with a/b ≤ e^epsilon.
        lie: b.
        bits: Word size; total < 2^bits.
    """

    size: int
    keep: int
    lie: int
    bits: WordBits

    def resized(self, size: int) -> Weights:
        """The same keep and lie weights for a response over fewer values."""
        return replace(self, size=size)

    @property
    def total(self) -> int:
        return self.keep + (self.size - 1) * self.lie

    @property
    def p(self) -> Fraction:
        """Probability of reporting the truth."""
        return Fraction(self.keep, self.total)

    @property
    def q(self) -> Fraction:
        """Probability of reporting one particular other value."""
        return Fraction(self.lie, self.total)

    @property
    def chances(self) -> Chances:
        """p and q together."""
        return Chances(self.p, self.q)

    @property
    def realised_epsilon(self) -> float:
        """ln(a/b) in nats, the nearest float: never above the nearest float of the epsilon asked for."""
        context = Context(prec=60)
        return float(context.ln(context.divide(Decimal(self.keep), Decimal(self.lie))))


@lru_cache(maxsize=4096)
def response_weights(size: int, epsilon: NanoEpsilon) -> Weights:
    """The weights of randomised response over `size` values.

    Privacy: keep = ⌊e^epsilon · lie⌋ by interval arithmetic, hence ln(keep/lie) ≤ epsilon exactly.
    Accuracy: ln(keep/lie) ≥ epsilon − `LARGEST_LOSS`.
    """
    return Weights(size, *class_weights(1, size - 1, epsilon))


@lru_cache(maxsize=4096)
def class_weights(
    keeping: int, lying: int, epsilon: NanoEpsilon, scale: Fraction = Fraction(1)
) -> tuple[int, int, WordBits]:
    """Weights a and b, and the word size in which keeping·a + lying·b fits.

    Args:
        keeping: Outcomes of weight a.
        lying: Outcomes of weight b.
        epsilon: Bounds ln(a/b), where `scale` is 1.
        scale: a/b ≤ e^epsilon·scale, with e^epsilon·scale ≥ 1.

    Privacy: a = ⌊e^epsilon·scale·b⌋ by interval arithmetic, hence ln(a/b) ≤ epsilon + ln(scale) exactly.
    Accuracy: ln(a/b) ≥ epsilon + ln(scale) − `LARGEST_LOSS`.
    """
    low, high = (bound * scale for bound in exp_bounds(epsilon, digits=60))
    choices: tuple[WordBits, ...] = (32, 64)
    for bits in choices:
        lie = floor(Fraction(2**bits - 1) / (keeping * high + lying))
        keep = floor_times(epsilon, lie * scale)
        if lie >= 1 and (bits == 64 or low * lie / keep - 1 <= LARGEST_LOSS):
            return keep, lie, bits
    raise InternalError("no integer weights fit 64-bit words")  # unreachable for domains ≤ 2^16, epsilon ≤ 16


def floor_times(epsilon: NanoEpsilon, factor: Fraction) -> int:
    """⌊e^epsilon · factor⌋, exactly: digits are added until both interval ends agree."""
    digits = 60
    while True:
        low, high = exp_bounds(epsilon, digits)
        if floor(low * factor) == floor(high * factor):
            return floor(low * factor)
        digits *= 2


def exp_bounds(epsilon: NanoEpsilon, digits: int, divisor: int = 1) -> tuple[Fraction, Fraction]:
    """An interval that holds e^(epsilon/divisor).

    `decimal` computes exp correctly rounded to `digits` digits, so its neighbours on both sides bound it.
    """
    context = Context(prec=digits)  # never the caller's own, which may hold fewer digits than epsilon has
    centre = context.exp(context.divide(Decimal(epsilon), Decimal(NANO * divisor)))
    return (
        Fraction(Context(prec=digits, rounding=ROUND_FLOOR).next_minus(centre)),
        Fraction(Context(prec=digits, rounding=ROUND_CEILING).next_plus(centre)),
    )
