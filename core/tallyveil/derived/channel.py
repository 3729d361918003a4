"""Channels of mechanisms whose tally is the histogram of what was reported, applied without their matrix.

Not here: what they serve (`forms`, and `tallyveil.second_columns.em`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.brr_sealed import SealedLaw
from tallyveil.mechanisms.hadamard import transform
from tallyveil.mechanisms.hr import HadamardLaw
from tallyveil.mechanisms.law import Law

Floats = NDArray[np.float64]

_transform = cast(Callable[[Floats], Floats], transform)  # additions alone, whatever the numbers are


class Channel(Protocol):
    """P[v, z]: the chance that a record of value v is reported as z."""

    def expected(self, counts: Floats) -> Floats:
        """Σ_v counts[v]·P[v, z], shape (outputs,), for counts of shape (K,)."""
        ...

    def average(self, worth: Floats) -> Floats:
        """Σ_z P[v, z]·worth[z], shape (K,), for numbers of shape (outputs,)."""
        ...


class BlockChannel:
    """Randomised response inside bins: K steps each way; it is its own transpose.

    Args:
        law: The bins and weights.
    """

    def __init__(self, law: Blocks) -> None:
        self._law = law

    def expected(self, counts: Floats) -> Floats:
        law = self._law
        result: Floats = law.q * law.bin_totals(counts) + (law.p - law.q) * counts
        return result

    def average(self, worth: Floats) -> Floats:
        return self.expected(worth)


class NestedChannel(ABC):
    """Reports that show a group and support values of it; a step for each value and output each way.

    Args:
        groups: Of values.
        group_of_output: The group each output shows, shape (outputs,).
        chances: Of one output, by group: where it supports the record's value; where it shows the group, and does not;
            where the record's group is another one. Each of shape (groups,).
    """

    def __init__(self, groups: Binning, group_of_output: NDArray[np.int64], chances: tuple[Floats, Floats, Floats]):
        self.groups = groups
        self._group_of_output = group_of_output
        self._chances = chances

    @abstractmethod
    def supported(self, numbers: Floats) -> Floats:
        """The sum over the values that each output supports, shape (outputs,), for numbers of shape (K,)."""

    @abstractmethod
    def supporting(self, numbers: Floats) -> Floats:
        """The sum over the outputs that support each value, shape (K,), for numbers of shape (outputs,)."""

    def spread(self, numbers: Floats, own: Floats, near: Floats, far: Floats) -> Floats:
        """For each output the sum over values of number times own, near or far, by how output and value stand."""
        held: Floats = np.add.reduceat(numbers, self.groups.starts)
        elsewhere = held * far
        common = held * near + elsewhere.sum() - elsewhere
        result: Floats = common[self._group_of_output] + (own - near)[self._group_of_output] * self.supported(numbers)
        return result

    def expected(self, counts: Floats) -> Floats:
        held: Floats = np.add.reduceat(counts, self.groups.starts)
        own, near, far = self._chances
        common = held * near + (held.sum() - held) * far
        result: Floats = common[self._group_of_output] + (own - near)[self._group_of_output] * self.supported(counts)
        return result

    def average(self, worth: Floats) -> Floats:
        own, near, far = self._chances
        bin_of = self.groups.bin_of
        held = np.bincount(self._group_of_output, weights=worth, minlength=self.groups.bins)
        elsewhere = held * far
        common = held * near + elsewhere.sum() - elsewhere
        result: Floats = common[bin_of] + (own - near)[bin_of] * self.supporting(worth)
        return result


class SealedChannel(NestedChannel):
    """The bin and the value perturbed: an output is a value, and supports it.

    Args:
        law: The bins and chances.
    """

    def __init__(self, law: SealedLaw) -> None:
        rows = np.array([[float(item.own), float(item.near), float(item.far)] for item in law.chances])
        super().__init__(law.groups, law.groups.bin_of, (rows[:, 0], rows[:, 1], rows[:, 2]))

    def supported(self, numbers: Floats) -> Floats:
        return numbers

    def supporting(self, numbers: Floats) -> Floats:
        return numbers


class HadamardChannel(NestedChannel):
    """Hadamard response: one transform of each block each way.

    Args:
        law: The blocks and chances.
    """

    def __init__(self, law: HadamardLaw) -> None:
        groups = law.groups
        columns = law.outputs // groups.bins
        favoured, other = (
            np.full(groups.bins, float(chance) * 2 / columns) for chance in (law.chances[0].own, law.chances[0].far)
        )
        super().__init__(groups, np.repeat(np.arange(groups.bins), columns), (favoured, other, other))
        self._rows = np.arange(groups.domain_size) - groups.starts[groups.bin_of] + 1
        self._shape = (groups.bins, columns)

    def supported(self, numbers: Floats) -> Floats:
        held = np.zeros(self._shape)
        held[self.groups.bin_of, self._rows] = numbers
        result: Floats = (held.sum(axis=1, keepdims=True) + _transform(held)) / 2
        return result.reshape(-1)

    def supporting(self, numbers: Floats) -> Floats:
        blocks = numbers.reshape(self._shape)
        result: Floats = (blocks.sum(axis=1, keepdims=True) + _transform(blocks)) / 2
        return np.asarray(result[self.groups.bin_of, self._rows])


def channel_of(law: Law) -> Channel | None:
    """The channel of a law whose tallies are histograms of reports; None for any other law."""
    if isinstance(law, Blocks):
        return BlockChannel(law)
    if isinstance(law, SealedLaw):
        return SealedChannel(law)
    return HadamardChannel(law) if isinstance(law, HadamardLaw) else None
