"""Linear statistics of one law and tally: Σ w_v·ĉ_v with its variance, w'·Cov·w, without the matrix where that can be.

Not here: sums over several laws (`linear`). Every form says what it knows: an exact constant, and independent parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tallyveil.derived.channel import NestedChannel, channel_of
from tallyveil.derived.coefficients import Coefficients
from tallyveil.derived.pair_law import PairLaw, least_variance
from tallyveil.derived.parts import Bounded, Noisy, Part, Scaled, Several
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.estimate import plausible_counts
from tallyveil.mechanisms.interval import NORMAL_FROM
from tallyveil.mechanisms.laplace_law import LaplaceLaw
from tallyveil.mechanisms.law import Cell, Law, SupportCell
from tallyveil.mechanisms.nested_law import NestedLaw
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.weights import Chances

Parts = tuple[Fraction, Sequence[Part]]
"""What is known exactly, and what is estimated; the statistic is their sum."""


class Form(Protocol):
    """Linear statistics of one law and tally."""

    def parts(self, weights: Coefficients) -> Parts:
        """Of the statistic with these weights, shape (K,)."""
        ...


def form_of(law: Law, tally: Tally) -> Form:
    """The best form for the law: any law has one."""
    if isinstance(law, Blocks):
        return BlockForm(law, tally)
    if isinstance(law, SupportLaw):
        return SupportForm(law, tally)
    if isinstance(law, LaplaceLaw):
        return LaplaceForm(law, tally)
    channel = channel_of(law)
    if isinstance(law, NestedLaw) and isinstance(channel, NestedChannel):
        return NestedForm(law, tally, channel)
    return MatrixForm(law, tally)


class BlockForm:
    """Randomised response in bins: whole bins are known exactly, bins are independent of each other."""

    def __init__(self, law: Blocks, tally: Tally) -> None:
        self._law = law
        self._tally = tally

    def parts(self, weights: Coefficients) -> Parts:
        law, numbers = self._law, weights.numbers
        starts, counts = law.binning.starts, self._tally.counts
        lowest, highest = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
        totals = np.add.reduceat(counts, starts)
        known, cells, rest = 0, list[Scaled](), list[int]()
        for number, (low, high, total) in enumerate(zip(lowest, highest, totals, strict=True)):
            if low == high or total == 0:
                known += int(low) * int(total)
                continue
            rest.append(number)
        if len(rest) <= 2:
            split = [self._split(number, numbers) for number in rest]
            if all(item is not None for item in split):
                for item in split:
                    if item is not None:
                        known += item[0]
                        cells.append(Scaled(item[1], Fraction(item[2], weights.denominator)))
                return Fraction(known, weights.denominator), cells
        return Fraction(known, weights.denominator), [self._bounded(rest, weights)]

    def _split(self, number: int, numbers: NDArray[np.generic]) -> tuple[int, SupportCell, int] | None:
        """(constant, cell, scale) of a bin in which only two weights occur; None where there are more.

        The records of some values of a bin are supported as those of one value are, with p and q raised by the chance
        that a lie falls on another one of them; the fewer of the two sets of values are taken.
        """
        law = self._law
        start, size = int(law.binning.starts[number]), int(law.binning.sizes[number])
        inside, counts = numbers[start : start + size], self._tally.counts[start : start + size]
        low, high = inside.min(), inside.max()
        upper = inside == high
        if not bool((upper | (inside == low)).all()):
            return None
        if 2 * int(upper.sum()) > size:
            upper, low, high = ~upper, high, low
        item, members, records = law.weights[number], int(upper.sum()), int(counts.sum())
        chances = Chances(item.p + (members - 1) * item.q, members * item.q)
        return int(low) * records, SupportCell(int(counts[upper].sum()), records, chances), int(high) - int(low)

    def _bounded(self, bins: Sequence[int], weights: Coefficients) -> Part:
        law, counts, denominator = self._law, self._tally.counts, weights.denominator
        value, variance = Fraction(0), Fraction(0)
        low = high = largest = least = step = spread = 0.0
        for number in bins:
            start, size = int(law.binning.starts[number]), int(law.binning.sizes[number])
            inside, item = slice(start, start + size), law.weights[number]
            own, records = Coefficients(weights.numbers[inside], denominator), int(counts[inside].sum())
            pairs = PairLaw(item.p, item.q, -item.p * item.q, -(item.q**2))
            one, its_variance = pairs.estimated(own, counts[inside], records)
            value, variance = value + one, variance + its_variance
            each, reach = pairs.by_truth(own.floats), float(np.ptp(own.floats)) / pairs.scale
            low, high = low + records * float(own.floats.min()), high + records * float(own.floats.max())
            largest, least = largest + records * float(each.max()), least + records * float(each.min())
            step, spread = max(step, reach), spread + records * reach**2
        return Bounded(value, variance, (low, high), least >= NORMAL_FROM * step**2, largest, step, spread)


class SupportForm:
    """Reports that support several values, all alike."""

    def __init__(self, law: SupportLaw, tally: Tally) -> None:
        self._law = law
        self._tally = tally

    def parts(self, weights: Coefficients) -> Parts:
        law, tally, records = self._law, self._tally, self._tally.records
        if law.size is not None and weights.ends[0] == weights.ends[1]:  # every report supports so many: they sum to n
            return Fraction(int(weights.numbers[0]) * records, weights.denominator), []
        alone = np.flatnonzero(weights.numbers)
        if alone.size == 0 or records == 0:
            return Fraction(0), []
        if alone.size == 1:
            place = int(alone[0])
            cell = SupportCell(int(tally.counts[place]), records, law)
            return Fraction(0), [Scaled(cell, Fraction(int(weights.numbers[place]), weights.denominator))]
        near, far = law.with_truth - law.p * law.q, law.among_others - law.q**2
        pairs = PairLaw(law.p, law.q, near, far)
        value, variance = pairs.estimated(weights, tally.counts, records)
        floats = weights.floats
        each = pairs.by_truth(floats)
        variance = variance if variance > 0 else least_variance(records, each)
        step, squares = self._ends(floats, independent=near == 0 and far == 0)
        step, squares = step / pairs.scale, squares / pairs.scale**2
        q = float(law.q)
        normal = records * q * (1 - q) >= NORMAL_FROM or records * float(each.min()) >= NORMAL_FROM * step**2
        limits = records * float(floats.min()), records * float(floats.max())
        return Fraction(0), [
            Bounded(value, variance, limits, normal, records * float(each.max()), step, records * squares)
        ]

    def _ends(self, weights: NDArray[np.float64], *, independent: bool) -> tuple[float, float]:
        """How far the ends of one independent contribution lie apart, times p − q; and Σ of squares over a report's.

        Where pairs are independent, all bits are (unary encodings), and each is a contribution of its own.
        """
        if independent:
            return float(np.abs(weights).max()), float((weights**2).sum())
        if self._law.size is not None:
            ranked, size = np.sort(weights), self._law.size
            ends = float(ranked[-size:].sum() - ranked[:size].sum())
        else:
            ends = float(np.abs(weights).sum())
        return ends, ends**2


class NestedForm:
    """Reports that are one output of a known channel: every output adds a known number to the statistic.

    A record of value v adds w_v on average, so that the variance, Σ_z E[T_z]·φ(z)² − Σ_v c_v·w_v², is estimated
    without bias from the histogram T and the estimates ĉ alone.
    """

    def __init__(self, law: NestedLaw, tally: Tally, channel: NestedChannel) -> None:
        self._law = law
        self._tally = tally
        self._channel = channel
        rows = np.array([[float(item.own), float(item.near), float(item.far)] for item in law.weightings])
        self._weightings = rows[:, 0], rows[:, 1], rows[:, 2]

    @cached_property
    def _cells(self) -> Sequence[Cell]:
        return self._law.cells(self._tally)

    def parts(self, weights: Coefficients) -> Parts:
        records, floats = self._tally.records, weights.floats
        places = np.flatnonzero(weights.numbers).tolist()
        if not places or records == 0:
            return Fraction(0), []
        cells = [
            Scaled(self._cells[place], Fraction(int(weights.numbers[place]), weights.denominator)) for place in places
        ]
        if len(cells) == 1:
            return Fraction(0), cells
        if weights.ends[0] == weights.ends[1] and self._law.outputs == self._law.domain_size:  # they sum to n
            return Fraction(int(weights.numbers[0]) * records, weights.denominator), []
        worth = self._channel.spread(floats, *self._weightings)
        counts, corrected = self._tally.counts.astype(np.float64), self._law.corrected(self._tally)
        each = self._channel.average(worth**2) - floats**2
        estimated = Fraction(float(counts @ worth**2 - corrected @ floats**2))
        variance = estimated if estimated > 0 else least_variance(records, each)
        step = float(np.ptp(worth))
        normal = all(cell.nearly_normal for cell in cells) or records * float(each.min()) >= NORMAL_FROM * step**2
        value = sum((cell.value for cell in cells), Fraction(0))
        limits = records * float(floats.min()), records * float(floats.max())
        return Fraction(0), [
            Bounded(value, variance, limits, normal, records * float(each.max()), step, records * step**2)
        ]


class LaplaceForm:
    """Noise on a department's histogram: independent from count to count."""

    def __init__(self, law: LaplaceLaw, tally: Tally) -> None:
        self._law = law
        self._tally = tally

    def parts(self, weights: Coefficients) -> Parts:
        law, tally, floats = self._law, self._tally, weights.floats
        squares = weights.squares
        if squares == 0:
            return Fraction(0), []
        value = Fraction(weights.sums(tally.counts)[0], weights.denominator)
        variance = tally.histograms * law.noise_variance * squares / weights.denominator**2
        low, high = float(floats.min()), float(floats.max())
        if law.counted:
            limits = tally.records * low, tally.records * high
        else:
            limits = 0.0 if low >= 0 else -inf, 0.0 if high <= 0 else inf
        return Fraction(0), [Noisy(value, variance, limits, law.scale, tally.histograms, weights)]


class MatrixForm:
    """Any law: w'·Cov·w with the matrix, for domains small enough for it; bounds from those of the cells."""

    def __init__(self, law: Law, tally: Tally) -> None:
        self._law = law
        self._tally = tally

    @cached_property
    def _cells(self) -> Sequence[Cell]:
        return self._law.cells(self._tally)

    @cached_property
    def _covariance(self) -> NDArray[np.float64]:
        return self._law.covariance(plausible_counts(self._law, self._tally))

    def parts(self, weights: Coefficients) -> Parts:
        floats, numbers = weights.floats, weights.numbers.tolist()
        cells = tuple(
            Scaled(cell, Fraction(number, weights.denominator))
            for cell, number in zip(self._cells, numbers, strict=True)
            if number
        )
        if len(cells) < 2 or self._tally.records == 0:
            return Fraction(0), cells
        variance = Fraction(max(float(floats @ self._covariance @ floats), 0.0))
        records = self._tally.records
        limits = records * float(floats.min()), records * float(floats.max())
        return Fraction(0), [Several(cells, variance, limits)]
