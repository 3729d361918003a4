"""Coefficients of a linear statistic, as whole numbers over one denominator, so that sums are exact.

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

Exact = NDArray[Any]
"""Whole numbers: of 64 bits where no sum of their squares overflows, else Python's."""

_LARGEST = 2**22  # its square times MAX_VALUES is 2^60
_WIDEST = 2**500


@dataclass(frozen=True, eq=False)
class Coefficients:
    """One weight for each value: numbers / denominator.

    Args:
        numbers: Shape (K,); see `exact_numbers`.
        denominator: At least 1.
    """

    numbers: Exact
    denominator: int = 1

    @classmethod
    def of(cls, weights: Sequence[Number] | NDArray[Any], size: int) -> Coefficients:
        """Weights of `size` values.

        Raises:
            ConfigurationError: Another number of weights, or one that is no finite number of a sensible size.
        """
        try:
            exact = [_fraction(weight) for weight in weights]
        except (ValueError, OverflowError, TypeError):
            raise ConfigurationError("weights are finite numbers", not_done="nothing was computed") from None
        if len(exact) != size:
            raise ConfigurationError(f"{size} values need {size} weights", not_done="nothing was computed")
        denominator = lcm(*(weight.denominator for weight in exact))
        numbers = [weight.numerator * (denominator // weight.denominator) for weight in exact]
        if denominator > _WIDEST or max(map(abs, numbers)) > _WIDEST:
            raise ConfigurationError("weights have at most 150 digits", not_done="nothing was computed")
        return cls(exact_numbers(numbers), denominator)

    @classmethod
    def of_range(cls, first: int, last: int, size: int, inside: int, outside: int) -> Coefficients:
        """One small weight for the values first..last and another for the rest."""
        numbers = np.full(size, outside, dtype=np.int64)
        numbers[first : last + 1] = inside
        return cls(numbers)

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The weights as floats, shape (K,)."""
        result: NDArray[np.float64] = self.numbers.astype(np.float64) / float(self.denominator)
        return result

    @cached_property
    def total(self) -> int:
        """Sum of the numbers."""
        return int(self.numbers.sum())

    @cached_property
    def squares(self) -> int:
        """Sum of their squares."""
        return int((self.numbers * self.numbers).sum())

    @cached_property
    def ends(self) -> tuple[int, int]:
        """Smallest and largest number."""
        return int(self.numbers.min()), int(self.numbers.max())

    def sums(self, counts: NDArray[np.int64]) -> tuple[int, int]:
        """Σ w·C and Σ w²·C over counts C, exactly, with the numbers for w."""
        tallied: Exact = counts
        largest = float(np.abs(counts).sum(dtype=np.float64)) * max(map(abs, self.ends)) ** 2
        if largest >= 2**62:
            tallied = counts.astype(np.object_)
        weighted = self.numbers * tallied
        return int(weighted.sum()), int((self.numbers * weighted).sum())


def exact_numbers(numbers: Sequence[int]) -> Exact:
    """Whole numbers in as narrow a type as their sums of squares allow."""
    narrow = max(map(abs, numbers)) <= _LARGEST
    return np.array(numbers, dtype=np.int64 if narrow else np.object_)


def _fraction(weight: Any) -> Fraction:
    return Fraction(int(weight)) if hasattr(weight, "__index__") else Fraction(weight)
