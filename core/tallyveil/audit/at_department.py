"""Noise at the department as a black box: each value is a table of one record, each report its noisy histogram.

Not here: the noise (`tallyveil.mechanisms.histogram_laplace`). Replacing the one
record is what replace-one compares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import REPLACE_ONE
from tallyveil.mechanisms.histogram_laplace import HistogramLaplace
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Keystream, Randomness

MAX_VALUES = 1_024


class OneRecordTables:
    """Draws many noisy histograms at once, as one that is as long as all of them together.

    Args:
        mechanism: Its noise is independent in each count and the same whatever the number of counts is; nothing else
            of it is taken for granted.
        randomness: Source of the coins; secure by default.

    Raises:
        ConfigurationError: It compares tables with and without a record, not two values of one; or has too many values.
    """

    def __init__(self, mechanism: HistogramLaplace, randomness: Randomness | None = None) -> None:
        if not mechanism.law.counted:
            raise ConfigurationError("noise for add-or-remove compares no two values", not_done="nothing was audited")
        if mechanism.domain_size > MAX_VALUES:
            raise ConfigurationError(
                f"noise at the department is audited with at most {MAX_VALUES} values",
                not_done="nothing was audited",
                next_step="choose a smaller domain: the noise of a count does not depend on how many there are",
            )
        self._mechanism, self._coins = mechanism, Keystream() if randomness is None else randomness

    def perturb(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Noisy histograms, shape (n, K)."""
        size, epsilon = self._mechanism.domain_size, self._mechanism.epsilon
        tables = np.zeros((values.size, size), dtype=np.int64)
        tables[np.arange(values.size), values] = 1
        long = HistogramLaplace(tables.size, epsilon, REPLACE_ONE, self._coins)
        return long.finish(Tally(values.size, tables.reshape(-1))).counts.reshape(tables.shape)


def raised(reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Whether the value's count is at least 1, which half of the likeliest noise keeps."""
    return (reports[:, values] >= 1).astype(np.uint8)
