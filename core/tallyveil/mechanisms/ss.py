"""Subset selection: report a set of d values, more often one that holds the truth.

Not here: how a uniform subset is drawn (`subset`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.response import draw_below
from tallyveil.mechanisms.subset import column_sums, draw_members
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.support_response import SupportResponse
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Weights, class_weights
from tallyveil.randomness import Randomness

MAX_OUTPUTS = 20_000
CHUNK_MEMBERS = 1 << 20
"""Entries of the table of members that is drawn at a time."""


class SubsetSelection(SupportResponse):
    """A set of d values that holds the truth with probability d·a/(d·a + (K−d)·b), uniform in its class.

    Every set with the truth in it has the weight a, every other one b, so a/b is the channel's largest ratio. d is the
    size with the least total variance.

    Privacy: epsilon-LDP; a/b ≤ e^epsilon exactly, in integers.
    Accuracy: the total variance reaches the minimax floor of unbiased estimates as n grows.
    Source: Ye and Barg: Optimal Schemes for Discrete Distribution Estimation under Locally Differential Privacy, IEEE
        Transactions on Information Theory 2018; Wang et al. 2016 (the same scheme).
    """

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(domain_size, epsilon, randomness)
        size = best_size(domain_size, epsilon)
        self._weights = Weights(size, *class_weights(size, domain_size - size, epsilon))

    @property
    def name(self) -> str:
        return "ss"

    @property
    def width(self) -> int:
        """d."""
        return self._weights.size

    @property
    def realised_epsilon(self) -> float:
        return self._weights.realised_epsilon

    @cached_property
    def _law(self) -> SupportLaw:
        return _law_of(self.domain_size, self._weights)

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        values = np.nonzero(self._members(truth))[1]
        return values.reshape(truth.size, self.width)

    @property
    def _report_type(self) -> DTypeLike:
        return np.min_scalar_type(self.domain_size - 1)

    def _members(self, truth: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Which values each report holds, shape (records, at least K)."""
        d, weights = self.width, self._weights
        held = d * weights.keep
        total = np.dtype(f"u{weights.bits // 8}").type(held + (self.domain_size - d) * weights.lie)
        holds = draw_below(total, truth.size, weights.bits, self._randomness) < held
        members = draw_members(d - holds.astype(np.int64), truth, self.domain_size, self._randomness)
        members[np.arange(truth.size), truth] = holds
        return members

    def _perturbed_tally(self, truth: NDArray[np.integer[Any]]) -> Tally:
        return Tally(truth.size, column_sums(self._members(truth))[: self.domain_size])

    @property
    def _chunk_records(self) -> int:
        return max(CHUNK_MEMBERS // self.domain_size, 1)

    def _supports(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        if reports.dtype.kind not in "ui" or (reports.size and int(reports.max()) >= self.domain_size):
            raise InputError("a report is not a set of the domain's indices", not_done="nothing was counted")
        counts: NDArray[np.int64] = np.bincount(reports.reshape(-1), minlength=self.domain_size)
        return counts

    def channel(self) -> NDArray[np.float64]:
        """The output law of each value, shape (K, number of sets), sets in lexicographic order; rows sum to 1."""
        outputs = comb(self.domain_size, self.width)
        if outputs > MAX_OUTPUTS:
            raise ConfigurationError(f"the channel has {outputs} outputs; it is made for at most {MAX_OUTPUTS}")
        weights, size = self._weights, self.width
        total = comb(self.domain_size - 1, size - 1) * weights.keep + comb(self.domain_size - 1, size) * weights.lie
        matrix = np.full((self.domain_size, outputs), weights.lie / total)
        for number, chosen in enumerate(combinations(range(self.domain_size), size)):
            matrix[list(chosen), number] = weights.keep / total
        return matrix


def best_size(domain_size: int, epsilon: NanoEpsilon) -> int:
    """The d with the least total variance, near K/(e^epsilon + 1); the smaller of two equal ones."""
    keep, lie, _ = class_weights(1, domain_size - 1, epsilon)
    ratio = Fraction(keep, lie)
    centre = int(domain_size / (float(ratio) + 1))
    sizes = range(max(centre - 1, 1), min(centre + 2, domain_size - 1) + 1)
    return min(sizes, key=lambda size: _total_variance(domain_size, size, ratio))


def _total_variance(domain_size: int, size: int, ratio: Fraction) -> Fraction:
    """Per record, over all values, whatever the truth: the sum of [p(1−p) + (K−1)·q(1−q)]/(p−q)²."""
    p, q = _p_and_q(domain_size, size, ratio)
    return (p * (1 - p) + (domain_size - 1) * q * (1 - q)) / (p - q) ** 2


def _p_and_q(domain_size: int, size: int, ratio: Fraction) -> tuple[Fraction, Fraction]:
    p = size * ratio / (size * ratio + domain_size - size)
    return p, (p * (size - 1) + (1 - p) * size) / (domain_size - 1)


def _law_of(domain_size: int, weights: Weights) -> SupportLaw:
    size, others = weights.size, domain_size - 1
    p, q = _p_and_q(domain_size, size, Fraction(weights.keep, weights.lie))
    among = Fraction(0)
    if others > 1:
        pairs = others * (others - 1)
        among = (p * (size - 1) * (size - 2) + (1 - p) * size * (size - 1)) / pairs
    stated: dict[str, object] = {"subset_size": size, "keep_weight": weights.keep, "lie_weight": weights.lie}
    return SupportLaw(domain_size, p, q, p * Fraction(size - 1, others), among, size, stated)
