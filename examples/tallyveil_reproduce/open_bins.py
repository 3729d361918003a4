"""BRR with bins of one value, which `create("brr")` refuses: simulation only, to show what the paper's figure 7 shows.

Not here: any way to collect like this. A bin of one value shows that value in clear, so its count is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil.mechanisms import create
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.randomness import Keystream, Randomness
from tallyveil_reproduce.mean_error import mean_errors


class OpenBins:
    """Randomised response inside every bin of two values or more; the others in clear.

    Args:
        counts: True counts, shape (K,).
        bins: The paper's fxs, at most K.
        epsilon: Nats, inside a bin.
        randomness: Source of the coins; secure by default.

    Privacy: none for the values that are alone in their bin.
    """

    def __init__(
        self, counts: NDArray[np.int64], bins: int, epsilon: float, randomness: Randomness | None = None
    ) -> None:
        binning, coins = Binning(counts.size, bins), randomness or Keystream()
        self._counts = counts
        self._closed: list[tuple[slice, BlockResponse]] = [
            (slice(start, start + size), create("grr", domain_size=size, epsilon=epsilon, randomness=coins))
            for start, size in zip(binning.starts.tolist(), binning.sizes.tolist(), strict=True)
            if size > 1
        ]

    def draw(self) -> NDArray[np.float64]:
        """Estimates from fresh coins, shape (K,)."""
        estimates = self._counts.astype(np.float64)
        for where, mechanism in self._closed:
            counts = self._counts[where]
            tally = mechanism.perturb_and_tally(np.repeat(np.arange(counts.size), counts))
            estimates[where] = mechanism.law.corrected(tally)
        return estimates

    @property
    def expected_error(self) -> NDArray[np.float64]:
        """E|estimate − truth| in records; 0 for values in clear, shape (K,)."""
        errors = np.zeros(self._counts.size)
        for where, mechanism in self._closed:
            errors[where] = mean_errors(mechanism, self._counts[where])
        return errors
