"""Timing on one core: the best of several runs, in processor time.

Not here: what is timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable


def pin_to_one_core() -> None:
    """Keep this process on one core, where the system can do so, so that figures are per core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def seconds_of(action: Callable[[], object]) -> float:
    """Processor time of one run."""
    start = time.process_time()
    action()
    return time.process_time() - start


def best_seconds(action: Callable[[], object], repeats: int = 9) -> float:
    """Least processor time of `repeats` runs after one to warm up."""
    action()
    return min(seconds_of(action) for _ in range(repeats))
