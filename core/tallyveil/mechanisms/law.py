"""How support counts come from true counts: all that an estimate needs to know of a mechanism.

Not here: drawing reports, and the estimate itself (`estimate`). Both roles build a law from the survey alone, so that
p and q never come from a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.errors import PeerError
from tallyveil.mechanisms.interval import Chances, count_interval, is_nearly_normal
from tallyveil.mechanisms.tally import Tally


class Cell(Protocol):
    """One value of one tally: what its reports say about its true count."""

    @property
    def corrected(self) -> Fraction:
        """The unbiased estimate."""
        ...

    @property
    def variance(self) -> Fraction:
        """Unbiased estimate of its variance, never negative for counts that reports can have made."""
        ...

    @property
    def limit(self) -> int | None:
        """The true count is at most this; None where that is not known."""
        ...

    @property
    def nearly_normal(self) -> bool:
        """Whether so many independent draws are in the estimate that its law is close enough to a normal one."""
        ...

    def interval(self, level: float) -> tuple[float, float]:
        """Bounds of the true count at that coverage, within what it may be."""
        ...


@dataclass(frozen=True)
class SupportCell:
    """A cell whose support count is a sum of two binomials.

    Args:
        support: C.
        records: n, the records among which it is sought: all, or those of its bin where bins are disclosed.
        chances: p and q.
    """

    support: int
    records: int
    chances: Chances

    @property
    def corrected(self) -> Fraction:
        """(C − n·q)/(p − q)."""
        p, q = self.chances.p, self.chances.q
        return (self.support - self.records * q) / (p - q)

    @property
    def variance(self) -> Fraction:
        """[ĉ·p(1−p) + (n−ĉ)·q(1−q)]/(p−q)²: linear in the truth, hence unbiased with the estimate in its place."""
        p, q, holders = self.chances.p, self.chances.q, self.corrected
        return (holders * p * (1 - p) + (self.records - holders) * q * (1 - q)) / (p - q) ** 2

    @property
    def limit(self) -> int:
        return self.records

    @property
    def nearly_normal(self) -> bool:
        return is_nearly_normal(self.records, self.chances)

    def interval(self, level: float) -> tuple[float, float]:
        """By inverting the law of C, see `count_interval`."""
        return count_interval(self.support, self.records, self.chances, level)


class Law(Protocol):
    """The law of a mechanism's support counts.

    Attributes:
        signed: Whether a count may be negative.
    """

    signed: ClassVar[bool]

    @property
    def domain_size(self) -> int:
        """K."""
        ...

    @property
    def outputs(self) -> int:
        """How many counts a tally has: K support counts, or a histogram of whatever reports show."""
        ...

    def check(self, tally: Tally) -> None:
        """Refuse a tally that no reports can have made.

        Raises:
            PeerError: Another number of counts than `outputs`, or counts that do not fit the number of records.
        """
        ...

    def total(self, tally: Tally) -> int:
        """n, or its estimate where n is not told."""
        ...

    def supports(self, tally: Tally) -> NDArray[np.int64]:
        """Support count of each value, shape (K,)."""
        ...

    def cells(self, tally: Tally) -> Sequence[Cell]:
        """One for each value."""
        ...

    def corrected(self, tally: Tally) -> NDArray[np.float64]:
        """The unbiased estimates in floats, shape (K,): what `cells` give exactly, for simulations."""
        ...

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact variance of each estimate, were `counts` (real numbers allowed) the truth, shape (K,)."""
        ...

    def covariance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Exact covariance of the estimates, were `counts` the truth, shape (K, K)."""
        ...

    @property
    def parameters(self) -> tuple[dict[str, object], ...]:
        """What a release states so that anyone can compute its numbers again: whole numbers and texts."""
        ...


def chances_text(chances: Mapping[str, Fraction]) -> dict[str, object]:
    """Probabilities with six places, for readers; the whole numbers beside them are exact."""
    rounded = {name: round(value * 10**6) for name, value in chances.items()}
    return {name: f"{millionths // 10**6}.{millionths % 10**6:06d}" for name, millionths in rounded.items()}


def require_possible(condition: bool) -> None:
    """Raise the PeerError of `Law.check` unless the condition holds."""
    if not condition:
        raise PeerError("a tally's counts cannot come from its number of records", not_done="it was not counted")
