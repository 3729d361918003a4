"""Norm-sub: the nearest counts that are not negative and sum to what they must.

Not here: its error, which has no closed form (`bootstrap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms.blocks import Blocks
from tallyveil.mechanisms.estimate import Estimate


def norm_sub(estimates: Sequence[Fraction], total: int | Fraction) -> tuple[Fraction, ...]:
    """max(ĉ_v − δ, 0), with the one δ for which they sum to the total; exact.

    Args:
        estimates: Unbiased counts, at least one.
        total: Their known sum, not negative.

    Returns:
        Of all counts ≥ 0 with this sum, those of least squared distance from the estimates.

    Raises:
        ConfigurationError: No estimates, or a negative total.

    Accuracy: never further from a truth with this total, in squared distance over all values, than the estimates are.
    Source: Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li: Locally Differentially Private Frequency Estimation with
        Consistency, NDSS 2020 (Norm-Sub).
    """
    if not estimates or total < 0:
        raise ConfigurationError("norm-sub takes one estimate or more, and a total not below 0")
    ranked, held, common = sorted(estimates, reverse=True), Fraction(0), Fraction(0)
    for kept, estimate in enumerate(ranked, start=1):
        held += estimate
        lowered = (held - total) / kept
        if lowered >= estimate and kept > 1:  # this one and all smaller ones would be negative or 0
            break
        common = lowered
    return tuple(max(estimate - common, Fraction(0)) for estimate in estimates)


def norm_sub_column(estimate: Estimate) -> tuple[Fraction, ...]:
    """Norm-sub of an estimate, K counts: within each bin to its own total where bins are disclosed, else to n.

    Where n is not told, to its estimate, or to 0 where that is negative.
    """
    first = estimate.parts[0][0]
    exact = estimate.exact
    if isinstance(first, Blocks):
        column = list[Fraction]()
        for start, size in zip(first.binning.starts.tolist(), first.binning.sizes.tolist(), strict=True):
            inside = slice(start, start + size)
            column += norm_sub(exact[inside], sum(exact[inside], Fraction(0)))
        return tuple(column)
    return norm_sub(exact, max(sum(law.total(tally) for law, tally in estimate.parts), 0))
