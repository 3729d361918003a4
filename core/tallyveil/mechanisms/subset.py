"""Subsets of a fixed size, drawn uniformly and exactly, many at a time.

Not here: which of them a report is (`ss`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms.response import draw_below
from tallyveil.randomness import Randomness


def draw_subsets(count: int, size: int, others: int, randomness: Randomness) -> NDArray[np.int64]:
    """`count` independent uniform subsets of `size` out of 0..others−1, shape (count, size), in no order.

    Source: Floyd's algorithm (Bentley, Programming Pearls: A sample of brilliance, CACM 1987): `size` draws without
        rejection of whole subsets; each draw is uniform by integers, hence the subset exactly is.
    """
    taken = np.zeros((count, others), dtype=np.bool_)
    subsets = np.empty((count, size), dtype=np.int64)
    rows = np.arange(count)
    for position, last in enumerate(range(others - size, others)):
        drawn = draw_uniform(last + 1, count, randomness)
        chosen = np.where(taken[rows, drawn], last, drawn)
        taken[rows, chosen] = True
        subsets[:, position] = chosen
    return subsets


def draw_uniform(below: int, count: int, randomness: Randomness) -> NDArray[np.int64]:
    """Uniform integers in 0..below−1, shape (count,): words past the last multiple of `below` are drawn again."""
    span = 2**32 // below * below
    words = randomness.words(count, 32) if span == 2**32 else draw_below(np.uint32(span), count, 32, randomness)
    return (words % np.uint32(below)).astype(np.int64)
