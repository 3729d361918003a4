"""Coefficients of a linear statistic, as whole numbers over one denominator, so that sums are exact and quick.

Not here: what they are applied to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ConfigurationError

Number = int | float | Fraction | Decimal | SupportsIndex
"""A float stands for the binary fraction it is."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """One weight for each value: numbers / denominator.

    Args:
        numbers: Shape (K,), Python's integers, so that no sum overflows.
        denominator: At least 1.
    """

    numbers: NDArray[np.object_]
    denominator: int = 1

    @classmethod
    def of(cls, weights: Sequence[Number] | NDArray[Any], size: int) -> Coefficients:
        """Weights of `size` values.

        Raises:
            ConfigurationError: Another number of weights, or one that is no finite number.
        """
        try:
            exact = [_fraction(weight) for weight in weights]
        except (ValueError, OverflowError, TypeError):
            raise ConfigurationError("weights are finite numbers", not_done="nothing was computed") from None
        if len(exact) != size:
            raise ConfigurationError(f"{size} values need {size} weights", not_done="nothing was computed")
        denominator = lcm(*(weight.denominator for weight in exact))
        scaled = (weight.numerator * (denominator // weight.denominator) for weight in exact)
        return cls(_objects(scaled, size), denominator)

    @classmethod
    def of_range(cls, first: int, last: int, size: int, inside: int, outside: int) -> Coefficients:
        """One weight for the values first..last and another for the rest."""
        return cls(_objects((inside if first <= place <= last else outside for place in range(size)), size))

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The weights as floats, shape (K,)."""
        return np.array([number / self.denominator for number in self.numbers.tolist()])

    @cached_property
    def small(self) -> NDArray[np.int64] | None:
        """The numbers in 64 bits, if they fit."""
        return self.numbers.astype(np.int64) if self._extent < 2**31 else None

    def sums(self, counts: NDArray[np.int64]) -> tuple[int, int]:
        """Σ w·C and Σ w²·C over counts C ≥ 0, exactly, with the numbers for w."""
        numbers: NDArray[Any] = self.numbers
        tallied: NDArray[Any] = counts.astype(np.object_)
        if self.small is not None and float(counts.sum(dtype=np.float64)) * max(self._extent, 1) ** 2 < 2**62:
            numbers, tallied = self.small, counts  # no sum overflows
        weighted = numbers * tallied
        return int(weighted.sum()), int((numbers * weighted).sum())

    @cached_property
    def _extent(self) -> int:
        return max(abs(int(self.numbers.min())), abs(int(self.numbers.max())))


def _objects(numbers: Any, size: int) -> NDArray[np.object_]:
    return np.fromiter(numbers, dtype=np.object_, count=size)


def _fraction(weight: Any) -> Fraction:
    return Fraction(int(weight)) if hasattr(weight, "__index__") else Fraction(weight)
