"""What mechanisms that report one of a fixed number of outputs have in common.

Not here: their coins, and bins in clear (`block_response`).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tallyveil.mechanisms.indices import checked_indices
from tallyveil.mechanisms.nested_law import NestedLaw
from tallyveil.mechanisms.response_base import RecordResponse
from tallyveil.mechanisms.tally import Tally


class OutputResponse(RecordResponse):
    """A mechanism over the whole domain whose reports are numbers 0..outputs−1 under a `NestedLaw`."""

    @cached_property
    @abstractmethod
    def _law(self) -> NestedLaw:
        """Made once."""

    @property
    def law(self) -> NestedLaw:
        """How outputs follow from values."""
        return self._law

    @property
    def _report_type(self) -> DTypeLike:
        return np.min_scalar_type(self.law.outputs - 1)

    def tally(self, reports: ArrayLike) -> Tally:
        """How often each output was reported.

        Raises:
            InputError: A report is not a whole number in 0..outputs−1.
        """
        flat = checked_indices(reports, self.law.outputs).reshape(-1)
        return Tally(flat.size, np.bincount(flat, minlength=self.law.outputs))
