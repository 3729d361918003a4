"""Mechanisms: how a value is perturbed on a department's machine, and how many reports become estimates.

Not here: surveys, wire, stores; a mechanism knows indices 0..K−1 and nothing else.
"""

from __future__ import annotations

from hashlib import sha256
from operator import index
from typing import Literal, overload

from tallyveil.domain import MAX_VALUES
from tallyveil.epsilon import NanoEpsilon, to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import REPLACE_ONE
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.mechanisms.estimate import Estimate
from tallyveil.mechanisms.hash_tables import SEED_BYTES
from tallyveil.mechanisms.protocol import Mechanism
from tallyveil.mechanisms.registry import Parameters, make
from tallyveil.mechanisms.tally import Tally
from tallyveil.randomness import Randomness, public_token
from tallyveil.survey import Survey

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
    hash_seed: bytes | None = None,
    randomness: Randomness | None = None,
) -> Mechanism: ...


def create(
    name: str,
    *,
    domain_size: int,
    epsilon: float,
    bins: int = 1,
    neighbours: str = REPLACE_ONE,
    hash_seed: bytes | None = None,
    randomness: Randomness | None = None,
) -> Mechanism:
    """A mechanism by its name.

    Args:
        name: One of `tallyveil.survey.MECHANISMS`; or ``"auto"``, the full epsilon-LDP one of least error.
        domain_size: K, from 2 to 65,536.
        epsilon: Nats, in [0.01, 16].
        bins: The paper's fxs, for ``"brr"`` and ``"brr-sealed"``; 1 otherwise. Every bin must have at least two values.
        neighbours: One of `tallyveil.guarantee.NEIGHBOURS`, for ``"histogram-laplace"``.
        hash_seed: Public, for ``"cms"``, ``"hcms"`` and ``"rappor"``; a fresh one without. Tallies of different
            seeds do not add up.
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
    seed = public_token(SEED_BYTES) if hash_seed is None else hash_seed
    return make(name, Parameters(values, to_nano(epsilon), wanted_bins, neighbours, seed), randomness)


def for_survey(survey: Survey, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> Mechanism:
    """The mechanism a survey names, at one of its permitted values of epsilon.

    Hash functions follow from the survey and the epsilon, so that what collides differs from one epsilon to the next.

    Raises:
        ConfigurationError: The survey does not permit this epsilon.
    """
    if epsilon not in survey.epsilons:
        raise ConfigurationError("the survey does not permit this epsilon", not_done="no mechanism was made")
    seed = sha256(f"tallyveil/hash-seed/1\n{survey.hash}\n{epsilon}".encode()).digest()
    parameters = Parameters(survey.domain.size, epsilon, survey.bins, survey.neighbours, seed)
    return make(survey.mechanism, parameters, randomness)


def _whole(number: int, name: str) -> int:
    """A whole number of any integer type, numpy's too, as int; a truth value is none."""
    try:
        if not isinstance(number, bool):
            return index(number)
    except TypeError:
        pass
    raise ConfigurationError(f"{name} is a whole number", not_done="no mechanism was made", next_step=f"check {name}")
