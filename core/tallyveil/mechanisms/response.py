"""Randomised response inside one bin, vectorised and decided by integers: what `grr` and `brr` both draw with.

Not here: which bins there are (`brr`) and what the reports are worth (`estimate`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms.weights import Weights
from tallyveil.randomness import Randomness, Words


def draw_offsets(weights: Weights, count: int, randomness: Randomness) -> Words:
    """How far each report lies from its truth, cyclically within its bin: 0 keeps, 1..k−1 are the lies.

    A uniform integer u below total = a + (k−1)·b decides: u < a keeps; otherwise lie number (u − a) // b.
    With u raised to at least a − b, both cases are (u − (a − b)) // b, hence no branch per record.

    Returns:
        Offsets in 0..k−1, shape (count,), uint32 or uint64 as the word size; P(0) = a/total, P(j) = b/total exactly.
    """
    words = draw_below(weights, count, randomness)
    word = words.dtype.type
    base = word(weights.keep - weights.lie)
    offsets = np.maximum(words, base)
    np.subtract(offsets, base, out=offsets)
    return np.floor_divide(offsets, word(weights.lie), out=offsets)


def draw_below(weights: Weights, count: int, randomness: Randomness) -> Words:
    """Uniform integers in [0, total), by rejection: no modulo, no bias."""
    words = randomness.words(count, weights.bits)
    if weights.total == 2**weights.bits:
        return words
    total = words.dtype.type(weights.total)
    if words.size == 0 or words.max() < total:
        return words
    words = words.copy()
    rejected = np.flatnonzero(words >= total)
    while rejected.size:
        words[rejected] = randomness.words(rejected.size, weights.bits)
        rejected = rejected[words[rejected] >= total]
    return words


def shift_within(positions: NDArray[np.integer[Any]], offsets: Words, size: int) -> Words:
    """(position + offset) mod size, for position and offset below size, without a division.

    The unsigned subtraction wraps round exactly when the sum is below `size`, so the smaller one is the remainder.
    """
    np.add(offsets, positions, out=offsets, casting="unsafe")
    shifted: Words = np.minimum(offsets, offsets - offsets.dtype.type(size))
    return shifted
