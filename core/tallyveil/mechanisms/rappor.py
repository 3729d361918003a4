"""RAPPOR: a Bloom filter of the value in a random cohort, its bits perturbed for good, then once more for the report.

Not here: keeping the permanent bits from one round to the next: every round draws and charges anew.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms.bloom import Bloom, bloom_for
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.rappor_law import RapporLaw
from tallyveil.mechanisms.response_base import RecordResponse, other_stream
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.unary import symmetric_one
from tallyveil.randomness import Randomness

COHORTS = 8
HASHES = 2
MAX_CANDIDATES = 128
CHUNK_RECORDS = 8_192
_WORD = 2**64


class Rappor(RecordResponse):
    """Each bit of the filter kept or flipped for good, then reported as it is three times in four.

    Privacy: the permanent response alone is epsilon-LDP, (kept/(1 − kept))^(2·hashes) ≤ e^epsilon exactly: that epsilon
        binds, and is charged. One report by itself shows less; its own epsilon is `report_epsilon`.
    Accuracy: unbiased by least squares on the known hash matrix; the variance is exact, see `rappor_law`.
    Source: Erlingsson, Pihur, Korolova: RAPPOR, CCS 2014, with p = 1/4 and q = 3/4 of the instantaneous response.
    """

    def __init__(
        self, domain_size: int, epsilon: NanoEpsilon, seed: bytes, randomness: Randomness | None = None
    ) -> None:
        super().__init__(domain_size, epsilon, randomness)
        if domain_size > MAX_CANDIDATES:
            raise ConfigurationError(
                f"rappor is made for a list of at most {MAX_CANDIDATES} candidates, and the domain has {domain_size}",
                not_done="no mechanism was made",
                next_step="choose ss, oue or hr for a large domain",
            )
        self._public = other_stream(randomness)
        self._seed = seed
        self._kept = symmetric_one(epsilon, 64, together=2 * HASHES)

    @property
    def name(self) -> str:
        return "rappor"

    @cached_property
    def bloom(self) -> Bloom:
        """The filters; made when first needed, since the way back from them takes a moment."""
        bits = min(max(1 << (self.domain_size - 1).bit_length(), 16), 64)
        return bloom_for(self._seed, COHORTS, bits, HASHES, self.domain_size)

    @property
    def realised_epsilon(self) -> float:
        """Of the permanent response, in nats."""
        return 2 * HASHES * (log(self._kept) - log(_WORD - self._kept))

    @property
    def _p(self) -> Fraction:
        """The reported bit is the filter's: three times in four it is the permanent one."""
        return (1 + 2 * Fraction(self._kept, _WORD)) / 4

    @property
    def report_epsilon(self) -> float:
        """Of one report by itself, in nats."""
        p = float(self._p)
        return 2 * HASHES * log(p / (1 - p))

    @property
    def law(self) -> RapporLaw:
        """Least squares on the filters' bits."""
        return self._law

    @cached_property
    def _law(self) -> RapporLaw:
        stated: dict[str, object] = {"permanent_keep_of_2_64": self._kept, "report_keep_of_4": 3}
        return RapporLaw(self.bloom, self._p, stated)

    @property
    def _report_shape(self) -> tuple[int, ...]:
        return (1 + self.bloom.bits,)

    @property
    def _report_type(self) -> DTypeLike:
        return np.uint8

    @property
    def _chunk_records(self) -> int:
        return CHUNK_RECORDS

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        """Each record's cohort, then the filter's bits."""
        count, bits = truth.size, self.bloom.bits
        cohorts = (self._public.words(count, 32) & np.uint32(COHORTS - 1)).astype(np.int64)
        filters = self.bloom.design[cohorts, :, truth].astype(np.bool_)
        words = self._randomness.words(count * bits, 64).reshape(count, bits)
        permanent = filters ^ (words >= np.uint64(self._kept))
        coins = self._randomness.words(count * bits, 32).reshape(count, bits)
        reports = np.empty((count, 1 + bits), dtype=np.uint8)
        reports[:, 0] = cohorts
        reports[:, 1:] = permanent ^ (coins >= np.uint32(3 << 30))
        return reports

    def tally(self, reports: ArrayLike) -> Tally:
        """Reports and set bits by cohort.

        Raises:
            InputError: They are not reports of this mechanism.
        """
        bits = self.bloom.bits
        array = np.asarray(reports).reshape(-1, 1 + bits)
        if array.dtype != np.uint8 or (
            array.size and (int(array[:, 0].max()) >= COHORTS or int(array[:, 1:].max()) > 1)
        ):
            raise InputError("a report is a cohort and its filter's bits", not_done="nothing was counted")
        counts = np.zeros((COHORTS, 1 + bits), dtype=np.int64)
        for cohort in range(COHORTS):
            mine = array[array[:, 0] == cohort]
            counts[cohort, 0] = mine.shape[0]
            counts[cohort, 1:] = mine[:, 1:].sum(axis=0, dtype=np.int64)
        return Tally(array.shape[0], counts.reshape(-1))

    def channel(self) -> NDArray[np.float64]:
        """There is none to write down: it has cohorts·2^bits outputs, 2^19 at least.

        Raises:
            ConfigurationError: Always. Bits are independent: each is the filter's with probability p.
        """
        raise ConfigurationError("the channel of a filter has too many outputs to be written down")
