"""The law of mechanisms whose reports say something of a group and more of a value, and disclose neither.

Not here: groups in clear (`blocks`). A report shows one group; a record's own group more often than another one; and
supports its own value more often than others of its group, those more often than values of other groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.binning import Binning
from tallyveil.mechanisms.blocks import check_matrix_size
from tallyveil.mechanisms.interval import count_interval, is_nearly_normal, normal_interval
from tallyveil.mechanisms.law import Cell, chances_text, require_possible
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Chances


@dataclass(frozen=True)
class Nested:
    """How often a report supports a value of one group; exact.

    Args:
        own: Where the record holds the value.
        near: Where it holds another value of the same group.
        far: Where it holds a value of another group.
    """

    own: Fraction
    near: Fraction
    far: Fraction

    @cached_property
    def among_near(self) -> Chances:
        """As if every record held a value of the group."""
        return Chances(self.own, self.near)

    @cached_property
    def among_far(self) -> Chances:
        """As if no other record held a value of the group."""
        return Chances(self.own, self.far)


@dataclass(frozen=True)
class Weighting:
    """What one report adds to the estimate of a value: the estimate is linear in reports.

    Args:
        own: Where it supports the value.
        near: Where it shows the value's group, and does not support the value.
        far: Where it shows another group.
    """

    own: Fraction
    near: Fraction
    far: Fraction


def weighting_of(chances: Nested, kept: Fraction, stray: Fraction) -> Weighting:
    """What a report adds to the estimate of one value of a group.

    The group's own total is n̂ = (N − n·stray)/(kept − stray); with it
    ĉ = (C − n̂·near − (n − n̂)·far)/(own − near). With a single group, which every report shows, n̂ = n.
    """
    scale = chances.own - chances.near
    inside, outside = ((shown - stray) / (kept - stray) if kept < 1 else Fraction(1) for shown in (1, 0))
    near, far = (-(total * chances.near + (1 - total) * chances.far) / scale for total in (inside, outside))
    return Weighting(near + 1 / scale, near, far)


def nested_variance(chances: Sequence[Nested], sizes: Sequence[int], kept: Fraction, stray: Fraction) -> Fraction:
    """Total variance per record over all values, values equally frequent, exactly; less 1, the same for all laws."""
    values, total = sum(sizes), Fraction(0)
    for (item, size), groups in Counter(zip(chances, sizes, strict=True)).items():
        weighting, share = weighting_of(item, kept, stray), Fraction(size, values)
        shown = share * kept + (1 - share) * stray
        support = (item.own + (size - 1) * item.near) / values + (1 - share) * item.far
        squares = support * weighting.own**2 + (shown - support) * weighting.near**2 + (1 - shown) * weighting.far**2
        total += groups * size * squares
    return total


@dataclass(frozen=True)
class NestedCell:
    """A cell of such a law.

    Args:
        support: Reports that support the value.
        in_group: Reports that show its group.
        records: n, all reports.
        chances: Of the group.
        weighting: Of the group.
    """

    support: int
    in_group: int
    records: int
    chances: Nested
    weighting: Weighting

    @property
    def corrected(self) -> Fraction:
        """Unbiased; the sum of what the reports add."""
        own, near, far = self._split
        return own * self.weighting.own + near * self.weighting.near + far * self.weighting.far

    @property
    def variance(self) -> Fraction:
        """The sum of the squares of what the reports add, less the estimate: unbiased, since one record has 0 or 1."""
        own, near, far = self._split
        weighting = self.weighting
        return own * weighting.own**2 + near * weighting.near**2 + far * weighting.far**2 - self.corrected

    @property
    def _split(self) -> tuple[int, int, int]:
        return self.support, self.in_group - self.support, self.records - self.in_group

    @property
    def limit(self) -> int:
        return self.records

    @property
    def nearly_normal(self) -> bool:
        return is_nearly_normal(self.records, self.chances.among_far)

    def interval(self, level: float) -> tuple[float, float]:
        """By the normal law where records are many; else by inverting the support count's law.

        That law depends on how many records are of the same group: the lower end takes all of them to be, the upper
        end none, so that both hold whatever the truth is.
        """
        if self.nearly_normal:
            return normal_interval(self.corrected, self.variance, self.records, level)
        low, _ = count_interval(self.support, self.records, self.chances.among_near, level)
        _, high = count_interval(self.support, self.records, self.chances.among_far, level)
        return min(low, high), max(low, high)


class NestedLaw(ABC):
    """Groups, and the chances of each.

    Args:
        groups: Which values are in one group; at least two groups.
        chances: Of each group.
        kept: A report shows the record's own group with this probability.
        stray: It shows one particular other group.
        stated: The whole numbers that these follow from.
    """

    signed: ClassVar[bool] = False

    def __init__(
        self,
        groups: Binning,
        chances: Sequence[Nested],
        kept: Fraction,
        stray: Fraction,
        stated: dict[str, object],
    ) -> None:
        self.groups = groups
        self.chances = tuple(chances)
        self.kept = kept
        self.stray = stray
        self._stated = stated

    @property
    def domain_size(self) -> int:
        return self.groups.domain_size

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Counts of a tally."""

    def total(self, tally: Tally) -> int:
        """n."""
        return tally.records

    @abstractmethod
    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """Support count of each value, shape (K,)."""

    @abstractmethod
    def group_totals(self, tally: Tally) -> NDArray[np.int64]:
        """Reports that show each group, shape (groups,)."""

    @abstractmethod
    def joint(self, counts: NDArray[np.float64], group: int) -> NDArray[np.float64]:
        """Expected reports that support two values of a group at once, were `counts` the truth, shape (size, size).

        The diagonal is not read.
        """

    @cached_property
    def weightings(self) -> tuple[Weighting, ...]:
        """What a report adds to estimates of each group's values."""
        return tuple(weighting_of(item, self.kept, self.stray) for item in self.chances)

    @property
    def parameters(self) -> tuple[dict[str, object], ...]:
        """What the chances follow from, and those of each group size there is."""
        by_size = dict(zip(self.groups.sizes.tolist(), self.chances, strict=True))
        return tuple(
            {"group_values": size}
            | self._stated
            | chances_text({"kept": self.kept, "own": item.own, "near": item.near, "far": item.far})
            for size, item in sorted(by_size.items())
        )

    def check(self, tally: Tally) -> None:
        """Every report shows one output: the counts sum to the number of records."""
        require_possible(tally.counts.shape == (self.outputs,) and int(tally.counts.min()) >= 0)
        require_possible(sum(map(int, tally.counts)) == tally.records)

    def cells(self, tally: Tally) -> Sequence[Cell]:
        """One for each value."""
        totals = list(map(int, self.group_totals(tally)))
        return [
            NestedCell(support, totals[group], tally.records, self.chances[group], self.weightings[group])
            for support, group in zip(map(int, self.supports(tally)), map(int, self.groups.bin_of), strict=True)
        ]

    def corrected(self, tally: Tally) -> NDArray[np.float64]:
        """What `cells` give, in floats, shape (K,)."""
        supports, totals = self.supports(tally), self.group_totals(tally)[self.groups.bin_of]
        own, near, far = self._per_value
        result: NDArray[np.float64] = supports * own + (totals - supports) * near + (tally.records - totals) * far
        return result

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Expected sum of the squares of what the reports add, less the count, shape (K,)."""
        c = np.asarray(counts, dtype=np.float64)
        supports, totals = self._expected_supports(c), self._expected_totals(c)[self.groups.bin_of]
        own, near, far = self._per_value
        result: NDArray[np.float64] = (
            supports * own**2 + (totals - supports) * near**2 + (c.sum() - totals) * far**2 - c
        )
        return result

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Expected sum of the products of what the reports add to two values, less the counts on the diagonal."""
        check_matrix_size(self.domain_size)
        c = np.asarray(counts, dtype=np.float64)
        n, bin_of = c.sum(), self.groups.bin_of
        supports, totals = self._expected_supports(c), self._expected_totals(c)
        own, near, far = self._per_value
        # Of reports that show the value's group, what each value receives in all: every other value takes `far` of it.
        received = supports * own + (totals[bin_of] - supports) * near
        elsewhere = n - totals[bin_of][:, None] - totals[bin_of][None, :]
        matrix: NDArray[np.float64] = (
            received[:, None] * far[None, :] + far[:, None] * received[None, :] + elsewhere * np.outer(far, far)
        )
        for group, (start, size) in enumerate(zip(self.groups.starts, self.groups.sizes, strict=True)):
            inside = slice(int(start), int(start + size))
            both = self.joint(c, group)
            alone = supports[inside][:, None] - both
            other = supports[inside][None, :] - both
            neither = totals[group] - both - alone - other
            high, low = own[inside][0], near[inside][0]
            block = both * high**2 + (alone + other) * high * low + neither * low**2
            matrix[inside, inside] = block + (n - totals[group]) * far[inside][0] ** 2
        np.fill_diagonal(matrix, self.variance(c))
        return matrix

    @cached_property
    def _per_value(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        rows = [[float(item.own), float(item.near), float(item.far)] for item in self.weightings]
        columns = np.array(rows)[self.groups.bin_of]
        return columns[:, 0], columns[:, 1], columns[:, 2]

    def _expected_totals(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        held: NDArray[np.float64] = np.add.reduceat(counts, self.groups.starts)
        result: NDArray[np.float64] = held * float(self.kept) + (counts.sum() - held) * float(self.stray)
        return result

    def _expected_supports(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.array([[float(item.own), float(item.near), float(item.far)] for item in self.chances])
        own, near, far = rows[self.groups.bin_of].T
        held: NDArray[np.float64] = np.add.reduceat(counts, self.groups.starts)[self.groups.bin_of]
        result: NDArray[np.float64] = counts * own + (held - counts) * near + (counts.sum() - held) * far
        return result
