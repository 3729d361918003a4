"""The event that best tells two values apart, by how often each outcome was seen under either.

Not here: what the event is worth: that is measured on other draws (`measure`), so that having searched costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CAUTION = 3.0
"""Standard errors taken off each log-ratio, so that what looks large by chance alone is not chosen."""

MAX_UNION = 1_000
"""Outcomes that are joined at most, and thresholds that are tried."""

Counts = NDArray[np.int64]
Score = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Event:
    """That the outcome is one of these; or none of these.

    Args:
        outcomes: Shape (outcomes of the event,).
        score: Its log-ratio where it was searched for, less `CAUTION` standard errors.
        negated: None of them. Only of single outcomes.
    """

    outcomes: Counts
    score: float
    negated: bool = False

    def happened(self, counts: Counts, records: int) -> int:
        """How often, among so many records."""
        hits = int(counts[self.outcomes].sum())
        return records - hits if self.negated else hits


def worst_event(
    first: Counts, second: Counts, records: tuple[int, int], *, exclusive: bool = True, ordered: bool = False
) -> Event:
    """The event that is most surely likelier under the first value than under the second.

    Args:
        first: How often each outcome was seen under the first value, shape (outcomes,).
        second: The same under the second.
        records: How many reports were looked at under each.
        exclusive: Every report has one outcome, so that outcomes can be joined. Otherwise single ones and their
            opposites are tried.
        ordered: Outcomes up to or from somewhere on are tried too.
    """
    single = _score(first, second, records)
    best = int(single.argmax())
    found = [Event(np.array([best]), float(single[best]))]
    if not exclusive:
        opposite = _score(records[0] - first, records[1] - second, records)
        best = int(opposite.argmax())
        found.append(Event(np.array([best]), float(opposite[best]), negated=True))
        return max(found, key=lambda event: event.score)
    best_first = np.argpartition(-single, MAX_UNION)[:MAX_UNION] if single.size > MAX_UNION else np.arange(single.size)
    orders = [best_first[np.argsort(-single[best_first], kind="stable")]]
    if ordered:
        orders += [np.arange(first.size), np.arange(first.size)[::-1]]
    for order in orders:
        ends = np.unique(np.linspace(1, order.size, min(order.size, MAX_UNION)).astype(np.int64))
        joined = _score(np.cumsum(first[order])[ends - 1], np.cumsum(second[order])[ends - 1], records)
        best = int(joined.argmax())
        found.append(Event(np.sort(order[: ends[best]]), float(joined[best])))
    return max(found, key=lambda event: event.score)


def _score(first: Counts, second: Counts, records: tuple[int, int]) -> Score:
    value, error = np.zeros(first.size), np.zeros(first.size)
    for sign, counts, total in ((1, first, records[0]), (-1, second, records[1])):
        share = (counts + 0.5) / (total + 1)
        value += sign * np.log(share)
        error += np.sqrt((1 - share) / (counts + 0.5))
    result: Score = value - CAUTION * error
    return result
