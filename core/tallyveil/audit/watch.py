"""Drawing reports of one value at a time and counting what is seen of them.

Not here: what is seen of a report (`looks`), and drawing through an agent, which counts by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tallyveil.audit.looks import BlackBox, Look, Patterns, looks_at
from tallyveil.audit.search import Counts
from tallyveil.errors import ConfigurationError

CHUNK_RECORDS = 1 << 18
CHUNK_NUMBERS = 1 << 22
"""Records, and numbers in their reports, drawn at a time."""

PILOT_RECORDS = 256
"""Of each compared value: to learn what reports look like."""


class View(Protocol):
    """What events are made of."""

    @property
    def ordered(self) -> bool:
        """Whether neighbouring outcomes are alike."""
        ...

    def describe(self, outcomes: Counts, first: int, second: int) -> str:
        """An event for a pair of values in words."""
        ...


class Watcher(Protocol):
    """Draws many reports of one value and counts their outcomes."""

    exclusive: bool
    """Whether every report has exactly one outcome in each view."""

    @property
    def views(self) -> Sequence[View]: ...

    def watch(self, truth: int, others: Sequence[int], records: int) -> list[list[Counts]]:
        """How often each outcome is seen in `records` fresh reports of `truth`.

        Returns:
            For each other value and each view counts of shape (outcomes,); outcomes of a pair are those for the
            smaller of the two values first.
        """
        ...


class BoxWatcher:
    """Watches anything that perturbs.

    Args:
        box: The black box.
        domain_size: K.
        compared: The values to come, for a first look at their reports.
        advance: Called with the number of records just drawn.
    """

    exclusive = True

    def __init__(
        self, box: BlackBox, domain_size: int, compared: Sequence[int], advance: Callable[[int], None]
    ) -> None:
        self._box, self._advance = box, advance
        pilot = drawn(box, np.repeat(np.array(compared, dtype=np.int64), PILOT_RECORDS))
        self._looks = looks_at(box, domain_size, pilot)
        width = pilot.shape[1] if pilot.ndim == 2 else 1
        self._chunk = max(min(CHUNK_RECORDS, CHUNK_NUMBERS // max(width, len(compared))), 1)

    @property
    def views(self) -> Sequence[Look]:
        """The ways to see a report."""
        return self._looks

    def watch(self, truth: int, others: Sequence[int], records: int) -> list[list[Counts]]:
        """Draws in chunks and counts."""
        values = (truth, *others)
        counts = [[np.zeros(look.outcomes, dtype=np.int64) for look in self._looks] for _ in others]
        for place, look in enumerate(self._looks):
            if not isinstance(look, Patterns):  # the same whatever the pair is
                for row in counts:
                    row[place] = counts[0][place]
        for start in range(0, records, self._chunk):
            size = min(self._chunk, records - start)
            reports = drawn(self._box, np.full(size, truth, dtype=np.int64))
            for place, look in enumerate(self._looks):
                seen = look.see(reports, values)
                for number, other in enumerate(others if isinstance(look, Patterns) else others[:1], 1):
                    pair = (0, number) if truth < other else (number, 0)
                    outcomes = look.pair(seen, *pair)
                    counts[number - 1][place] += np.bincount(outcomes, minlength=look.outcomes)
            self._advance(size)
        return counts


def drawn(box: BlackBox, values: NDArray[np.int64]) -> NDArray[Any]:
    """The reports of a black box, checked to be one for each value.

    Raises:
        ConfigurationError: They are not.
    """
    reports = np.asarray(box.perturb(values))
    if reports.ndim not in (1, 2) or reports.shape[0] != values.size or reports.dtype.kind not in "iubf":
        raise ConfigurationError(
            "perturb does not return one report of numbers for each value", not_done="nothing was audited"
        )
    return reports
