"""What is claimed of a mechanism, and which of its values an audit compares.

Not here: the wording of a guarantee (`tallyveil.guarantee`) and any draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

import numpy as np

from tallyveil.binning import Binning
from tallyveil.epsilon import NANO
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import Mechanism

MAX_COMPARED = 16
"""Values whose pairs are searched: all of a small domain."""

MAX_COMPARED_BINS = 4


@dataclass(frozen=True)
class Claim:
    """What reports are said to keep.

    Args:
        epsilon: At most this, between any two values of one bin, in nats.
        binning: The bins that reports may disclose; one bin where the claim is of the whole domain.
        realised: The epsilon that the mechanism works out for itself; None where it says none.
    """

    epsilon: float
    binning: Binning
    realised: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < inf:
            raise ConfigurationError("a claimed epsilon is above 0 and finite", not_done="nothing was audited")

    @property
    def domain_size(self) -> int:
        """K."""
        return self.binning.domain_size

    @property
    def compared(self) -> tuple[int, ...]:
        """The values to compare, in order: all, or some from the ends and the middle of the domain or of its bins."""
        binning = self.binning
        if self.domain_size <= MAX_COMPARED:
            return tuple(range(self.domain_size))
        bins = _spread(binning.bins, MAX_COMPARED_BINS)
        each = MAX_COMPARED // len(bins)
        found = [
            int(binning.starts[item]) + place for item in bins for place in _spread(int(binning.sizes[item]), each)
        ]
        return tuple(found)


def claim_of(mechanism: Mechanism) -> Claim:
    """What a mechanism of ours claims: the epsilon it was made for, within the bins that it discloses."""
    guarantee = mechanism.guarantee
    return Claim(guarantee.epsilon / NANO, mechanism.binning, guarantee.realised_epsilon)


def exact_epsilon(mechanism: Mechanism) -> float | None:
    """The largest log-ratio of the exact channel between two values of one bin, in nats; None where it is too large."""
    try:
        channel = mechanism.channel()
    except ConfigurationError:
        return None
    largest, starts = 0.0, mechanism.binning.starts
    for rows in np.split(channel, starts[1:]):
        high, low = rows.max(axis=0), rows.min(axis=0)
        possible = high > 0
        if not (low[possible] > 0).all():
            return inf
        largest = max(largest, log(float((high[possible] / low[possible]).max())))
    return largest


def _spread(size: int, wanted: int) -> tuple[int, ...]:
    """Places in 0..size−1: both ends, their neighbours where there is room, the rest evenly between."""
    if size <= wanted:
        return tuple(range(size))
    inner = np.linspace(0, size - 1, wanted - 2).astype(np.int64).tolist() if wanted > 4 else [0, size - 1]
    return tuple(sorted({*inner, *((1, size - 2) if wanted > 3 else ())}))
