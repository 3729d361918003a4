"""The most likely counts, given the histogram of what was reported: expectation maximisation.

Not here: mechanisms whose tally is no histogram of reports (sets, bits, hashes): their support counts alone do not
tell how likely they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tallyveil.derived.channel import Channel, channel_of
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.mechanisms.law import Law

GAP = 0.01
"""In nats of log-likelihood: far below the half that a standard error is worth."""

MAX_PASSES = 20_000

_SHRUNK = 0.01
"""How far one leap may take a count down: it may have to grow again."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fit:
    """Counts that are nearly as likely as any.

    Args:
        counts: Not negative, sum to n, shape (K,).
        passes: How many it took.
        gap: No counts with this sum have a log-likelihood larger by more than this, in nats.
    """

    counts: Floats
    passes: int
    gap: float


class MatrixChannel:
    """A channel written down.

    Args:
        matrix: P[v, z], shape (K, outputs), rows sum to 1.
    """

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix

    def expected(self, counts: Floats) -> Floats:
        result: Floats = counts @ self._matrix
        return result

    def average(self, worth: Floats) -> Floats:
        result: Floats = self._matrix @ worth
        return result


def em(
    channel: Channel | Floats,
    histogram: Sequence[int] | NDArray[np.int64],
    *,
    start: Floats | None = None,
    gap: float = GAP,
    passes: int = MAX_PASSES,
) -> Fit:
    """Counts of the largest likelihood: each pass shares every report among the values it may be of.

    Every two passes are carried on in their direction, where that is more likely than the two alone.

    Stopping rule: n·(max_v g_v − 1) ≤ gap, with g_v = Σ_z P[v, z]·T_z/(c·P)_z, the factor by which a pass changes c_v.
    The log-likelihood is concave, so this bounds how much larger it is anywhere. Else after `passes`; `Fit.gap` tells.

    Args:
        channel: P, or its matrix, shape (K, outputs).
        histogram: T: how often each output was reported, shape (outputs,).
        start: The first counts, shape (K,), positive with the sum n; equal ones by default. A 0 stays 0.
        gap: In nats, above 0.
        passes: At most so many.

    Raises:
        ConfigurationError: A gap or number of passes that is none.

    Source: Agrawal and Aggarwal, PODS 2001; Agrawal, Srikant, Thomas, SIGMOD 2005 (iterative Bayesian update);
        Varadhan and Roland 2008 (squared extrapolation).
    """
    if not gap > 0 or passes < 1:
        raise ConfigurationError("the gap is above 0, and there is at least one pass")
    used = MatrixChannel(channel) if isinstance(channel, np.ndarray) else channel
    seen = np.asarray(histogram, dtype=np.float64)
    n = float(seen.sum())
    if start is None:
        size = used.average(np.zeros(seen.size)).size
        start = np.full(size, n / size)
    if n == 0:
        return Fit(start, 0, 0.0)
    likelihood = _Likelihood(used, seen)
    counts, done = start, 0
    while True:
        once, left = likelihood.better(counts)
        if left <= gap or done >= passes:
            return Fit(counts, done, max(left, 0.0))
        twice, _ = likelihood.better(once)
        further = _leap(counts, once, twice)
        further *= n / further.sum()
        counts = further if likelihood.of(further) >= likelihood.of(twice) else twice
        done += 2


class _Likelihood:
    """Of counts, given a histogram."""

    def __init__(self, channel: Channel, seen: Floats) -> None:
        self._channel = channel
        self._seen = seen

    def of(self, counts: Floats) -> float:
        """In nats, but for a constant."""
        chance = self._channel.expected(counts)[self._seen > 0]
        return float(self._seen[self._seen > 0] @ np.log(chance))

    def better(self, counts: Floats) -> tuple[Floats, float]:
        """One pass: better counts, and how much better any could be, in nats."""
        chance = self._channel.expected(counts)
        factors = self._channel.average(np.divide(self._seen, chance, out=np.zeros_like(chance), where=self._seen > 0))
        return counts * factors, float(self._seen.sum()) * (float(factors.max()) - 1)


def _leap(counts: Floats, once: Floats, twice: Floats) -> Floats:
    """Further in the direction of two passes (squared extrapolation); what would fall to 0 or below is made small."""
    first, second = once - counts, twice - once
    bend = second - first
    stretch = max(float(np.linalg.norm(first)) / max(float(np.linalg.norm(bend)), 1e-300), 1.0)
    further = counts + 2 * stretch * first + stretch**2 * bend
    return np.maximum(further, _SHRUNK * twice)


def keeps_histogram(law: Law) -> bool:
    """Whether tallies of the law are histograms of reports: of grr, brr, brr-sealed and hr."""
    return channel_of(law) is not None


def most_likely_in_bins(law: Blocks, histogram: NDArray[np.int64]) -> Floats:
    """Where passes lead for randomised response in bins, without any: max(T_v/λ − n·q, 0)/(p − q), in each bin.

    λ is the one with which they sum to the bin's n; sorting finds which counts are above 0.
    """
    column = np.zeros(law.domain_size)
    for start, weights in zip(law.binning.starts.tolist(), law.weights, strict=True):
        inside, p, q = slice(start, start + weights.size), float(weights.p), float(weights.q)
        seen = histogram[inside].astype(np.float64)
        n, ranked = float(seen.sum()), np.sort(seen)[::-1]
        if n:
            mass, sums = p - q + q * np.arange(1, seen.size + 1), np.cumsum(ranked)
            kept = int((ranked * mass > q * sums).sum())
            share = n * mass[kept - 1] / sums[kept - 1]
            column[inside] = np.maximum(seen * share - n * q, 0.0) / (p - q)
    return column


def em_column(estimate: Estimate, *, gap: float = GAP) -> Fit:
    """The most likely counts of an estimate, its parts added; each part has records of its own.

    For grr and brr the maximum is known outright, and the stopping rule holds before the first pass.

    Raises:
        ConfigurationError: The mechanism's tally is no histogram of reports.
    """
    fits = list[Fit]()
    for law, tally in estimate.parts:
        channel = channel_of(law)
        if channel is None:
            raise ConfigurationError(
                "the tally of this mechanism does not tell which reports there were",
                not_done="no second column was made",
                next_step="use norm-sub, which every mechanism has",
            )
        start = most_likely_in_bins(law, tally.counts) if isinstance(law, Blocks) else None
        fits.append(em(channel, tally.counts, start=start, gap=gap))
    counts = np.array([fit.counts for fit in fits]).sum(axis=0)
    return Fit(np.asarray(counts), max(fit.passes for fit in fits), sum(fit.gap for fit in fits))
