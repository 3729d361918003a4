"""A batch: the perturbed histogram of one dimension cell, the unit of upload, and its digest.

Not here: protobuf (`tallyveil.wire.codec`) and storage. A batch is made once, in the transaction that charges the
ledger; from then on its bytes never change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from tallyveil.domain import MAX_VALUES
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import PeerError

ID_BYTES = 16
NONCE_BYTES = 16
DIGEST_BYTES = 32
MAX_RECORDS = 2**53 - 1
MAX_OUTPUTS = 4 * MAX_VALUES
"""Counts in one histogram: reports of some mechanisms show more different things than the domain has values."""


@dataclass(frozen=True)
class SubmissionKey:
    """What a batch belongs to, bound into its digest.

    Args:
        survey_hash: 64 hexadecimal digits.
        round: Number of the round.
        epsilon: The department's choice among the survey's values.
        submission_id: 16 random bytes, drawn in the charge transaction.
    """

    survey_hash: str
    round: int
    epsilon: NanoEpsilon
    submission_id: bytes


@dataclass(frozen=True)
class Batch:
    """The histogram of one cell's reports, encoded.

    Args:
        batch_id: 16 random bytes.
        nonce: 16 secret random bytes, so that a small histogram cannot be guessed from its digest.
        cell: Number of the dimension cell; 0 without dimensions.
        records: Reports in it.
        payload: Its counts, as `encode_counts` writes them.
        digest: `batch_digest` over all of it.
    """

    batch_id: bytes
    nonce: bytes
    cell: int
    records: int
    payload: bytes
    digest: bytes

    @property
    def reference(self) -> BatchReference:
        return BatchReference(self.batch_id, self.digest)


@dataclass(frozen=True, order=True)
class BatchReference:
    """What names a batch without holding it."""

    batch_id: bytes
    digest: bytes


@dataclass(frozen=True)
class Manifest:
    """The last message of a submission: every batch of it, and their records' sum."""

    batches: tuple[BatchReference, ...]
    records: int


def make_batch(key: SubmissionKey, batch_id: bytes, nonce: bytes, cell: int, records: int, payload: bytes) -> Batch:
    """The batch of a cell's encoded counts of so many records, with its digest."""
    return Batch(batch_id, nonce, cell, records, payload, batch_digest(key, batch_id, nonce, cell, records, payload))


def batch_digest(key: SubmissionKey, batch_id: bytes, nonce: bytes, cell: int, records: int, payload: bytes) -> bytes:
    """SHA-256 that binds the batch to its survey, round, epsilon and submission."""
    numbers = b"".join(number.to_bytes(8, "big") for number in (key.round, key.epsilon, cell, records))
    header = b"tallyveil/batch/1\n" + bytes.fromhex(key.survey_hash) + key.submission_id + batch_id + nonce + numbers
    return sha256(header + payload).digest()


def expected_digest(key: SubmissionKey, batch: Batch) -> bytes:
    """The digest this batch must have under this submission."""
    return batch_digest(key, batch.batch_id, batch.nonce, batch.cell, batch.records, batch.payload)


def encode_counts(counts: Iterable[int] | NDArray[np.int64]) -> bytes:
    """Non-negative counts as LEB128 varints, in order: mostly one or two bytes a value."""
    encoded = bytearray()
    for count in map(int, counts):
        while count > 0x7F:
            encoded.append(count & 0x7F | 0x80)
            count >>= 7
        encoded.append(count)
    return bytes(encoded)


def decode_counts(payload: bytes, values: int) -> NDArray[np.int64]:
    """Read `values` counts back, shape (values,).

    Raises:
        PeerError: Cut off, too long, a sum of 2^53 or more (no sum of it can wrap round), or an encoding longer than
            needed: one histogram has exactly one encoding.
    """
    if values > MAX_OUTPUTS or len(payload) > values * 8:
        raise _malformed()
    counts: list[int] = []
    count = shift = 0
    for byte in payload:
        count |= (byte & 0x7F) << shift
        shift += 7
        if byte & 0x80:
            if shift >= 56:
                raise _malformed()
            continue
        if byte == 0 and shift > 7:
            raise _malformed()
        counts.append(count)
        count = shift = 0
    if shift or len(counts) != values or sum(counts) > MAX_RECORDS:
        raise _malformed()
    return np.array(counts, dtype=np.int64)


def _malformed() -> PeerError:
    return PeerError("a histogram is not encoded as agreed", not_done="the batch was not counted")
