"""What may be claimed of a histogram of so many reports, and the sentence that says it.

Not here: the two bounds (`closed_form`, `clones`), and whose histogram it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from math import ceil
from typing import Final

from tallyveil.amplification.clones import clones
from tallyveil.amplification.closed_form import closed_form
from tallyveil.epsilon import NANO, NanoEpsilon, epsilon_text
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import KIND_AT_DEPARTMENT, KIND_WITHIN_BIN, Guarantee

MOST_RECORDS = 10**8
"""More records than this are counted as this many."""

STEP_NANO = NANO // 10_000
"""Claims are whole multiples of 1e-4 nats, rounded up; a smaller gain is not claimed."""

METHOD_NONE: Final = "none"
METHOD_NUMERICAL: Final = "numerical"
METHOD_CLOSED_FORM: Final = "closed form"


@dataclass(frozen=True)
class Amplified:
    """The central guarantee of one histogram, with one record's value replaced.

    Args:
        epsilon_nano: ε', at most the epsilon of one report; a multiple of `STEP_NANO` where it is below.
        delta: 0 where nothing was gained: then the guarantee of each report is all there is.
        records: n that was counted on.
        method: ``"none"``, ``"numerical"`` or ``"closed form"``.
    """

    epsilon_nano: NanoEpsilon
    delta: float
    records: int
    method: str

    @property
    def epsilon_prime(self) -> float:
        """ε' in nats."""
        return self.epsilon_nano / NANO


def largest_delta(records: int) -> float:
    """The δ taken where none is given, and the largest one accepted: min(1e-6, 1/(10·n))."""
    return 1 / max(10**6, 10 * min(records, MOST_RECORDS))


@lru_cache(maxsize=4096)
def amplified(epsilon: NanoEpsilon, records: int, delta: float | None = None) -> Amplified:
    """The smallest (ε', δ) that can be shown for a histogram of independently perturbed reports.

    Args:
        epsilon: Of one report, over all values that a record of this histogram may take.
        records: n of the smallest histogram that somebody sees apart: of one department, stratum, batch and, where bins
            are disclosed, bin. At least 1.
        delta: In (0, `largest_delta`]; that itself without.

    Privacy: with one record's value replaced by another of the same histogram, any set of histograms is as likely
        within a factor of e^ε' plus δ, to whoever sees the histogram and no single report and knows every other value.
        None for later rounds of memoised reports, nor for a histogram that noise is added to as a whole.
    Accuracy: at most about 1e-4 above the smallest ε' of the worst mechanism's clones; never rises with n.
    Source: Feldman, McMillan, Talwar 2021 and 2023 (Stronger Privacy Amplification by Shuffling); Wang et al. 2024
        (variation-ratio reduction, of which this is the worst case).

    Raises:
        ConfigurationError: A number is out of range.
    """
    if records < 1 or (delta is not None and not 0 < delta <= largest_delta(records)):
        raise ConfigurationError(
            "amplification needs at least 1 record, and a delta above 0 and at most 1e-6 and 1/(10·records)",
            not_done="no central guarantee was computed",
            next_step="leave delta out",
        )
    counted = min(records, MOST_RECORDS)
    allowed = largest_delta(counted) if delta is None else delta
    nothing = Amplified(epsilon, 0.0, counted, METHOD_NONE)
    if counted == 1:
        return nothing
    most = (epsilon - 1) // STEP_NANO  # steps; below epsilon
    closed = closed_form(epsilon, counted, allowed)
    ceiling = most + 1 if closed is None else min(ceil(closed * NANO / STEP_NANO), most + 1)
    law = clones(epsilon, counted)
    low, high = 0, ceiling  # low is too small; high holds, by the closed form or as epsilon itself
    while high - low > 1:
        middle = (low + high) // 2
        if law.divergence(NanoEpsilon(middle * STEP_NANO)) <= allowed:
            high = middle
        else:
            low = middle
    if high > most:
        return nothing
    method = METHOD_CLOSED_FORM if high == ceiling else METHOD_NUMERICAL
    return Amplified(NanoEpsilon(high * STEP_NANO), allowed, counted, method)


def histogram_text(guarantee: Guarantee, records: int) -> str | None:
    """One sentence on what the histogram adds to the guarantee of its reports; None where no report is perturbed.

    Args:
        guarantee: Of one report.
        records: As for `amplified`.
    """
    if guarantee.kind == KIND_AT_DEPARTMENT:
        return None
    within = guarantee.kind == KIND_WITHIN_BIN
    found = amplified(guarantee.epsilon, records)
    smallest = f"n = {found.records}, the smallest histogram{' of one bin' if within else ''}"
    if found.method == METHOD_NONE:
        return (
            f"Nothing is gained by counting reports into a histogram ({smallest}): the guarantee of one report holds."
        )
    return (
        f"Against whoever sees only the histogram, not the reports: ({epsilon_text(found.epsilon_nano)}, "
        f"{_delta_text(found.delta)})-DP{' within a bin' if within else ''} with one record's value replaced by another"
        f"{' of its bin' if within else ''}, and for replacement only ({smallest})."
    )


def _delta_text(delta: float) -> str:
    """Two digits, rounded up, never down."""
    return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal(Decimal(repr(delta))).normalize():e}"
