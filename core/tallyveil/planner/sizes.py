"""How many bytes a department sends: the payload of the counts its reports are expected to make.

Not here: the encoding (`tallyveil.mechanisms.payload`). A payload's length hardly depends on chance: most counts take
one or two bytes either way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.brr_sealed import SealedLaw
from tallyveil.mechanisms.laplace_law import LaplaceLaw
from tallyveil.mechanisms.law import Law
from tallyveil.mechanisms.payload import encode_tally
from tallyveil.mechanisms.rappor_law import RapporLaw
from tallyveil.mechanisms.sketch_law import SketchLaw
from tallyveil.mechanisms.support_law import SupportLaw
from tallyveil.mechanisms.tally import Tally


def payload_bytes(law: Law, counts: NDArray[np.float64]) -> int:
    """Length of one batch's payload, were `counts` its records; ids and digests add some 100 bytes."""
    expected = np.rint(expected_outputs(law, counts)).astype(np.int64)
    return len(encode_tally(law, Tally(round(float(counts.sum())), expected, histograms=1)))


def expected_outputs(law: Law, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected counts of a tally, were `counts` the truth, shape (outputs,)."""
    n = float(counts.sum())
    match law:
        case LaplaceLaw():
            return counts
        case SupportLaw():
            p, q = float(law.p), float(law.q)
            return n * q + counts * (p - q)
        case Blocks():
            return law.bin_totals(counts) * law.q + counts * (law.p - law.q)
        case SealedLaw():
            chances = [(float(item.own), float(item.near), float(item.far)) for item in law.chances]
            own, near, far = np.array(chances)[law.groups.bin_of].T
            held = np.add.reduceat(counts, law.groups.starts)[law.groups.bin_of]
            supports: NDArray[np.float64] = n * far + held * (near - far) + counts * (own - near)
            return supports
        case RapporLaw():
            p, cohorts = float(law.p), law.bloom.cohorts
            bits = (n * (1 - p) + (2 * p - 1) * (law.bloom.design @ counts)) / cohorts
            return np.concatenate([np.full((cohorts, 1), n / cohorts), bits], axis=1).reshape(-1)
        case SketchLaw() if law.outputs == law.sketch.rows * law.sketch.width:
            p, sketch = float(law.support.p), law.sketch
            held = np.stack([np.bincount(row, weights=counts, minlength=sketch.width) for row in sketch.tables])
            return ((n * (1 - p) + (2 * p - 1) * held) / sketch.rows).reshape(-1)
        case _:  # Hadamard's outputs: every value favours half of its columns, so that all are nearly alike
            return np.full(law.outputs, n / law.outputs)
