"""The paper's binned randomised response: the bin in clear, randomised response inside it.

Not here: a perturbed bin (`brr_sealed`).
"""

from __future__ import annotations

from tallyveil.binning import Binning
from tallyveil.epsilon import NanoEpsilon
from tallyveil.guarantee import Guarantee, within_bin
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.randomness import Randomness


class BinnedRandomisedResponse(BlockResponse):
    """Send the bin as it is and the value inside it by randomised response over the bin's K_bin values.

    Privacy: epsilon-LDP among the values of one bin; no bound between bins. This is block-structured LDP, not the
        epsilon-LDP over the domain that the paper's Definition 1 states. One bin is exactly GRR.
    Accuracy: as GRR inside each bin, with K_bin and n_bin; estimates of a bin sum to n_bin exactly.
    Source: Acharya et al.: Context-Aware Local Differential Privacy, ICML 2020 (the guarantee).
    """

    def __init__(self, domain_size: int, bins: int, epsilon: NanoEpsilon, randomness: Randomness | None = None) -> None:
        super().__init__(Binning(domain_size, bins), epsilon, randomness)

    @property
    def name(self) -> str:
        return "brr"

    @property
    def guarantee(self) -> Guarantee:
        if self.binning.bins == 1:
            return super().guarantee
        return within_bin(self.epsilon, self.realised_epsilon, self.binning.describe())
