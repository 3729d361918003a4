"""Hadamard response: report a block and a column in which the truth's row is more often +1.

Not here: the transform (`hadamard`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.batch import MAX_OUTPUTS
from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms.blocks import check_matrix_size
from tallyveil.mechanisms.hadamard import odd, transform, with_sign
from tallyveil.mechanisms.nested_law import Nested, NestedLaw, nested_variance
from tallyveil.mechanisms.output_response import OutputResponse
from tallyveil.mechanisms.response import draw_below
from tallyveil.mechanisms.subset import draw_uniform
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Weights, class_weights
from tallyveil.randomness import Randomness, Words


@dataclass(frozen=True)
class Shape:
    """Blocks of values, and columns of each block's matrix.

    Args:
        groups: The values of each block; value i of a block has row i + 1 of the matrix.
        columns: b, a power of two above the values of any block.
    """

    groups: Binning
    columns: int

    @property
    def outputs(self) -> int:
        """Blocks × columns; output = block·b + column."""
        return self.groups.bins * self.columns

    @property
    def favoured(self) -> int:
        """Outputs that support one value."""
        return self.columns // 2

    def chances(self, ratio: Fraction) -> tuple[Nested, Fraction, Fraction]:
        """Own, near and far support, and how often the own and another block are shown, at weights ratio : 1."""
        half, quarter = self.favoured, Fraction(self.favoured, 2)
        total = half * ratio + self.outputs - half
        nested = Nested(half * ratio / total, quarter * (ratio + 1) / total, Fraction(half) / total)
        return nested, half * (ratio + 1) / total, self.columns / total


class HadamardLaw(NestedLaw):
    """Every report is one output; it supports the values of its block whose row is +1 in its column."""

    def __init__(self, shape: Shape, weights: Weights) -> None:
        nested, kept, stray = shape.chances(Fraction(weights.keep, weights.lie))
        stated: dict[str, object] = {
            "blocks": shape.groups.bins,
            "columns": shape.columns,
            "keep_weight": weights.keep,
            "lie_weight": weights.lie,
        }
        super().__init__(shape.groups, [nested] * shape.groups.bins, kept, stray, stated)
        self._shape = shape
        self._ratio = weights.keep / weights.lie
        self._total = shape.favoured * self._ratio + shape.outputs - shape.favoured

    @property
    def outputs(self) -> int:
        return self._shape.outputs

    def group_totals(self, tally: Tally) -> NDArray[np.int64]:
        """Reports of each block."""
        totals: NDArray[np.int64] = tally.counts.reshape(self.groups.bins, -1).sum(axis=1)
        return totals

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """Half of the block's reports and its transform, shape (K,)."""
        signed = transform(tally.counts.reshape(self.groups.bins, -1))
        supports: NDArray[np.int64] = (self.group_totals(tally)[:, None] + signed) // 2
        bin_of = self.groups.bin_of
        per_value: NDArray[np.int64] = supports[bin_of, np.arange(self.domain_size) - self.groups.starts[bin_of] + 1]
        return per_value

    def joint(self, counts: NDArray[np.float64], group: int) -> NDArray[np.float64]:
        """Two rows are both +1 in a quarter of the columns; favoured ones more, if the truth is either or their sum.

        The product of two rows of the matrix is the row of their numbers' exclusive or.
        """
        start, size, b = int(self.groups.starts[group]), int(self.groups.sizes[group]), self._shape.columns
        held = np.zeros(b)
        held[1 : size + 1] = counts[start : start + size]
        rows = np.arange(1, size + 1)
        either = held[rows][:, None] + held[rows][None, :] + held[rows[:, None] ^ rows[None, :]]
        plain = b / 4 * counts.sum() + (self._ratio - 1) * b / 8 * (held.sum() + either)
        result: NDArray[np.float64] = plain / self._total
        return result


