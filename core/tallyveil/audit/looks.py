"""What an audit sees of a report: one of finitely many outcomes, as a fixed function of the report.

Not here: which outcomes tell two values apart (`search`). Any function of a report is post-processing: it cannot make
an epsilon larger than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.audit.supports import Supports, in_bits, in_sets, supports_of
from tallyveil.errors import ConfigurationError

MAX_DIRECT = 1 << 18
"""Reports that are whole numbers below this are outcomes themselves."""

SPARE = 16
"""Outcomes above the largest first seen, and a quarter more: what is larger still counts as the last of them."""

MAX_CUTS = 4_096
SMALL = 256
"""Whole reports of several numbers are outcomes too, where there are no more than this many different ones."""


class BlackBox(Protocol):
    """Anything that perturbs."""

    def perturb(self, values: NDArray[np.int64], /) -> ArrayLike:
        """One report for each value, shape (n,) or (n, width)."""
        ...


class Look(Protocol):
    """One way to see a report, for a pair of values."""

    @property
    def outcomes(self) -> int:
        """How many there are."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether neighbouring outcomes are alike, so that "up to here" is an event worth a look."""
        ...

    def see(self, reports: NDArray[Any], values: Sequence[int]) -> NDArray[Any]:
        """What `pair` needs of the reports, whatever the pair of `values` is."""
        ...

    def pair(self, seen: NDArray[Any], first: int, second: int) -> NDArray[np.integer[Any]]:
        """The outcomes, shape (n,), for the pair at these places of `values`."""
        ...

    def describe(self, outcomes: NDArray[np.int64], first: int, second: int) -> str:
        """An event in words."""
        ...


@dataclass(frozen=True)
class Direct:
    """The report is the outcome."""

    outcomes: int
    ordered: bool = True

    def see(self, reports: NDArray[Any], values: Sequence[int]) -> NDArray[Any]:
        if reports.dtype.kind not in "iub" or int(reports.min(initial=0)) < 0:
            raise _other_reports()
        if int(reports.max(initial=0)) < self.outcomes:
            return reports.astype(np.uint8) if reports.dtype.kind == "b" else reports
        capped: NDArray[Any] = np.minimum(reports, self.outcomes - 1)
        return capped

    def pair(self, seen: NDArray[Any], first: int, second: int) -> NDArray[np.integer[Any]]:
        return seen

    def describe(self, outcomes: NDArray[np.int64], first: int, second: int) -> str:
        return f"report in {_listed(outcomes.tolist())}" if outcomes.size > 1 else f"report = {int(outcomes[0])}"


@dataclass(frozen=True, eq=False)
class Cut:
    """Numbers, by the interval they lie in; cuts are such that every number first seen has its own, if they are few."""

    cuts: NDArray[Any]
    ordered: bool = True

    @property
    def outcomes(self) -> int:
        return self.cuts.size + 1

    def see(self, reports: NDArray[Any], values: Sequence[int]) -> NDArray[Any]:
        return np.searchsorted(self.cuts, reports).astype(np.uint16)

    def pair(self, seen: NDArray[Any], first: int, second: int) -> NDArray[np.integer[Any]]:
        return seen

    def describe(self, outcomes: NDArray[np.int64], first: int, second: int) -> str:
        ends = [f"{float(self.cuts[place]):.6g}" for place in range(self.cuts.size)]
        names = [f"({low}, {high}]" for low, high in zip(["−∞", *ends], [*ends, "∞"], strict=True)]
        return f"report in {_listed([names[int(item)] for item in outcomes])}"


@dataclass(frozen=True)
class Rows:
    """Whole reports of a few numbers, each below its radix."""

    width: int
    radix: int
    ordered: bool = False

    @property
    def outcomes(self) -> int:
        return int(self.radix**self.width)

    def see(self, reports: NDArray[Any], values: Sequence[int]) -> NDArray[Any]:
        if int(reports.min(initial=0)) < 0 or int(reports.max(initial=0)) >= self.radix:
            raise _other_reports()
        return reports.astype(np.int64) @ (self.radix ** np.arange(self.width)[::-1])

    def pair(self, seen: NDArray[Any], first: int, second: int) -> NDArray[np.integer[Any]]:
        return seen

    def describe(self, outcomes: NDArray[np.int64], first: int, second: int) -> str:
        numbers = list(product(range(self.radix), repeat=self.width))
        return f"report in {_listed([' '.join(map(str, numbers[int(item)])) for item in outcomes])}"


