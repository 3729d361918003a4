"""Unary encodings: a bit for each value, every bit perturbed on its own.

Not here: bits of hashed values.
"""

from __future__ import annotations

from abc import abstractmethod
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import floor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.subset import column_sums, draw_bytes
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.support_response import SupportResponse
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import LARGEST_LOSS, exp_bounds
from tallyveil.randomness import Randomness, WordBits

MAX_CHANNEL_VALUES = 12


class UnaryEncoding(SupportResponse):
    """The truth's bit is 1 with probability p, every other bit with probability q; independent.

    Chances are whole numbers over 2^bits: a bit is 1 where a word lies below its chance. p is rounded down and q up,
    so the largest ratio of the channel, p(1−q)/((1−p)q), is never above e^epsilon.
    """

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(domain_size, epsilon, randomness)
        chances = self._chances()
        self._one, self._other = chances[:2]
        self._bits: WordBits = chances[2]

    @abstractmethod
    def _rounded(self, bits: WordBits) -> tuple[int, int]:
        """p and q as whole numbers over 2^bits."""

    def _chances(self) -> tuple[int, int, WordBits]:
        choices: tuple[WordBits, ...] = (32, 64)
        for bits in choices:
            one, other = self._rounded(bits)
            if bits == 64 or float(self.epsilon) / 1e9 - log_ratio(one, other, bits) <= LARGEST_LOSS:
                return one, other, bits
        raise AssertionError("64 bits are always taken")

    @property
    def width(self) -> int:
        """K: one number, 0 or 1, for each value."""
        return self.domain_size

    @property
    def realised_epsilon(self) -> float:
        return log_ratio(self._one, self._other, self._bits)

    @cached_property
    def _law(self) -> SupportLaw:
        p, q = Fraction(self._one, 2**self._bits), Fraction(self._other, 2**self._bits)
        stated: dict[str, object] = {
            "one_weight": self._one,
            "other_weight": self._other,
            "word_bits": self._bits,
        }
        return SupportLaw(self.domain_size, p, q, p * q, q * q, None, stated)

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        return self._ones(truth).view(np.uint8)

    def _ones(self, truth: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Which bits of each report are 1, shape (records, K).

        A bit is 1 where a uniform number below 2^bits lies below its chance. The number's first byte decides unless
        it equals the chance's; only then are its other bytes drawn.
        """
        leading = draw_bytes((truth.size, self.domain_size), self._randomness)
        first, rest = divmod(self._other, 1 << (self._bits - 8))
        ones = leading < np.uint8(first)
        flat = ones.reshape(-1)
        open_ = np.flatnonzero(leading.reshape(-1) == np.uint8(first))
        flat[open_] = self._rest_below(rest, open_.size)
        rows = np.arange(truth.size)
        mine = leading[rows, truth]
        first, rest = divmod(self._one, 1 << (self._bits - 8))
        own = mine < np.uint8(first)
        open_ = np.flatnonzero(mine == np.uint8(first))
        own[open_] = self._rest_below(rest, open_.size)
        ones[rows, truth] = own
        return ones

    def _rest_below(self, rest: int, count: int) -> NDArray[np.bool_]:
        """Whether a uniform number of all bits but the first eight lies below a chance's rest."""
        words = self._randomness.words(count, self._bits)
        below: NDArray[np.bool_] = words >> words.dtype.type(8) < words.dtype.type(rest)
        return below

    def _perturbed_tally(self, truth: NDArray[np.integer[Any]]) -> Tally:
        return Tally(truth.size, column_sums(self._ones(truth)))

    @property
    def _report_type(self) -> DTypeLike:
        return np.uint8

    def _supports(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        if reports.dtype.kind not in "uib" or (reports.size and not 0 <= int(reports.min()) <= int(reports.max()) <= 1):
            raise InputError("a report holds a 0 or a 1 for each value", not_done="nothing was counted")
        counts: NDArray[np.int64] = reports.sum(axis=0, dtype=np.int64)
        return counts

    def channel(self) -> NDArray[np.float64]:
        """The output law of each value, shape (K, 2^K), bit patterns in lexicographic order; rows sum to 1."""
        if self.domain_size > MAX_CHANNEL_VALUES:
            raise ConfigurationError(f"the channel of a unary encoding is made for at most {MAX_CHANNEL_VALUES} values")
        p, q = float(self.law.p), float(self.law.q)
        outputs = np.array(list(product((0, 1), repeat=self.domain_size)), dtype=np.float64)
        chance = np.full((self.domain_size, self.domain_size), q)
        np.fill_diagonal(chance, p)
        terms = np.where(outputs[None, :, :] == 1, chance[:, None, :], 1 - chance[:, None, :])
        law: NDArray[np.float64] = terms.prod(axis=2)
        return law


class SymmetricUnaryEncoding(UnaryEncoding):
    """p = e^(epsilon/2)/(1 + e^(epsilon/2)) and q = 1 − p.

    Privacy: epsilon-LDP; (p/q)² ≤ e^epsilon exactly.
    Accuracy: var ĉ_v = [c·p(1−p) + (n−c)·q(1−q)]/(p−q)²; bits of one report are independent.
    Source: Erlingsson, Pihur, Korolova 2014 (basic RAPPOR, one time); Wang et al., USENIX Security 2017 (SUE).
    """

    @property
    def name(self) -> str:
        return "sue"

    def _rounded(self, bits: WordBits) -> tuple[int, int]:
        one = symmetric_one(self.epsilon, bits)
        return one, 2**bits - one


class OptimisedUnaryEncoding(UnaryEncoding):
    """p = 1/2 and q = 1/(e^epsilon + 1): the least variance where most values are rare.

    Privacy: epsilon-LDP; (1 − q)/q ≤ e^epsilon exactly, since q is rounded up.
    Accuracy: var ĉ_v is about n·4e^epsilon/(e^epsilon − 1)², independent of K.
    Source: Wang, Blocki, Li, Jha: Locally Differentially Private Protocols for Frequency Estimation, USENIX 2017 (OUE).
    """

    @property
    def name(self) -> str:
        return "oue"

    def _rounded(self, bits: WordBits) -> tuple[int, int]:
        low, _ = exp_bounds(self.epsilon, digits=60)
        return 2 ** (bits - 1), -floor(-(Fraction(2**bits) / (low + 1)))


def symmetric_chances(epsilon: NanoEpsilon) -> tuple[int, WordBits]:
    """How often of 2^bits a bit is kept, so that two bits of one report together stay within epsilon."""
    one = symmetric_one(epsilon, 32)
    if float(epsilon) / 1e9 - log_ratio(one, 2**32 - one, 32) <= LARGEST_LOSS:
        return one, 32
    return symmetric_one(epsilon, 64), 64


def symmetric_one(epsilon: NanoEpsilon, bits: WordBits, together: int = 2) -> int:
    """How often of 2^bits a bit is kept, so that so many bits together stay within epsilon; rounded down."""
    share_low, _ = exp_bounds(epsilon, digits=60, divisor=together)
    return floor(share_low / (1 + share_low) * (1 << bits))


def log_ratio(one: int, other: int, bits: WordBits) -> float:
    """ln of p(1−q)/((1−p)q), in nats, for chances p and q given over 2^bits."""
    total, context = 2**bits, Context(prec=60)
    ratio = context.divide(Decimal(one * (total - other)), Decimal((total - one) * other))
    return float(context.ln(ratio))