class HadamardResponse(OutputResponse):
    """One of B·b outputs: favoured, with weight a, are those of the truth's block in whose column its row is +1.

    Privacy: epsilon-LDP; a/b ≤ e^epsilon exactly, in integers.
    Accuracy: block totals first, then values, since values of the same block are supported more often by chance.
        Blocks and columns are those of least total variance; its order is optimal at every epsilon.
    Source: Acharya, Sun, Zhang: Hadamard Response: Estimating Distributions Privately, Efficiently, and with Little
        Communication, AISTATS 2019.
    """

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(domain_size, epsilon, randomness)
        self._shape = best_shape(domain_size, epsilon)
        favoured = self._shape.favoured
        # `size` of these weights is not used: two classes of outputs are drawn, each uniform.
        self._weights = Weights(2, *class_weights(favoured, self._shape.outputs - favoured, epsilon))

    @property
    def name(self) -> str:
        return "hr"

    @property
    def shape(self) -> Shape:
        """Blocks and columns."""
        return self._shape

    @property
    def realised_epsilon(self) -> float:
        return self._weights.realised_epsilon

    @cached_property
    def _law(self) -> HadamardLaw:
        return HadamardLaw(self._shape, self._weights)

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Words:
        shape, weights, groups = self._shape, self._weights, self._shape.groups
        blocks = groups.bin_of[truth]
        rows = (truth - groups.starts[blocks] + 1).astype(np.uint32)
        # Three classes: favoured columns of the own block; its others; any column of another block.
        favoured, own = shape.favoured * weights.keep, shape.favoured * (weights.keep + weights.lie)
        total = own + (shape.outputs - shape.columns) * weights.lie
        word = np.dtype(f"u{weights.bits // 8}").type
        words = draw_below(word(total), truth.size, weights.bits, self._randomness)
        columns = self._randomness.words(truth.size, 32) & np.uint32(shape.columns - 1)
        shown = blocks.astype(np.uint64)
        kept = words < word(own) if total > own else np.ones(truth.size, dtype=np.bool_)
        columns = np.where(kept, with_sign(columns, rows, words >= word(favoured)), columns)
        strays = np.flatnonzero(~kept)
        if strays.size:
            other = draw_uniform(groups.bins - 1, strays.size, self._randomness)
            shown[strays] = other + (other >= blocks[strays])
        reports: Words = shown * np.uint64(shape.columns) + columns
        return reports

    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value, shape (K, B·b); rows sum to 1."""
        shape, groups = self._shape, self._shape.groups
        check_matrix_size(shape.outputs)
        blocks = groups.bin_of
        rows = (np.arange(self.domain_size) - groups.starts[blocks] + 1).astype(np.uint32)
        outputs = np.arange(shape.outputs, dtype=np.uint32)
        own = blocks[:, None] == outputs[None, :] // shape.columns
        plus = ~odd(outputs[None, :] % np.uint32(shape.columns), rows[:, None])
        weights = np.where(own & plus, float(self._weights.keep), float(self._weights.lie))
        result: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return result


@lru_cache(maxsize=1024)
def best_shape(domain_size: int, epsilon: NanoEpsilon) -> Shape:
    """Blocks and columns of least total variance, values equally frequent; the fewest blocks of equally good ones."""
    keep, lie, _ = class_weights(1, 1, epsilon)
    ratio = Fraction(keep, lie)
    shapes = list[Shape]()
    columns = 2
    while columns <= 2 * domain_size:
        bins = -(-domain_size // (columns - 1))
        if bins * columns <= MAX_OUTPUTS:
            shapes.append(Shape(Binning(domain_size, bins), columns))
        columns *= 2
    return min(reversed(shapes), key=lambda shape: _total_variance(shape, ratio))


def _total_variance(shape: Shape, ratio: Fraction) -> Fraction:
    nested, kept, stray = shape.chances(ratio)
    sizes = shape.groups.sizes.tolist()
    return nested_variance([nested] * len(sizes), sizes, kept, stray)
