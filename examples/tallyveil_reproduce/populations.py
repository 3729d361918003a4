"""What the experiments are run on: true counts by value, from a table or from a stated formula.

Not here: perturbation. Nothing here is random: the same counts come out on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tallyveil_demo.offices import LOW, load_offices

Shape = Literal["Zipf", "uniform", "normal", "geometric"]

RECORDS = 100_000
"""Records of each made-up population, as in the paper."""

FORMULAS: dict[Shape, str] = {
    "Zipf": "1/(v+1)",
    "uniform": "1",
    "normal": "exp(−(v − (K−1)/2)²/(2s²)), s = K/8",
    "geometric": "(1 − 5/K)^v",
}
"""What the chance of value v = 0..K−1 is in proportion to; the paper states no parameters, so these are ours."""


@dataclass(frozen=True)
class Population:
    """Records by department and value.

    Args:
        name: What tells it from every other one.
        histograms: True counts, shape (departments, K).
        first_value: The value at index 0.
    """

    name: str
    histograms: NDArray[np.int64] = field(compare=False, repr=False)
    first_value: int = field(default=0, compare=False)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Over all departments, shape (K,)."""
        total: NDArray[np.int64] = self.histograms.sum(axis=0)
        return total

    @property
    def records(self) -> int:
        return int(self.histograms.sum())

    @property
    def departments(self) -> int:
        return len(self.histograms)

    @property
    def domain_size(self) -> int:
        """K."""
        return self.counts.size


@cache
def high_income_heads(copies: int = 1) -> Population:
    """The 16,685 heads by age, 15 to 99, in the files of 17 regional offices; every record `copies` times."""
    name = "FIES" if copies == 1 else f"FIES ×{copies}"
    return Population(name, copies * np.stack([office.counts for office in load_offices()]), LOW)


@cache
def made_up(shape: Shape, domain_size: int) -> Population:
    """100,000 records of one department: expected counts, rounded so that they sum to exactly that many.

    Args:
        shape: One of `FORMULAS`.
        domain_size: K.
    """
    values = np.arange(domain_size, dtype=np.float64)
    weights = {
        "Zipf": 1 / (values + 1),
        "uniform": np.ones(domain_size),
        "normal": np.exp(-((values - (domain_size - 1) / 2) ** 2) / (2 * (domain_size / 8) ** 2)),
        "geometric": (1 - 5 / domain_size) ** values,
    }[shape]
    return Population(f"{shape}, K={domain_size}", _rounded(RECORDS * weights / weights.sum())[None, :])


def _rounded(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers with the same sum: the largest remainders are rounded up, the first of equal ones first."""
    whole = np.floor(expected).astype(np.int64)
    missing = round(float(expected.sum())) - int(whole.sum())
    remainders = np.round(expected - whole, 9)  # equal ones are equal on every machine
    whole[np.argsort(-remainders, kind="stable")[:missing]] += 1
    return whole
