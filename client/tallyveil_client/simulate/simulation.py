"""How far a mechanism's estimates lie from known true counts, over repeated draws.

Not here: where the counts come from. The coins and the tallies are the mechanism's own, record by record; only the
correction is done in floats here, for speed, and agrees with the mechanism's exact one within rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms import Mechanism, Tally

CHUNK_RECORDS = 1 << 20
"""Records perturbed at a time: memory holds few copies of them."""

MAX_REPEATS = 1_000_000


@dataclass(frozen=True)
class Simulation:
    """What the repeats showed.

    Args:
        records: n.
        values: K.
        cells: Values with a true count above 0, over which MAPE is taken.
        mape: Of each repeat, as a fraction, shape (repeats,).
        negative_share: Share of negative ones among the estimates of all values and repeats.
    """

    records: int
    values: int
    cells: int
    mape: NDArray[np.float64]
    negative_share: float

    @property
    def mape_mean(self) -> float:
        return float(self.mape.mean())

    @property
    def mape_sd(self) -> float | None:
        """Standard deviation of one repeat; None after a single one."""
        return float(self.mape.std(ddof=1)) if self.mape.size > 1 else None

    @property
    def mape_error(self) -> float | None:
        """Standard error of `mape_mean`."""
        return None if self.mape_sd is None else float(self.mape_sd / np.sqrt(self.mape.size))


def simulate(
    mechanism: Mechanism, counts: ArrayLike, repeats: int, advance: Callable[[int], None] = lambda done: None
) -> Simulation:
    """Perturb, tally and estimate the same records over and over.

    Args:
        mechanism: With all its parameters.
        counts: True counts, whole numbers, shape (K,).
        repeats: How often, from 1 to `MAX_REPEATS`.
        advance: Called with 1 after each repeat.

    Raises:
        ConfigurationError: `repeats` is out of range.
        InputError: There is no record, or not one count for each value.

    Accuracy: MAPE is the mean of |estimate − truth| / truth over the values whose true count is above 0.
    """
    check_repeats(repeats)
    truth = np.asarray(counts, dtype=np.int64)
    if truth.shape != (mechanism.domain_size,) or truth.min() < 0:
        raise InputError("the true counts are not one for each value of the domain", not_done="nothing was simulated")
    present = truth > 0
    if not present.any():
        raise InputError(
            "there is no record to simulate with",
            not_done="nothing was simulated",
            next_step="check the column, the domain and which records are rejected",
        )
    indices = np.repeat(np.arange(truth.size, dtype=np.min_scalar_type(truth.size - 1)), truth)
    mape, negative = np.empty(repeats), 0
    for number in range(repeats):
        estimates = mechanism.law.corrected(_collect(mechanism, indices))
        mape[number] = (np.abs(estimates - truth)[present] / truth[present]).mean()
        negative += int(np.count_nonzero(estimates < 0))
        advance(1)
    return Simulation(indices.size, truth.size, int(present.sum()), mape, negative / (repeats * truth.size))


def check_repeats(repeats: int) -> None:
    """Raises ConfigurationError where `repeats` is out of range."""
    if not 1 <= repeats <= MAX_REPEATS:
        raise ConfigurationError(f"repeats are from 1 to {MAX_REPEATS}", not_done="nothing was simulated")


def _collect(mechanism: Mechanism, indices: NDArray[np.unsignedinteger]) -> Tally:
    chunks = (indices[start : start + CHUNK_RECORDS] for start in range(0, indices.size, CHUNK_RECORDS))
    gathered = reduce(Tally.__add__, (mechanism.gather(chunk) for chunk in chunks))
    return mechanism.finish(gathered)
