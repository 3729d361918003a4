"""The closed form of amplification by shuffling: several times the numerical bound, and checked by hand.

Not here: the numerical bound (`clones`), which is smaller and holds for every number of records.
"""

from __future__ import annotations

from math import log, log1p, sqrt

from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms.weights import exp_bounds

_OUTWARD = 1 + 1e-12
"""More than the rounding of the dozen operations below."""


def closed_form(epsilon: NanoEpsilon, records: int, delta: float) -> float | None:
    """The central epsilon of a histogram of reports, or None where too few records make the form hold.

    Args:
        epsilon: Of one report.
        records: n, reports in the histogram; at least 1.
        delta: In (0, 1).

    Returns:
        ln(1 + (e^ε − 1)/(e^ε + 1)·(8·√(e^ε·ln(4/δ)/n) + 8·e^ε/n)) in nats, rounded up; not capped at epsilon.

    Privacy: (returned, delta)-DP with one record's value replaced, where n ≥ 16·ln(2/δ)·e^ε.
    Source: Feldman, McMillan, Talwar: Hiding Among the Clones, FOCS 2021, theorem III.1.
    """
    growth = float(exp_bounds(epsilon, digits=40)[1])
    if records < 16 * log(2 / delta) * growth * _OUTWARD:
        return None
    shrink = 8 * sqrt(growth * log(4 / delta) / records) + 8 * growth / records
    return log1p((growth - 1) / (growth + 1) * shrink) * _OUTWARD
