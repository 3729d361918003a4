"""Sealed binned randomised response: bin, perturb the bin, perturb inside it.

Not here: which pair of weights is taken (`sealed_weights`), and bins in clear (`brr`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.blocks import check_matrix_size
from tallyveil.mechanisms.nested_law import NestedLaw
from tallyveil.mechanisms.output_response import OutputResponse
from tallyveil.mechanisms.response import draw_below, draw_offsets, shift_within
from tallyveil.mechanisms.sealed_weights import SealedWeights, sealed_weights
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Randomness, Words


class SealedLaw(NestedLaw):
    """Every report is one value: it supports it, and shows its bin."""

    @property
    def outputs(self) -> int:
        """K."""
        return self.domain_size

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """How often each value was reported."""
        return tally.counts

    def group_totals(self, tally: Tally) -> NDArray[np.int64]:
        """How often a value of each bin was reported."""
        totals: NDArray[np.int64] = np.add.reduceat(tally.counts, self.groups.starts)
        return totals

    def joint(self, counts: NDArray[np.float64], group: int) -> NDArray[np.float64]:
        """None: a report supports one value."""
        size = int(self.groups.sizes[group])
        return np.zeros((size, size))


class SealedBinnedResponse(OutputResponse):
    """The bin by randomised response over bins; inside a kept bin the value, too; in another one a uniform value.

    Privacy: epsilon-LDP over the whole domain; nothing is sent in clear.
    Accuracy: bins first, then values: ĉ_v = (C_v − n̂_b·near − (n − n̂_b)·far)/(own − near). Estimates of a bin sum
        to n̂_b exactly.
    Source: the pair of epsilons is chosen here; see `sealed_weights`.
    """

    def __init__(self, domain_size: int, bins: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(domain_size, epsilon, randomness)
        self._groups = Binning(domain_size, bins)
        if self._groups.bins < 2 or self._groups.smallest < 2:
            raise ConfigurationError(
                f"brr-sealed needs at least two bins of at least two values each, not {self._groups.describe()}",
                not_done="no mechanism was made",
                next_step=f"ask for 2 to {domain_size // 2} bins, or choose grr",
            )
        self._weights = sealed_weights(self._groups, epsilon)

    @property
    def name(self) -> str:
        return "brr-sealed"

    @property
    def weights(self) -> SealedWeights:
        """Over bins and inside one."""
        return self._weights

    @property
    def realised_epsilon(self) -> float:
        return self._weights.realised_epsilon

    @cached_property
    def _law(self) -> SealedLaw:
        outer, inner = self._weights.outer, self._weights.inner
        stated: dict[str, object] = {
            "bin_keep_weight": outer.keep,
            "bin_lie_weight": outer.lie,
            "keep_weight": inner.keep,
            "lie_weight": inner.lie,
        }
        chances = {size: self._weights.chances(size) for size in set(self._groups.sizes.tolist())}
        per_group = [chances[size] for size in self._groups.sizes.tolist()]
        return SealedLaw(self._groups, per_group, outer.p, outer.q, stated)

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Words:
        groups, outer, inner = self._groups, self._weights.outer, self._weights.inner
        bins = groups.bin_of[truth]
        word = np.dtype(f"u{outer.bits // 8}").type
        shift = draw_offsets(outer, word(outer.total), truth.size, self._randomness)
        kept = np.flatnonzero(shift == 0)
        shown = shift_within(bins, shift, word(outer.size)).astype(np.int64)
        reports = groups.starts[shown].astype(np.uint64)
        sizes = groups.sizes.astype(f"u{inner.bits // 8}")
        mine = bins[kept]
        totals = np.array([inner.resized(int(size)).total for size in groups.sizes], dtype=sizes.dtype)
        offsets = draw_offsets(inner, totals[mine], kept.size, self._randomness)
        reports[kept] += shift_within(truth[kept] - groups.starts[mine], offsets, sizes[mine])
        strays = np.setdiff1d(np.arange(truth.size), kept, assume_unique=True)
        reports[strays] += self._uniform_below(groups.sizes[shown[strays]])
        return reports

    def _uniform_below(self, sizes: NDArray[np.int64]) -> NDArray[np.uint64]:
        """One uniform integer below each size: words past the size's last multiple are drawn again."""
        limits = (2**32 - 1) // sizes * sizes
        words = draw_below(limits.astype(np.uint32), sizes.size, 32, self._randomness)
        result: NDArray[np.uint64] = words.astype(np.uint64) % sizes.astype(np.uint64)
        return result

    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value, shape (K, K): row = truth, column = report; rows sum to 1."""
        check_matrix_size(self.domain_size)
        bin_of, items = self._groups.bin_of, self._law.chances
        near = np.array([float(item.near) for item in items])[bin_of]
        far = np.array([float(item.far) for item in items])[bin_of]
        matrix = np.where(bin_of[:, None] == bin_of[None, :], near[None, :], far[None, :])
        np.fill_diagonal(matrix, np.array([float(item.own) for item in items])[bin_of])
        return matrix
