"""Every mechanism under its name in surveys.

Not here: what they do. Which parameters a mechanism takes is told here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import NEIGHBOURS, REPLACE_ONE
from tallyveil.mechanisms.brr import BinnedRandomisedResponse
from tallyveil.mechanisms.brr_sealed import SealedBinnedResponse
from tallyveil.mechanisms.choice import auto
from tallyveil.mechanisms.grr import GeneralisedRandomisedResponse
from tallyveil.mechanisms.histogram_laplace import HistogramLaplace
from tallyveil.mechanisms.hr import HadamardResponse
from tallyveil.mechanisms.olh import OptimisedLocalHashing
from tallyveil.mechanisms.protocol import Mechanism
from tallyveil.mechanisms.rappor import Rappor
from tallyveil.mechanisms.sketches import CountMeanSketch, HadamardSketch, default_sketch
from tallyveil.mechanisms.ss import SubsetSelection
from tallyveil.mechanisms.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
from tallyveil.randomness import Randomness
from tallyveil.survey import BINNED, MECHANISMS


@dataclass(frozen=True)
class Parameters:
    """What any mechanism may need to know.

    Args:
        domain_size: K.
        epsilon: Of one report, or of a department's histogram.
        bins: Wanted; 1 for those that do not bin.
        neighbours: One of `tallyveil.guarantee.NEIGHBOURS`.
        hash_seed: Public, for those with common hash functions.
    """

    domain_size: int
    epsilon: NanoEpsilon
    bins: int
    neighbours: str
    hash_seed: bytes


_MAKERS: dict[str, Callable[[Parameters, Randomness | None], Mechanism]] = {
    "grr": lambda given, coins: GeneralisedRandomisedResponse(given.domain_size, given.epsilon, coins),
    "brr": lambda given, coins: BinnedRandomisedResponse(given.domain_size, given.bins, given.epsilon, coins),
    "brr-sealed": lambda given, coins: SealedBinnedResponse(given.domain_size, given.bins, given.epsilon, coins),
    "ss": lambda given, coins: SubsetSelection(given.domain_size, given.epsilon, coins),
    "sue": lambda given, coins: SymmetricUnaryEncoding(given.domain_size, given.epsilon, coins),
    "oue": lambda given, coins: OptimisedUnaryEncoding(given.domain_size, given.epsilon, coins),
    "olh": lambda given, coins: OptimisedLocalHashing(given.domain_size, given.epsilon, coins),
    "hr": lambda given, coins: HadamardResponse(given.domain_size, given.epsilon, coins),
    "rappor": lambda given, coins: Rappor(given.domain_size, given.epsilon, given.hash_seed, coins),
    "cms": lambda given, coins: CountMeanSketch(
        default_sketch(given.hash_seed, given.domain_size), given.epsilon, coins
    ),
    "hcms": lambda given, coins: HadamardSketch(
        default_sketch(given.hash_seed, given.domain_size), given.epsilon, coins
    ),
    "histogram-laplace": lambda given, coins: HistogramLaplace(
        given.domain_size, given.epsilon, given.neighbours, coins
    ),
}


def make(name: str, given: Parameters, randomness: Randomness | None) -> Mechanism:
    """The mechanism of that name.

    Raises:
        ConfigurationError: There is none, or it does not take these parameters.
    """
    if name == "auto":
        name = auto(given.domain_size, given.epsilon)
    _require(name in _MAKERS, f"there is no such mechanism here; this version has {', '.join(MECHANISMS)}")
    _require(given.bins >= 1, "bins is at least 1")
    _require(name in BINNED or given.bins == 1, f"{name} does not bin: leave bins out, or choose {' or '.join(BINNED)}")
    _require(given.neighbours in NEIGHBOURS, f"neighbours are {' or '.join(NEIGHBOURS)}")
    _require(
        name == "histogram-laplace" or given.neighbours == REPLACE_ONE,
        f"{name} perturbs each record that is there: its neighbours are {REPLACE_ONE}",
    )
    return _MAKERS[name](given, randomness)


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ConfigurationError(
            rule, not_done="no mechanism was made", next_step="check the mechanism's name and its parameters"
        )
