"""Optimised local hashing: a random hash function, and the truth's bucket under it by randomised response.

Not here: the hash functions (`polynomial`).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import floor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms.polynomial import (
    FERMAT,
    Buckets,
    count_hits,
    draw_polynomials,
    evaluate,
    least_variance_buckets,
)
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.response import draw_offsets, shift_within
from tallyveil.mechanisms.response_base import other_stream
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.support_response import SupportResponse
from tallyveil.mechanisms.weights import Weights, exp_bounds, response_weights
from tallyveil.randomness import Randomness

CHUNK_RECORDS = 8_192
"""Records whose supports are counted at a time: what is kept of them stays in the processor's cache."""

MOST_BUCKETS = 32_768


class OptimisedLocalHashing(SupportResponse):
    """A report is a polynomial and a bucket; it supports every value that the polynomial maps into that bucket.

    Privacy: epsilon-LDP, of the bucket given the polynomial; keep/lie ≤ e^epsilon exactly. Polynomials are published
        where reports are, so they come from another stream than the coins.
    Accuracy: var ĉ_v as for `oue`, about n·4e^epsilon/(e^epsilon − 1)²; q and the covariance count the buckets'
        unequal sizes exactly.
    Source: Wang, Blocki, Li, Jha: Locally Differentially Private Protocols for Frequency Estimation, USENIX 2017 (OLH).
    """

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(domain_size, epsilon, randomness)
        self._public = other_stream(randomness)
        self._weights = best_weights(domain_size, epsilon)
        self._buckets = Buckets(self._weights.size)
        self._starts, self._sizes = self._buckets.starts, self._buckets.sizes

    @property
    def name(self) -> str:
        return "olh"

    @property
    def buckets(self) -> int:
        """g."""
        return self._weights.size

    @property
    def width(self) -> int:
        """Four numbers: three coefficients and a bucket."""
        return 4

    @property
    def realised_epsilon(self) -> float:
        return self._weights.realised_epsilon

    @cached_property
    def _law(self) -> SupportLaw:
        p, lie, buckets = self._weights.p, self._weights.q, self._buckets
        stated: dict[str, object] = {
            "buckets": buckets.number,
            "field": buckets.field,
            "keep_weight": self._weights.keep,
            "lie_weight": self._weights.lie,
        }
        q, among = (buckets.shown(p, lie, others) for others in (1, 2))
        return SupportLaw(self.domain_size, p, q, buckets.shown_with_truth(p), among, None, stated)

    @property
    def _chunk_records(self) -> int:
        return CHUNK_RECORDS

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        weights, field = self._weights, self._buckets.field
        reports = np.empty((truth.size, 4), dtype=np.uint32)
        reports[:, :3] = draw_polynomials(truth.size, field, self._public)
        places = evaluate(reports[:, :3], truth.astype(np.uint32), field)
        mine = places.astype(np.uint64) * np.uint64(weights.size) // np.uint64(field)
        word = np.dtype(f"u{weights.bits // 8}").type
        offsets = draw_offsets(weights, word(weights.total), truth.size, self._randomness)
        reports[:, 3] = shift_within(mine.astype(np.int64), offsets, word(weights.size))
        return reports

    @property
    def _report_type(self) -> DTypeLike:
        return np.uint32

    def _supports(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        field = self._buckets.field
        if reports.dtype != np.uint32 or (
            reports.size and (int(reports[:, :3].max()) >= field or int(reports[:, 3].max()) >= self.buckets)
        ):
            raise InputError("a report is three coefficients and a bucket", not_done="nothing was counted")
        counts = np.zeros(self.domain_size, dtype=np.int64)
        for start in range(0, reports.shape[0], CHUNK_RECORDS):
            chunk = reports[start : start + CHUNK_RECORDS]
            shown = chunk[:, 3]
            counts += count_hits(chunk[:, :3], self._starts[shown], self._sizes[shown], self.domain_size, field)
        return counts

    def channel(self) -> NDArray[np.float64]:
        """There is none to write down: it has more than 10^14 outputs.

        Raises:
            ConfigurationError: Always. Given the polynomial it is randomised response over the buckets.
        """
        raise ConfigurationError("the channel of local hashing has too many outputs to be written down")


@lru_cache(maxsize=1024)
def best_weights(domain_size: int, epsilon: NanoEpsilon) -> Weights:
    """Of ⌊e^epsilon⌋ + 1 buckets and one more or less, the number with the least total variance."""
    low, _ = exp_bounds(epsilon, digits=60)
    near = (floor(low) + more for more in (0, 1, 2))
    numbers = {min(max(number, 2), MOST_BUCKETS, FERMAT) for number in near}
    weights = {number: response_weights(number, epsilon) for number in numbers}
    return weights[least_variance_buckets(domain_size, weights)]
