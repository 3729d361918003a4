"""How support counts come from true counts: all that an estimate needs to know of a mechanism.

Not here: drawing reports, and the estimate itself (`estimate`). Both roles build a law from the survey alone, so that
p and q never come from a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.errors import PeerError
from tallyveil.mechanisms.tally import Tally


class Chances(Protocol):
    """A record that holds a value supports it with probability p, another one with q < p; exact."""

    @property
    def p(self) -> Fraction: ...

    @property
    def q(self) -> Fraction: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Cell:
    """One value of one tally: what its support count says about its true count.

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
        """The unbiased estimate (C − n·q)/(p − q)."""
        p, q = self.chances.p, self.chances.q
        return (self.support - self.records * q) / (p - q)

    @property
    def variance(self) -> Fraction:
        """[ĉ·p(1−p) + (n−ĉ)·q(1−q)]/(p−q)²: linear in the truth, hence unbiased with the estimate in its place.

        Never negative where the support is among 0..n.
        """
        p, q, holders = self.chances.p, self.chances.q, self.corrected
        return (holders * p * (1 - p) + (self.records - holders) * q * (1 - q)) / (p - q) ** 2


class Law(Protocol):
    """The law of a mechanism's support counts."""

    @property
    def domain_size(self) -> int:
        """K."""
        ...

    def check(self, tally: Tally) -> None:
        """Refuse a tally that no reports can have made.

        Raises:
            PeerError: Another number of counts than values, or counts that do not fit the number of records.
        """
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


def chances_text(chances: Chances) -> dict[str, object]:
    """p and q with six places, for readers; the weights beside them are exact."""
    rounded = {name: round(value * 10**6) for name, value in (("p", chances.p), ("q", chances.q))}
    return {name: f"{millionths // 10**6}.{millionths % 10**6:06d}" for name, millionths in rounded.items()}


def require_possible(condition: bool) -> None:
    """Raise the PeerError of `Law.check` unless the condition holds."""
    if not condition:
        raise PeerError("a tally's counts cannot come from its number of records", not_done="it was not counted")
