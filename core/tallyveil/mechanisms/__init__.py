"""Mechanisms: how a value is perturbed on a department's machine, and how many reports become estimates.

Not here: surveys, wire, stores; a mechanism knows indices 0..K−1 and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Literal, overload

from tallyveil.domain import MAX_VALUES
from tallyveil.epsilon import NanoEpsilon, to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import REPLACE_ONE
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.mechanisms.brr import BinnedRandomisedResponse
from tallyveil.mechanisms.brr_sealed import SealedBinnedResponse
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.mechanisms.grr import GeneralisedRandomisedResponse
from tallyveil.mechanisms.protocol import Mechanism
from tallyveil.mechanisms.ss import SubsetSelection
from tallyveil.mechanisms.tally import Tally
from tallyveil.mechanisms.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
from tallyveil.randomness import Randomness
from tallyveil.survey import MECHANISMS, Survey

__all__ = ["Estimate", "Mechanism", "Tally", "create", "for_survey"]


@overload
def create(
    name: Literal["grr", "brr"],
    *,
    domain_size: int,
    epsilon: float,
    bins: int = 1,
    randomness: Randomness | None = None,
) -> BlockResponse: ...


@overload
def create(
    name: str,
    *,
    domain_size: int,
    epsilon: float,
    bins: int = 1,
    neighbours: str = REPLACE_ONE,
    randomness: Randomness | None = None,
) -> Mechanism: ...


def create(
    name: str,
    *,
    domain_size: int,
    epsilon: float,
    bins: int = 1,
    neighbours: str = REPLACE_ONE,
    randomness: Randomness | None = None,
) -> Mechanism:
    """A mechanism by its name.

    Args:
        name: One of `tallyveil.survey.MECHANISMS`.
        domain_size: K, from 2 to 65,536.
        epsilon: Nats, in [0.01, 16].
        bins: The paper's fxs, for ``"brr"`` and ``"brr-sealed"``; 1 otherwise. Every bin must have at least two values.
        neighbours: One of `tallyveil.guarantee.NEIGHBOURS`, for ``"histogram-laplace"``.
        randomness: Source of the coins; secure by default.

    Raises:
        ConfigurationError: A parameter is out of range, or the name is unknown.
    """
    values, wanted_bins = _whole(domain_size, "domain_size"), _whole(bins, "bins")
    if not 2 <= values <= MAX_VALUES:
        raise ConfigurationError(
            f"a domain has from 2 to {MAX_VALUES} values",
            not_done="no mechanism was made",
            next_step="check domain_size",
        )
    return _make(name, values, wanted_bins, to_nano(epsilon), neighbours, randomness)


def for_survey(survey: Survey, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> Mechanism:
    """The mechanism a survey names, at one of its permitted values of epsilon.

    Raises:
        ConfigurationError: The survey does not permit this epsilon.
    """
    if epsilon not in survey.epsilons:
        raise ConfigurationError("the survey does not permit this epsilon", not_done="no mechanism was made")
    return _make(survey.mechanism, survey.domain.size, survey.bins, epsilon, survey.neighbours, randomness)


_WITH_BINS: dict[str, Callable[[int, int, NanoEpsilon, Randomness | None], Mechanism]] = {
    "brr": BinnedRandomisedResponse,
    "brr-sealed": SealedBinnedResponse,
}
_WITHOUT_BINS: dict[str, Callable[[int, NanoEpsilon, Randomness | None], Mechanism]] = {
    "grr": GeneralisedRandomisedResponse,
    "ss": SubsetSelection,
    "sue": SymmetricUnaryEncoding,
    "oue": OptimisedUnaryEncoding,
}


def _make(
    name: str, domain_size: int, bins: int, epsilon: NanoEpsilon, neighbours: str, randomness: Randomness | None
) -> Mechanism:
    if bins < 1:
        raise ConfigurationError("bins is at least 1", not_done="no mechanism was made")
    if name in _WITH_BINS:
        return _WITH_BINS[name](domain_size, bins, epsilon, randomness)
    if name not in MECHANISMS:
        raise ConfigurationError(
            f"there is no such mechanism here; this version has {', '.join(MECHANISMS)}",
            not_done="no mechanism was made",
            next_step="name one of them",
        )
    if bins != 1:
        raise ConfigurationError(
            f"{name} does not bin", not_done="no mechanism was made", next_step="leave bins out, or choose brr"
        )
    if neighbours != REPLACE_ONE:
        raise ConfigurationError(
            f"{name} does not know these neighbours; {REPLACE_ONE} goes with every mechanism",
            not_done="no mechanism was made",
        )
    return _WITHOUT_BINS[name](domain_size, epsilon, randomness)


def _whole(number: int, name: str) -> int:
    """A whole number of any integer type, numpy's too, as int; a truth value is none."""
    try:
        if not isinstance(number, bool):
            return index(number)
    except TypeError:
        pass
    raise ConfigurationError(f"{name} is a whole number", not_done="no mechanism was made", next_step=f"check {name}")
