"""How strongly a report speaks for a value, mechanism by mechanism: what an audit looks at in reports of many numbers.

Not here: which values and reports (`looks`). An audit stays a measurement of the reports: these functions only choose
where to look, and a wrong choice can make an event weak, never a bound wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.audit.at_department import OneRecordTables, raised
from tallyveil.mechanisms.hadamard import odd
from tallyveil.mechanisms.hr import HadamardResponse
from tallyveil.mechanisms.olh import OptimisedLocalHashing
from tallyveil.mechanisms.polynomial import FERMAT, evaluate
from tallyveil.mechanisms.rappor import HASHES, Rappor
from tallyveil.mechanisms.sketches import CountMeanSketch, HadamardSketch
from tallyveil.mechanisms.ss import SubsetSelection
from tallyveil.mechanisms.unary import UnaryEncoding

Supports = Callable[[NDArray[Any], NDArray[np.int64]], NDArray[np.uint8]]
"""Reports and values -> for each report and value how strongly it speaks, 0 … levels − 1, shape (n, values)."""


def supports_of(mechanism: object) -> tuple[Supports, int] | None:
    """How to read the mechanism's reports, and in how many levels; None where a report is best taken as it is."""
    match mechanism:
        case SubsetSelection():
            return in_sets, 2
        case UnaryEncoding():
            return in_bits, 2
        case OptimisedLocalHashing():
            return partial(_hashed, mechanism), 2
        case HadamardResponse():
            return partial(_plus, mechanism), 2
        case CountMeanSketch():
            return partial(_bucket_bits, mechanism), 2
        case HadamardSketch():
            return partial(_signs, mechanism), 2
        case OneRecordTables():
            return raised, 2
        case Rappor():
            return partial(_filter_bits, mechanism), HASHES + 1
        case _:
            return None


def in_bits(reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Reports of a bit for each value."""
    return reports[:, values].astype(np.uint8)


def in_sets(reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Reports that are sets of values."""
    place_of = np.full(int(reports.max(initial=0)) + int(values.max()) + 1, values.size)
    place_of[values] = np.arange(values.size)
    found = np.zeros((reports.shape[0], values.size + 1), dtype=np.uint8)  # the last column takes all other values
    found[np.arange(reports.shape[0])[:, None], place_of[reports]] = 1
    return found[:, :-1]


def _hashed(mechanism: OptimisedLocalHashing, reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Whether the value falls into the shown bucket."""
    levels = np.empty((reports.shape[0], values.size), dtype=np.uint8)
    for place, value in enumerate(values):
        repeated = np.full(reports.shape[0], value, dtype=np.uint32)
        hashed = evaluate(reports[:, :3], repeated, FERMAT).astype(np.uint64)
        levels[:, place] = hashed * np.uint64(mechanism.buckets) // np.uint64(FERMAT) == reports[:, 3]
    return levels


def _plus(mechanism: HadamardResponse, reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    shape = mechanism.shape
    blocks, columns = np.divmod(reports.astype(np.uint32), np.uint32(shape.columns))
    own = shape.groups.bin_of[values]
    rows = (values - shape.groups.starts[own] + 1).astype(np.uint32)
    plus: NDArray[np.bool_] = (blocks[:, None] == own) & ~odd(columns[:, None], rows[None, :])
    return plus.view(np.uint8)


def _bucket_bits(mechanism: CountMeanSketch, reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    buckets = mechanism.sketch.tables[reports[:, 0]][:, values]
    bits: NDArray[np.uint8] = np.take_along_axis(reports, 1 + buckets, axis=1)
    return bits


def _signs(mechanism: HadamardSketch, reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    places, signs = np.divmod(reports.astype(np.int64), 2)
    rows, columns = np.divmod(places, mechanism.sketch.width)
    buckets = mechanism.sketch.tables[rows][:, values].astype(np.uint32)
    agree = ~odd(columns.astype(np.uint32)[:, None], buckets)
    supported: NDArray[np.bool_] = agree == (signs == 1)[:, None]
    return supported.view(np.uint8)


def _filter_bits(mechanism: Rappor, reports: NDArray[Any], values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """How many of the value's bits are set."""
    cohorts, bits = reports[:, 0], reports[:, 1:]
    design = mechanism.bloom.design[:, :, values].astype(np.uint8)
    levels = np.empty((reports.shape[0], values.size), dtype=np.uint8)
    for cohort in range(design.shape[0]):
        mine = np.flatnonzero(cohorts == cohort)
        levels[mine] = bits[mine] @ design[cohort]
    return levels
