"""Indices into a domain, checked.

Not here: labels and cells, which become indices in the agent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.errors import InputError


def checked_indices(values: ArrayLike, domain_size: int) -> NDArray[np.integer[Any]]:
    """The array, known to hold whole numbers in 0..domain_size−1."""
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(array.shape, dtype=np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError("values are whole numbers: indices into the domain", not_done="nothing was drawn or counted")
    # Seen as unsigned, a negative number is larger than its type's largest one: one look at the array instead of two.
    largest = int(array.view(array.dtype.str.replace("i", "u")).max())
    if largest >= domain_size or largest > np.iinfo(array.dtype).max:
        raise outside(domain_size)
    return array


def outside(domain_size: int) -> InputError:
    """The error for an index that the domain does not have."""
    return InputError(
        f"a value lies outside the domain's indices 0..{domain_size - 1}", not_done="nothing was drawn or counted"
    )
