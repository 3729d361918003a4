"""Bytes on the wire per record: the encoded messages of a submission, for several sizes.

Not here: speed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.batch import Manifest, SubmissionKey, make_batch
from tallyveil.cli.console import print_table
from tallyveil.epsilon import to_nano
from tallyveil.mechanisms import create
from tallyveil.mechanisms.payload import encode_tally
from tallyveil.wire.codec import encode_request

CASES = ((85, 1_000), (85, 16_685), (85, 1_000_000), (1024, 16_685), (1024, 1_000_000))


@dataclass(frozen=True)
class Size:
    """Encoded bytes of one submission of one cell, and beside them one packed report each would take."""

    domain_size: int
    records: int
    message_bytes: int
    bytes_per_record: float
    packed_bytes_per_record: float


def measure_sizes() -> list[Size]:
    """One `Size` per case."""
    return [_measure(*case) for case in CASES]


def _measure(domain_size: int, records: int) -> Size:
    mechanism = create("grr", domain_size=domain_size, epsilon=2.0)
    tally = mechanism.tally(mechanism.perturb(np.arange(records) % domain_size))
    key = SubmissionKey("00" * 32, 1, to_nano(2), bytes(16))
    batch = make_batch(key, bytes(16), bytes(16), 0, tally.records, encode_tally(mechanism.law, tally))
    requests = (key, batch, Manifest((batch.reference,), records))
    total = sum(len(encode_request(request).SerializeToString()) for request in requests)
    return Size(domain_size, records, total, total / records, (domain_size - 1).bit_length() / 8)


def show_sizes(sizes: list[Size]) -> None:
    """A table in the terminal."""
    rows = [
        (
            size.domain_size,
            f"{size.records:,}",
            size.message_bytes,
            f"{size.bytes_per_record:.5f}",
            f"{size.packed_bytes_per_record:.3f}",
        )
        for size in sizes
    ]
    headers = ("K", "records", "bytes of a submission", "bytes per record", "packed reports would take")
    print_table(headers, rows, title="Bytes on the wire, one dimension cell", right=headers)
