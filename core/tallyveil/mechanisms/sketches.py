"""Count-mean sketches: a report is of one hash row, and says something of the value's bucket there.

Not here: their law (`sketch_law`). Rows, columns and hash functions are public; the coins alone are secret.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, InputError
from tallyveil.mechanisms.hadamard import odd, transform
from tallyveil.mechanisms.indices import checked_indices
from tallyveil.mechanisms.protocol import Reports
from tallyveil.mechanisms.response import draw_below
from tallyveil.mechanisms.response_base import RecordResponse, other_stream
from tallyveil.mechanisms.sketch_law import Sketch, SketchLaw
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.unary import log_ratio, symmetric_chances
from tallyveil.mechanisms.weights import Weights, response_weights
from tallyveil.randomness import Randomness, WordBits

ROWS = 64
WIDEST = 1024
CHUNK_BITS = 1 << 20
MAX_CHANNEL_OUTPUTS = 4_096


def default_sketch(seed: bytes, domain_size: int) -> Sketch:
    """64 rows of as many buckets as the domain has values, a power of two from 16 to 1,024."""
    return Sketch(seed, ROWS, min(max(1 << (domain_size - 1).bit_length(), 16), WIDEST), domain_size)


class _SketchResponse(RecordResponse):
    """What both sketches have in common."""

    def __init__(self, sketch: Sketch, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(sketch.domain_size, epsilon, randomness)
        self.sketch = sketch
        self._public = other_stream(randomness)

    @cached_property
    @abstractmethod
    def _law(self) -> SketchLaw:
        """Made once."""

    @property
    def law(self) -> SketchLaw:
        """p and q over fresh seeds, and collisions."""
        return self._law

    def _uniform(self, below: int, count: int) -> NDArray[np.int64]:
        """Public uniform integers below a power of two."""
        return (self._public.words(count, 32) & np.uint32(below - 1)).astype(np.int64)

    def _rows_and_buckets(self, truth: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = self._uniform(self.sketch.rows, truth.size)
        return rows, self.sketch.tables[rows, truth]


class CountMeanSketch(_SketchResponse):
    """The truth's bucket of one random row as a vector of bits, each bit flipped on its own.

    Privacy: epsilon-LDP; (p/(1−p))² ≤ e^epsilon exactly, with p = 1 − P(flip).
    Accuracy: unbiased over fresh hash seeds. Var ĉ_v is that of the bits plus Σ c_w·(c_w − 1)/(k·(m − 1)) over the
        other values, for collisions; with the survey's one seed these are a fixed bias of each value.
    Source: Apple Differential Privacy Team: Learning with Privacy at Scale, 2017 (CMS).
    """

    @property
    def name(self) -> str:
        return "cms"

    @cached_property
    def _chance(self) -> tuple[int, WordBits]:
        return symmetric_chances(self.epsilon)

    @property
    def realised_epsilon(self) -> float:
        one, bits = self._chance
        return log_ratio(one, 2**bits - one, bits)

    @cached_property
    def _law(self) -> SketchLaw:
        """Over fresh seeds: two values share a bucket with probability 1/m."""
        one, bits = self._chance
        p, share = Fraction(one, 2**bits), Fraction(1, self.sketch.width)
        unequal = 1 - share
        q = share * p + unequal * (1 - p)
        with_truth = p * (share + unequal * (1 - p))
        alone = unequal * (1 - 2 * share) * (1 - p) ** 2
        among = share**2 * p + share * unequal * (1 - p) + 2 * share * unequal * p * (1 - p) + alone
        stated: dict[str, object] = {"keep_weight": one, "word_bits": bits}
        support = SupportLaw(self.domain_size, p, q, with_truth, among, None, stated)
        return SketchLaw(self.sketch, support, signed_columns=False)

    @property
    def _report_shape(self) -> tuple[int, ...]:
        return (1 + self.sketch.width,)

    @property
    def _report_type(self) -> DTypeLike:
        return np.uint8

    @property
    def _chunk_records(self) -> int:
        return CHUNK_BITS // self.sketch.width

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        """Each record's row, then m bits."""
        rows, buckets = self._rows_and_buckets(truth)
        one, bits = self._chance
        words = self._randomness.words(truth.size * self.sketch.width, bits).reshape(truth.size, self.sketch.width)
        reports = np.empty((truth.size, 1 + self.sketch.width), dtype=np.uint8)
        reports[:, 0] = rows
        reports[:, 1:] = words >= words.dtype.type(one)
        reports[np.arange(truth.size), 1 + buckets] ^= 1
        return reports

    def tally(self, reports: ArrayLike) -> Tally:
        """Set bits by row and bucket.

        Raises:
            InputError: They are not reports of this mechanism.
        """
        array = np.asarray(reports).reshape(-1, 1 + self.sketch.width)
        rows, bits = array[:, 0], array[:, 1:]
        if array.dtype != np.uint8 or (array.size and (int(rows.max()) >= self.sketch.rows or int(bits.max()) > 1)):
            raise InputError("a report is not a row and its bits", not_done="nothing was counted")
        counts = np.zeros((self.sketch.rows, self.sketch.width), dtype=np.int64)
        order = np.argsort(rows, kind="stable")
        present, starts = np.unique(rows[order], return_index=True)
        if present.size:
            counts[present] = np.add.reduceat(bits[order], starts, axis=0, dtype=np.int64)
        return Tally(array.shape[0], counts.reshape(-1))

    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value under this seed, shape (K, k·2^m); rows sum to 1; for small sketches."""
        rows, width = self.sketch.rows, self.sketch.width
        _check_outputs(rows * 2**width if width < 32 else MAX_CHANNEL_OUTPUTS + 1)
        one, bits = self._chance
        p = one / 2**bits
        patterns = np.array(list(product((0, 1), repeat=width)))
        signals = np.eye(width, dtype=np.int64)[self.sketch.tables]  # (k, K, m)
        equal = (patterns[None, None] == signals[:, :, None, :]).sum(axis=3)
        law = p**equal * (1 - p) ** (width - equal) / rows
        result: NDArray[np.float64] = law.transpose(1, 0, 2).reshape(self.domain_size, -1)
        return result


class HadamardSketch(_SketchResponse):
    """One column of Hadamard's transform of the truth's bucket in one random row: a single sign, sometimes flipped.

    Privacy: epsilon-LDP; binary randomised response, keep/lie ≤ e^epsilon exactly.
    Accuracy: unbiased over fresh hash seeds; Var ĉ_v as for `cms`, with p of one sign.
    Source: Apple Differential Privacy Team: Learning with Privacy at Scale, 2017 (HCMS).
    """

    @property
    def name(self) -> str:
        return "hcms"

    @cached_property
    def _weights(self) -> Weights:
        return response_weights(2, self.epsilon)

    @property
    def realised_epsilon(self) -> float:
        return self._weights.realised_epsilon

    @cached_property
    def _law(self) -> SketchLaw:
        """Over fresh seeds: values of different buckets agree in half of the columns."""
        p, share = self._weights.p, Fraction(1, self.sketch.width)
        unequal, half = 1 - share, Fraction(1, 2)
        q = share * p + unequal * half
        among = share**2 * p + share * unequal * (half + p) + unequal * (1 - 2 * share) / 4
        stated: dict[str, object] = {"keep_weight": self._weights.keep, "lie_weight": self._weights.lie}
        support = SupportLaw(self.domain_size, p, q, p * (share + unequal * half), among, None, stated)
        return SketchLaw(self.sketch, support, signed_columns=True)

    @property
    def _report_type(self) -> DTypeLike:
        return np.uint32

    def _respond(self, truth: NDArray[np.integer[Any]]) -> Reports:
        """For each record ((row·m) + column)·2 + sign, the sign being 1 or 0."""
        rows, buckets = self._rows_and_buckets(truth)
        columns = self._uniform(self.sketch.width, truth.size)
        word = np.dtype(f"u{self._weights.bits // 8}").type
        words = draw_below(word(self._weights.total), truth.size, self._weights.bits, self._randomness)
        kept = words < word(self._weights.keep)
        agree = ~odd(columns.astype(np.uint32), buckets.astype(np.uint32))
        reports: NDArray[np.int64] = (rows * self.sketch.width + columns) * 2 + np.where(kept, agree, ~agree)
        return reports

    def tally(self, reports: ArrayLike) -> Tally:
        """How often each sign was reported, by row and column.

        Raises:
            InputError: A report is not a whole number in 0..2·k·m−1.
        """
        flat = checked_indices(reports, self.law.outputs).reshape(-1)
        return Tally(flat.size, np.bincount(flat, minlength=self.law.outputs))

    def channel(self) -> NDArray[np.float64]:
        """The exact output law of each value under this seed, shape (K, 2·k·m); rows sum to 1; for small sketches."""
        rows, width = self.sketch.rows, self.sketch.width
        _check_outputs(2 * rows * width)
        matrix = transform(np.eye(width, dtype=np.int64))[self.sketch.tables]  # (k, K, m): sign of each column
        p, q = float(self._weights.p), float(self._weights.q)
        signs = np.stack([np.where(matrix < 0, p, q), np.where(matrix > 0, p, q)], axis=3) / (rows * width)
        result: NDArray[np.float64] = signs.transpose(1, 0, 2, 3).reshape(self.domain_size, -1)
        return result


def _check_outputs(outputs: int) -> None:
    if outputs > MAX_CHANNEL_OUTPUTS:
        raise ConfigurationError(f"the channel of a sketch is made for at most {MAX_CHANNEL_OUTPUTS} outputs")
