"""Equal-width bins over a domain's indices: value v goes to bin ⌊v·bins/K⌋.

Not here: what a mechanism does inside a bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ConfigurationError


@dataclass(frozen=True)
class Binning:
    """`requested` bins over `domain_size` values; sizes differ by at most one.

    Args:
        domain_size: K, at least 1.
        requested: The paper's fxs, at least 1. More than K cannot be made: see `bins`.
    """

    domain_size: int
    requested: int

    def __post_init__(self) -> None:
        if self.domain_size < 1 or self.requested < 1:
            raise ConfigurationError("a binning needs at least one value and at least one bin")

    @property
    def bins(self) -> int:
        """How many bins were really made: asking for more bins than values leaves the surplus empty."""
        return min(self.requested, self.domain_size)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First value index of each bin, shape (bins,)."""
        bins = self.bins
        return np.array([-(-number * self.domain_size // bins) for number in range(bins)], dtype=np.int64)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Values per bin, shape (bins,)."""
        return np.diff(self.starts, append=self.domain_size)

    @cached_property
    def bin_of(self) -> NDArray[np.int64]:
        """Bin of each value index, shape (K,)."""
        return np.repeat(np.arange(self.bins, dtype=np.int64), self.sizes)

    @property
    def smallest(self) -> int:
        """K_bin of the smallest bin; 1 would show the value in clear."""
        return int(self.sizes.min())

    def describe(self) -> str:
        """How many bins were really made and how large they are, in one phrase."""
        low, high = self.smallest, int(self.sizes.max())
        width = f"{low}" if low == high else f"{low} or {high}"
        made = f"{self.bins} bins" if self.bins != 1 else "1 bin"
        surplus = "" if self.bins == self.requested else f" ({self.requested} were asked for)"
        return f"{made}{surplus} of {width} values"
