"""The weights of sealed binned randomised response, and which of the possible pairs is taken.

Not here: drawing (`brr_sealed`). Integers and fractions only: every machine finds the same pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms.nested_law import Nested, nested_variance
from tallyveil.mechanisms.weights import Weights, class_weights

STEPS = 64
"""Candidates for the inner epsilon: its multiples of a 64th of the whole."""


@dataclass(frozen=True)
class SealedWeights:
    """Randomised response over bins, and inside a bin that was kept.

    Args:
        outer: Over bins.
        inner: Over the values of the largest bin; other bins have the same keep and lie weight.
    """

    outer: Weights
    inner: Weights

    @property
    def realised_epsilon(self) -> float:
        """The channel's largest log-ratio in nats: own value against a value of another bin, in the largest bin."""
        context, size = Context(prec=60), self.inner.size
        across = Decimal(self.outer.keep * size * self.inner.keep), Decimal(self.outer.lie * self.inner.total)
        return max(float(context.ln(context.divide(*across))), self.inner.realised_epsilon)

    def chances(self, size: int) -> Nested:
        """Of a bin of so many values."""
        inner = self.inner.resized(size)
        return Nested(self.outer.p * inner.p, self.outer.p * inner.q, self.outer.q / size)


def sealed_weights(binning: Binning, epsilon: NanoEpsilon) -> SealedWeights:
    """Of the pairs with exactly this epsilon, the one with the least variance: values' and bins' totals, added.

    The totals are per record, over all values and over all bins, values equally frequent. Values alone would push
    the pair towards plain randomised response, which says little of bins.
    """
    return _chosen(binning.bins, tuple(binning.sizes.tolist()), epsilon)


@lru_cache(maxsize=1024)
def _chosen(bins: int, sizes: tuple[int, ...], epsilon: NanoEpsilon) -> SealedWeights:
    candidates = [_pair(bins, max(sizes), epsilon, step) for step in range(1, STEPS + 1)]
    return min(candidates, key=lambda pair: _total_variance(pair, sizes))


def _pair(bins: int, largest: int, epsilon: NanoEpsilon, step: int) -> SealedWeights:
    """The outer weights that the inner ones leave: own against far is keep·k·a/(lie·(a + (k−1)·b)) ≤ e^epsilon."""
    inner = Weights(largest, *class_weights(1, largest - 1, NanoEpsilon(epsilon * step // STEPS)))
    scale = Fraction(inner.total, largest * inner.keep)
    return SealedWeights(Weights(bins, *class_weights(1, bins - 1, epsilon, scale)), inner)


def _total_variance(pair: SealedWeights, sizes: tuple[int, ...]) -> Fraction:
    p, q = pair.outer.p, pair.outer.q
    chances = {size: pair.chances(size) for size in set(sizes)}
    bins = Fraction(0)
    for size in sizes:
        shown = Fraction(size, sum(sizes)) * (p - q) + q
        bins += (shown * (1 - q) ** 2 + (1 - shown) * q**2) / (p - q) ** 2
    return nested_variance([chances[size] for size in sizes], sizes, p, q) + bins
