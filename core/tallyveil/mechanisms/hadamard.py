"""Walsh and Hadamard's transform, and draws of columns where a row of its matrix has a given sign.

Not here: what they are used for. The matrix's entry (row, column) is −1 to the number of common bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def transform(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The transform of the last axis, whose length is a power of two; exact."""
    result, length = values.copy(), values.shape[-1]
    step = 1
    while step < length:
        shaped = result.reshape(*values.shape[:-1], length // (2 * step), 2, step)
        first, second = shaped[..., 0, :].copy(), shaped[..., 1, :].copy()
        shaped[..., 0, :], shaped[..., 1, :] = first + second, first - second
        step *= 2
    return result


def odd(columns: NDArray[np.uint32], rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether the entry is −1."""
    result: NDArray[np.bool_] = (np.bitwise_count(columns & rows) & 1).astype(np.bool_)
    return result


def with_sign(columns: NDArray[np.uint32], rows: NDArray[np.uint32], negative: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Columns with the asked sign in their row; uniform among those where `columns` are uniform and no row is 0.

    A column of the other sign has the lowest bit of its row flipped: this maps one half of the columns onto the other,
    one to one.
    """
    lowest = rows & (~rows + np.uint32(1))
    result: NDArray[np.uint32] = np.where(odd(columns, rows) == negative, columns, columns ^ lowest)
    return result
