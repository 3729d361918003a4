"""Tables of corrected estimates from pooled support counts: the arithmetic of a release, which anyone can repeat.

Not here: signatures and the document around the tables (`tallyveil.release`), and which submissions count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import reduce

import numpy as np

from tallyveil.canonical import Json
from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms import Tally, for_survey
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.mechanisms.quality import quality_letter
from tallyveil.survey import Survey

LEVEL = 0.95
_DIGITS = Decimal("0.000001")
_WIDE = Context(prec=80, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True)
class Pool:
    """Support counts of strata with equal parameters, added over departments.

    Args:
        epsilon: The permitted value these departments chose.
        cell: Number of the dimension cell; 0 without dimensions.
        departments: How many departments it holds.
        support: C_v for the K values.
    """

    epsilon: NanoEpsilon
    cell: int
    departments: int
    support: tuple[int, ...]

    @property
    def records(self) -> int:
        return sum(self.support)


def build_tables(survey: Survey, pools: Sequence[Pool]) -> list[Json]:
    """The total, then one table per dimension cell where there are dimensions.

    Estimates and standard errors are decimal texts with six places, rounded from exact rationals; interval bounds
    are whole records within the bin's own number of records where one epsilon was used.
    """
    tables = [_table(survey, None, pools)]
    if survey.dimensions:
        tables += [
            _table(survey, cell, [pool for pool in pools if pool.cell == cell]) for cell in range(survey.cell_count)
        ]
    return tables


def estimate_pools(survey: Survey, pools: Iterable[Pool]) -> Estimate:
    """The sum of the pools' estimates; pools of one epsilon are added before they are corrected."""
    tallies: dict[NanoEpsilon, Tally] = {}
    for pool in pools:
        tally = Tally.of(pool.support)
        tallies[pool.epsilon] = tallies[pool.epsilon] + tally if pool.epsilon in tallies else tally
    if not tallies:
        tallies = {survey.epsilons[0]: Tally.of([0] * survey.domain.size)}
    parts = [for_survey(survey, epsilon).estimate(tally) for epsilon, tally in sorted(tallies.items())]
    return reduce(Estimate.__add__, parts)


def _table(survey: Survey, cell: int | None, pools: Sequence[Pool]) -> Json:
    estimate = estimate_pools(survey, pools)
    support = np.sum([pool.support for pool in pools], axis=0) if pools else np.zeros(survey.domain.size, dtype=int)
    low, high = estimate.interval(LEVEL)
    bin_of, labels = survey.binning.bin_of, survey.domain.labels
    rows: list[Json] = []
    for index, label in enumerate(labels):
        value, error = estimate.exact[index], square_root(estimate.exact_variance[index])
        rows.append(
            {
                "value": label,
                "bin": int(bin_of[index]),
                "support": int(support[index]),
                "estimate": decimal_text(value),
                "standard_error": decimal_text(error),
                "low": decimal_text(Fraction(float(low[index]))),
                "high": decimal_text(Fraction(float(high[index]))),
                "quality": quality_letter(float(value), float(error)),
            }
        )
    totals = np.add.reduceat(support, survey.binning.starts)
    bins: list[Json] = [
        {
            "bin": number,
            "first": labels[int(start)],
            "last": labels[int(start + size) - 1],
            "records": int(records),
        }
        for number, (start, size, records) in enumerate(
            zip(survey.binning.starts, survey.binning.sizes, totals, strict=True)
        )
    ]
    names = (
        None
        if cell is None
        else {dimension.name: value for dimension, value in zip(survey.dimensions, survey.cells[cell], strict=True)}
    )
    return {"cell": names, "records": int(support.sum()), "bins": bins, "rows": rows}


def decimal_text(value: Fraction | Decimal) -> str:
    """Six places, half to even; never an exponent, never minus zero."""
    exact = value if isinstance(value, Decimal) else _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    rounded = exact.quantize(_DIGITS, context=_WIDE)
    return f"{abs(rounded) if rounded.is_zero() else rounded:f}"


def square_root(value: Fraction) -> Decimal:
    """Correctly rounded to 80 digits: the same text on every machine."""
    return _WIDE.sqrt(_WIDE.divide(Decimal(value.numerator), Decimal(value.denominator)))
