"""Privacy-loss amounts: epsilon in whole nano-nats, so that no sum or comparison ever rounds.

Not here: which mechanism realises an epsilon (`tallyveil.mechanisms`) and who may still spend one
(the agent's ledger).
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor
from operator import index
from typing import NewType

from tallyveil.errors import ConfigurationError

NanoEpsilon = NewType("NanoEpsilon", int)
"""Epsilon in units of 1e-9 nats."""

NANO = 10**9
LOWEST = NanoEpsilon(NANO // 100)
HIGHEST = NanoEpsilon(16 * NANO)


def to_nano(epsilon: float | int | str | Decimal) -> NanoEpsilon:
    """Epsilon in nats as whole nano-epsilon, rounded down.

    A float is read as the shortest decimal that names it (0.1 is one tenth), since that is what its
    author wrote; further digits than nine are cut off, never rounded up.

    Args:
        epsilon: Nats, in [0.01, 16].

    Raises:
        ConfigurationError: Not a finite number in [0.01, 16].
    """
    try:
        exact = _exact(epsilon)
    except (InvalidOperation, TypeError, ValueError):
        raise _refused() from None
    if not exact.is_finite() or not Decimal("0.01") <= exact <= 16:
        raise _refused()
    return NanoEpsilon(floor(Fraction(exact) * NANO))


def checked_nano(nano: int) -> NanoEpsilon:
    """The same integer, known to lie in the permitted range.

    Raises:
        ConfigurationError: Outside [0.01, 16] nats.
    """
    if type(nano) is not int or not LOWEST <= nano <= HIGHEST:
        raise _refused()
    return NanoEpsilon(nano)


def epsilon_text(nano: int) -> str:
    """Epsilon in nats as the shortest exact decimal, as people write it."""
    whole, part = divmod(nano, NANO)
    return f"{whole}.{part:09d}".rstrip("0").rstrip(".")


def _exact(epsilon: float | int | str | Decimal) -> Decimal:
    if isinstance(epsilon, bool):
        raise TypeError("a truth value is no amount")
    if isinstance(epsilon, float):
        return Decimal(float.__repr__(epsilon))  # a subclass such as numpy's writes its own name into its repr
    return Decimal(epsilon) if isinstance(epsilon, str | Decimal) else Decimal(index(epsilon))


def _refused() -> ConfigurationError:
    return ConfigurationError(
        "epsilon must be a number from 0.01 to 16",
        not_done="no mechanism, survey or charge was made with it",
        next_step="choose an epsilon in [0.01, 16]; 1 to 4 is usual",
    )
