"""What mechanisms whose reports support several values have in common.

Not here: their coins.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.mechanisms.response_base import RecordResponse
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.tally import Tally

CHUNK_ENTRIES = 1 << 18
"""Numbers drawn at a time."""


class SupportResponse(RecordResponse):
    """A mechanism over the whole domain with one p and one q."""

    @cached_property
    @abstractmethod
    def _law(self) -> SupportLaw:
        """Made once."""

    @property
    def law(self) -> SupportLaw:
        """p, q and how supports go together."""
        return self._law

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in one report."""

    @abstractmethod
    def _supports(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Support counts of reports, shape (K,). Raises InputError where they are none of this mechanism."""

    @property
    def _report_shape(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def _chunk_records(self) -> int:
        return max(CHUNK_ENTRIES // self.domain_size, 1)

    def tally(self, reports: ArrayLike) -> Tally:
        """Support counts of reports.

        Raises:
            InputError: They are not reports of this mechanism.
        """
        array = np.asarray(reports).reshape(-1, self.width)
        return Tally(array.shape[0], self._supports(array))
