"""Generalised randomised response over the whole domain.

Not here: responses inside bins (`brr`).
"""

from __future__ import annotations

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.randomness import Randomness


class GeneralisedRandomisedResponse(BlockResponse):
    """Keep the value with probability p, else report one of the K−1 others, each with probability q.

    Privacy: epsilon-LDP; p/q = keep/lie ≤ e^epsilon exactly, in integers.
    Accuracy: var ĉ_v = [c·p(1−p) + (n−c)·q(1−q)]/(p−q)²; best of all mechanisms only up to about K = 3·e^epsilon + 2.
    Source: Kairouz, Bonawitz, Ramage: Discrete Distribution Estimation under Local Privacy, ICML 2016.
    """

    def __init__(self, domain_size: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(Binning(domain_size, 1), epsilon, randomness)

    @property
    def name(self) -> str:
        return "grr"
