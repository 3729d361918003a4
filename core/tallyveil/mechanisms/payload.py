"""A tally as a batch carries it, by the law that says how many counts it has and whether they may be negative.

Not here: the encoding of whole numbers (`tallyveil.batch`). Counts that may be negative are folded onto the
non-negative ones first: 0, −1, 1, −2 … become 0, 1, 2, 3 …
"""

from __future__ import annotations

from tallyveil.batch import decode_counts, encode_counts
from tallyveil.mechanisms.law import Law
from tallyveil.mechanisms.tally import Tally


def encode_tally(law: Law, tally: Tally) -> bytes:
    """The payload of a batch of this tally."""
    counts = tally.counts
    return encode_counts((counts << 1) ^ (counts >> 63) if law.signed else counts)


def decode_tally(law: Law, records: int, payload: bytes) -> Tally:
    """The tally of one batch.

    Raises:
        PeerError: Not one encoded as agreed, or none that so many reports can have made.
    """
    counts = decode_counts(payload, law.outputs)
    if law.signed:
        counts = (counts >> 1) ^ -(counts & 1)
    tally = Tally(records, counts, histograms=1)
    law.check(tally)
    return tally
