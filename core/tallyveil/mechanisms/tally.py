"""A tally: additive support counts of reports.

Not here: their correction (`estimate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tallyveil.batch import MAX_RECORDS
from tallyveil.errors import PeerError


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of `records` reports, int64: support counts C_v, or whatever else a law's `outputs` are.

    Two tallies of one mechanism add up; ``np.asarray(tally)`` is the counts.

    Args:
        records: n; 0 where it is not told.
        counts: Shape (outputs,); negative ones only where noise was added to a histogram.
        histograms: How many histograms with noise were added up; of no matter where reports are perturbed one by one.
    """

    records: int
    counts: NDArray[np.int64]
    histograms: int = 0

    @classmethod
    def of(cls, counts: Sequence[int] | NDArray[np.int64]) -> Tally:
        """The tally of a histogram in which every report supports exactly one value.

        Raises:
            PeerError: A count is negative, or they sum to more than any submission may hold.
        """
        records = sum(map(int, counts))
        if records > MAX_RECORDS or any(count < 0 for count in counts):
            raise PeerError("a tally holds a negative or an impossibly large count", not_done="it was not counted")
        return cls(records, np.array(counts, dtype=np.int64))

    def __add__(self, other: Tally) -> Tally:
        if self.counts.shape != other.counts.shape:
            raise PeerError("tallies of different domains do not add up", not_done="they were not added")
        return Tally(self.records + other.records, self.counts + other.counts, self.histograms + other.histograms)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.records == other.records and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # arrays change; a tally is no key

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.counts, dtype=dtype, copy=copy)
