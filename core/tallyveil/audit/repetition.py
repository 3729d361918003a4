"""Whether two streams of reports share their coins: a fixed seed, or a state that two processes have in common.

Not here: who drew them. Streams are of the same value over and over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.audit.binomial import clopper_pearson

TAIL = 1e-9
"""The chance, at most, that either bound is wrong."""


def share_coins(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether reports of two streams agree place by place more often than two reports of one stream do.

    Args:
        first: Reports of one value, shape (n,) or (n, width).
        second: As many.

    Accuracy: wrongly True with a chance of at most 2·10^-9. Where reports hardly ever differ, as of two values at
        epsilon 16, nothing is found.
    """
    across = _agreeing(first, second)
    within = _agreeing(first[0 : first.shape[0] // 2 * 2 : 2], first[1::2])
    if across.size == 0 or within.size == 0:
        return False
    at_least, _ = clopper_pearson(int(across.sum()), across.size, TAIL)
    _, by_chance = clopper_pearson(int(within.sum()), within.size, TAIL)
    return at_least > by_chance


def _agreeing(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    if first.shape != second.shape:
        return np.zeros(0, dtype=np.bool_)
    equal = np.asarray(first == second, dtype=np.bool_).reshape(first.shape[0], -1)
    agreeing: NDArray[np.bool_] = np.logical_and.reduce(equal, axis=1)
    return agreeing
