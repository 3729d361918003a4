"""The other way round: the epsilon, or the records, that a target error needs.

Not here: the error itself (`errors`). It falls as either grows, so both are found by bisection, in whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from tallyveil.batch import MAX_RECORDS
from tallyveil.epsilon import HIGHEST, LOWEST, NANO, NanoEpsilon
from tallyveil.mechanisms import Mechanism
from tallyveil.planner.errors import mean_relative_error, standard_errors
from tallyveil.planner.question import Question

EPSILON_STEP = NANO // 1_000
"""Found in whole thousandths: nobody permits finer ones."""

RECORDS_PRECISION = 1_000
"""Found to a thousandth."""


def epsilon_needed(question: Question, make: Callable[[NanoEpsilon], Mechanism], target: float) -> NanoEpsilon | None:
    """The least whole thousandth of epsilon that meets the target at the question's records; None if not even 16 does.

    Args:
        question: Of which the records, the departments and the case count.
        make: The mechanism at an epsilon.
        target: MAPE, a fraction.
    """
    counts = question.counts(question.records)

    def meets(steps: int) -> bool:
        mechanism = make(NanoEpsilon(steps * EPSILON_STEP))
        errors = standard_errors(mechanism, counts, question.departments)
        return mean_relative_error(errors, counts) <= target

    low, high = LOWEST // EPSILON_STEP, HIGHEST // EPSILON_STEP
    if meets(low):
        return LOWEST
    if not meets(high):
        return None
    return NanoEpsilon(_least(meets, low, high, precision=high) * EPSILON_STEP)


def records_needed(question: Question, mechanism: Mechanism, target: float) -> int | None:
    """The least number of records, to a thousandth above, that meets the target at the mechanism's epsilon.

    None if no number does: collisions of sketches do not average out.
    """

    def meets(records: int) -> bool:
        counts = question.counts(records)
        errors = standard_errors(mechanism, counts, question.departments)
        return mean_relative_error(errors, counts) <= target

    low, high = 0, question.records
    while not meets(high):
        if high == MAX_RECORDS:
            return None
        low, high = high, min(2 * high, MAX_RECORDS)
    while high > 1 and low == 0:
        if not meets(high // 2):
            low = high // 2
        else:
            high //= 2
    return _least(meets, low, high, precision=RECORDS_PRECISION)


def _least(meets: Callable[[int], bool], low: int, high: int, precision: int) -> int:
    """Between `low`, which does not meet, and `high`, which does: no more than a share of 1/precision too high."""
    while high - low > max(low // precision, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high