@dataclass(frozen=True)
class Patterns:
    """How strongly the report speaks for each value of the pair."""

    supports: Supports
    levels: int
    ordered: bool = False

    @property
    def outcomes(self) -> int:
        return self.levels**2

    def see(self, reports: NDArray[Any], values: Sequence[int]) -> NDArray[Any]:
        levels = self.supports(reports, np.array(values, dtype=np.int64))
        return np.ascontiguousarray(levels.T)

    def pair(self, seen: NDArray[Any], first: int, second: int) -> NDArray[np.integer[Any]]:
        codes: NDArray[np.integer[Any]] = seen[first] * np.uint8(self.levels) + seen[second]
        return codes

    def describe(self, outcomes: NDArray[np.int64], first: int, second: int) -> str:
        return " or ".join(
            f"{self._speaks(item // self.levels)} {first} and {self._speaks(item % self.levels)} {second}"
            for item in outcomes.tolist()
        )

    def _speaks(self, level: int) -> str:
        if self.levels > 2:
            return f"{level} of {self.levels - 1} bits of"
        return "supports" if level else "not"


def looks_at(box: BlackBox, domain_size: int, pilot: NDArray[Any]) -> tuple[Look, ...]:
    """The ways to see a black box's reports.

    Args:
        box: A mechanism of ours is known by its class; anything else by what it sends.
        domain_size: K.
        pilot: Some reports of different values, shape (n,) or (n, width).

    Raises:
        ConfigurationError: Reports are nothing an audit can look at.
    """
    known = supports_of(box)
    if known is not None:
        return (Patterns(*known), *_whole(pilot))
    if pilot.ndim == 1:
        return (_numbers(pilot),)
    if pilot.ndim == 2 and pilot.dtype.kind in "iub" and pilot.size:
        low, high = int(pilot.min()), int(pilot.max())
        if pilot.shape[1] == domain_size and low >= 0 and high <= 1:
            return (Patterns(in_bits, 2), *_whole(pilot))
        if low >= 0 and high < domain_size and (np.diff(np.sort(pilot.astype(np.int64), axis=1)) > 0).all():
            return (Patterns(in_sets, 2), *_whole(pilot))
        if whole := _whole(pilot):
            return whole
    raise ConfigurationError(
        "reports of this shape are nothing an audit can look at",
        not_done="nothing was audited",
        next_step="let perturb return numbers, a bit for each value, or sets of values",
    )


def _numbers(pilot: NDArray[Any]) -> Look:
    if pilot.dtype.kind in "iub" and int(pilot.min(initial=0)) >= 0 and int(pilot.max(initial=0)) < MAX_DIRECT:
        highest = int(pilot.max(initial=0))
        return Direct(highest + highest // 4 + SPARE)
    distinct = np.unique(pilot)
    if distinct.size > MAX_CUTS:
        distinct = np.unique(np.quantile(pilot, np.linspace(0, 1, SMALL)))
    return Cut(distinct)


def _whole(pilot: NDArray[Any]) -> tuple[Look, ...]:
    if pilot.ndim != 2 or pilot.dtype.kind not in "iub" or int(pilot.min(initial=0)) < 0:
        return ()
    look = Rows(pilot.shape[1], int(pilot.max(initial=1)) + 1)
    return (look,) if look.width <= 8 and look.outcomes <= SMALL else ()


def _listed(items: Sequence[object]) -> str:
    few, more = items[:6], len(items) - 6
    return "{" + ", ".join(map(str, few)) + (f" … {more} more" if more > 0 else "") + "}"


def _other_reports() -> ConfigurationError:
    return ConfigurationError(
        "later reports are of another kind than the first ones", not_done="the audit was not finished"
    )
