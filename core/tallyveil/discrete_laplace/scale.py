"""The scale t of the noise: sensitivity over epsilon, as a fraction, and its range.

Not here: how sensitive a statistic is, which its own module states.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from tallyveil.epsilon import NANO, NanoEpsilon
from tallyveil.errors import ConfigurationError

SMALLEST: Final = Fraction(1, 64)
"""Below it there is all but no noise: P(X ≠ 0) < 2^-91."""

LARGEST: Final = Fraction(2**56)
"""Up to it a draw fits a signed 64-bit integer, but for a probability below 2^-184."""


def scale_for(sensitivity: int, epsilon: NanoEpsilon) -> Fraction:
    """t = sensitivity/epsilon, exactly.

    Args:
        sensitivity: How far one neighbour moves the whole numbers that noise is added to, in all (L1); above 0.
        epsilon: Nano-nats, above 0; a share of a budget may be below what a survey permits.

    Raises:
        ConfigurationError: Either is not positive, or the scale is out of range.

    Privacy: nothing is rounded, so the realised epsilon, sensitivity/t, is epsilon itself.
    """
    if sensitivity <= 0 or epsilon <= 0:
        raise ConfigurationError(
            "noise needs a sensitivity and an epsilon above 0",
            not_done="no noise was drawn",
            next_step="a statistic that nobody's record can change needs no noise",
        )
    return checked_scale(Fraction(sensitivity * NANO, epsilon))


def checked_scale(scale: Fraction) -> Fraction:
    """The same fraction, known to lie in 1/64..2^56.

    Raises:
        ConfigurationError: It does not.
    """
    if not SMALLEST <= scale <= LARGEST:
        raise ConfigurationError(
            "the scale of discrete Laplace noise is a fraction from 1/64 to 2^56",
            not_done="no noise was drawn",
            next_step="count in coarser units where it is too large, in finer ones where it is too small",
        )
    return scale
