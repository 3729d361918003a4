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
from tallyveil.second_columns import norm_sub_column
from tallyveil.survey import Survey

LEVEL = 0.95
_SIX_PLACES = Decimal("0.000001")
_TWELVE_PLACES = Decimal("0.000000000001")
"""Of estimates: the rounding errors of the most values that a bin may have then sum to less than 1e-6."""

_WIDE = Context(prec=80, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True)
class Pool:
    """Support counts of strata with equal parameters, added over departments.

    Args:
        epsilon: The permitted value these departments chose.
        cell: Number of the dimension cell; 0 without dimensions.
        departments: How many departments it holds.
        records: Their reports.
        support: The counts of their tally: C_v for the K values, or whatever the mechanism's reports show.
    """

    epsilon: NanoEpsilon
    cell: int
    departments: int
    records: int
    support: tuple[int, ...]

    @property
    def tally(self) -> Tally:
        """The support counts with their number of records."""
        return Tally(self.records, np.array(self.support, dtype=np.int64), self.departments)


@dataclass(frozen=True)
class Row:
    """One value of one table; decimals are rounded from exact rationals, estimates to twelve places, others to six.

    Args:
        value: The value's label.
        bin: Number of its bin.
        support: C_v, added over the table's pools.
        estimate: Unbiased count in records, negative or not.
        standard_error: Of the estimate, in records; the perturbation's error only.
        low: Lower end of the 95 % interval of the true count, within the bin's records.
        high: Upper end.
        quality: Letter, see `tallyveil.mechanisms.quality`.
        norm_sub: A second column, never in the first one's place: not negative, summing to n (to each bin's n where
            bins are disclosed), to twelve places. Biased; its error has no closed form, and readers draw it
            (`tallyveil.second_columns.bootstrap`).
    """

    value: str
    bin: int
    support: int
    estimate: Decimal
    standard_error: Decimal
    low: Decimal
    high: Decimal
    quality: str
    norm_sub: Decimal

    def to_json(self) -> Json:
        return {
            "value": self.value,
            "bin": self.bin,
            "support": self.support,
            "estimate": f"{self.estimate:f}",
            "standard_error": f"{self.standard_error:f}",
            "low": f"{self.low:f}",
            "high": f"{self.high:f}",
            "quality": self.quality,
            "norm_sub": f"{self.norm_sub:f}",
        }


@dataclass(frozen=True)
class BinTotal:
    """A bin's exact number of records: with BRR the aggregator sees it, so it is published as it is."""

    bin: int
    first: str
    last: str
    records: int

    def to_json(self) -> Json:
        return {"bin": self.bin, "first": self.first, "last": self.last, "records": self.records}


@dataclass(frozen=True)
class Table:
    """Estimates of the total, or of one dimension cell.

    Args:
        cell: (dimension, value) pairs; None for the total.
        records: n of the table; an estimate where the mechanism does not tell it.
        bins: Their exact totals.
        rows: One for each value of the domain, in order.
    """

    cell: tuple[tuple[str, str], ...] | None
    records: int
    bins: tuple[BinTotal, ...]
    rows: tuple[Row, ...]

    def to_json(self) -> Json:
        return {
            "cell": None if self.cell is None else dict(self.cell),
            "records": self.records,
            "bins": [item.to_json() for item in self.bins],
            "rows": [row.to_json() for row in self.rows],
        }


def build_tables(survey: Survey, pools: Sequence[Pool]) -> tuple[Table, ...]:
    """The total, then one table per dimension cell where there are dimensions."""
    tables = [_table(survey, None, pools)]
    if survey.dimensions:
        cells = range(survey.cell_count)
        tables += [_table(survey, cell, [pool for pool in pools if pool.cell == cell]) for cell in cells]
    return tuple(tables)


def estimate_pools(survey: Survey, pools: Iterable[Pool]) -> Estimate:
    """The sum of the pools' estimates; pools of one epsilon are added before they are corrected."""
    tallies: dict[NanoEpsilon, Tally] = {}
    for pool in pools:
        tally = pool.tally
        tallies[pool.epsilon] = tallies[pool.epsilon] + tally if pool.epsilon in tallies else tally
    if not tallies:
        nothing = np.zeros(for_survey(survey, survey.epsilons[0]).law.outputs, dtype=np.int64)
        tallies = {survey.epsilons[0]: Tally(0, nothing)}
    parts = [for_survey(survey, epsilon).estimate(tally) for epsilon, tally in sorted(tallies.items())]
    return reduce(Estimate.__add__, parts)


def _table(survey: Survey, cell: int | None, pools: Sequence[Pool]) -> Table:
    estimate, binning, labels = estimate_pools(survey, pools), survey.binning, survey.domain.labels
    support = np.sum([law.supports(tally) for law, tally in estimate.parts], axis=0)
    low, high = estimate.interval(LEVEL)
    second = norm_sub_column(estimate)
    rows: list[Row] = []
    for index, label in enumerate(labels):
        value, error = twelve_places(estimate.exact[index]), six_places(square_root(estimate.exact_variance[index]))
        rows.append(
            Row(
                value=label,
                bin=int(binning.bin_of[index]),
                support=int(support[index]),
                estimate=value,
                standard_error=error,
                low=six_places(Fraction(float(low[index]))),
                high=six_places(Fraction(float(high[index]))),
                quality=quality_letter(float(value), float(error)),
                norm_sub=twelve_places(second[index]),
            )
        )
    records = sum(law.total(tally) for law, tally in estimate.parts)
    totals = np.add.reduceat(support, binning.starts) if binning.bins > 1 else [records]
    bins = tuple(
        BinTotal(number, labels[int(start)], labels[int(start + size) - 1], int(records))
        for number, (start, size, records) in enumerate(zip(binning.starts, binning.sizes, totals, strict=True))
    )
    named = None
    if cell is not None:
        names = (dimension.name for dimension in survey.dimensions)
        named = tuple(zip(names, survey.cells[cell], strict=True))
    return Table(named, records, bins, tuple(rows))


def six_places(value: Fraction | Decimal) -> Decimal:
    """Rounded half to even; never minus zero."""
    return _rounded(value, _SIX_PLACES)


def twelve_places(value: Fraction | Decimal) -> Decimal:
    """Rounded half to even; never minus zero."""
    return _rounded(value, _TWELVE_PLACES)


def _rounded(value: Fraction | Decimal, places: Decimal) -> Decimal:
    exact = value if isinstance(value, Decimal) else _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    rounded = exact.quantize(places, context=_WIDE)
    return abs(rounded) if rounded.is_zero() else rounded


def square_root(value: Fraction) -> Decimal:
    """Correctly rounded to 80 digits: the same text on every machine."""
    return _WIDE.sqrt(_WIDE.divide(Decimal(value.numerator), Decimal(value.denominator)))
