"""Randomised response inside one bin, vectorised and decided by integers: what `grr` and `brr` both draw with.

Not here: which bins there are (`brr`) and what the reports are worth (`estimate`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms.weights import Weights
from tallyveil.randomness import Randomness, WordBits, Words

Limits = NDArray[np.unsignedinteger[Any]] | np.unsignedinteger[Any]
"""One number per record, or one for all; of the words' own type, so that nothing is widened."""


def draw_offsets(widest: Weights, limits: Limits, count: int, randomness: Randomness) -> Words:
    """How far each report lies from its truth, cyclically within its bin: 0 keeps, 1..k−1 are the lies.

    A uniform integer u below the bin's total a + (k−1)·b decides: u < a keeps; otherwise lie number (u − a) // b.
    With u raised to at least a − b, both cases are (u − (a − b)) // b, hence no branch per record.

    Args:
        widest: The weights of the largest bin; keep and lie weight are those of every bin.
        limits: The total of each record's bin, shape (count,), or one number for all.
        count: Records.
        randomness: Source of the words.

    Returns:
        Offsets in 0..k−1, shape (count,), uint32 or uint64 as the word size; P(0) = a/total, P(j) = b/total exactly.
    """
    words = draw_below(limits, count, widest.bits, randomness)
    base = words.dtype.type(widest.keep - widest.lie)
    offsets = np.maximum(words, base)
    np.subtract(offsets, base, out=offsets)
    return np.floor_divide(offsets, words.dtype.type(widest.lie), out=offsets)


def draw_below(limits: Limits, count: int, bits: WordBits, randomness: Randomness) -> Words:
    """Uniform integers, each below its limit, shape (count,), by rejection: no modulo, no bias."""
    words = randomness.words(count, bits)
    if limits.ndim == 0 and words.max(initial=0) < limits:  # nearly always, since a limit is near the words' own
        return words
    rejected = np.flatnonzero(words >= limits)
    if rejected.size == 0:
        return words
    words, limit_of = words.copy(), np.broadcast_to(limits, words.shape)
    while rejected.size:
        words[rejected] = randomness.words(rejected.size, bits)
        rejected = rejected[words[rejected] >= limit_of[rejected]]
    return words


def shift_within(positions: NDArray[np.integer[Any]], offsets: Words, sizes: Limits) -> Words:
    """(position + offset) mod size, for position and offset below size, without a division.

    The unsigned subtraction wraps round exactly when the sum is below `size`, so the smaller one is the remainder.
    `offsets` is overwritten.
    """
    moved = positions.astype(offsets.dtype)
    moved += offsets
    np.subtract(moved, sizes, out=offsets)
    shifted: Words = np.minimum(moved, offsets, out=offsets)
    return shifted
