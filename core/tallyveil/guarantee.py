"""What a mechanism protects and what it does not, in words that may be shown anywhere.

Not here: the arithmetic of an epsilon (`tallyveil.mechanisms`). Every place that names a guarantee takes its
words from here, so that no screen, survey or release claims more than holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallyveil.epsilon import NanoEpsilon, epsilon_text

KIND_LDP: Final = "epsilon-LDP"
KIND_WITHIN_BIN: Final = "epsilon-LDP within bin, bin disclosed"
KIND_AT_DEPARTMENT: Final = "epsilon-DP at the department"
KINDS = (KIND_LDP, KIND_WITHIN_BIN, KIND_AT_DEPARTMENT)

REPLACE_ONE: Final = "replace-one"
ADD_OR_REMOVE: Final = "add-or-remove"
NEIGHBOURS = (REPLACE_ONE, ADD_OR_REMOVE)
"""Which two tables an epsilon at the department compares: one record's values replaced, or one record more or less."""

_MEMBERSHIP = (
    "being in the table at all: the number of records per department and per dimension cell is exact, "
    "zeros included, and visible to the aggregator"
)
_BIN = (
    "the bin of every record: it is sent in clear, so the number of records per bin is exact, zeros included, "
    "and there is no bound between values of different bins"
)


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of one report.

    Args:
        kind: One of `KINDS`.
        epsilon: What was asked for.
        realised_epsilon: Largest log-ratio of the channel as really drawn, in nats; never above `epsilon`.
        text: One sentence.
        not_protected: What stays visible, a phrase each; never empty.
    """

    kind: str
    epsilon: NanoEpsilon
    realised_epsilon: float
    text: str
    not_protected: tuple[str, ...]


def full_ldp(epsilon: NanoEpsilon, realised_epsilon: float, domain_size: int) -> Guarantee:
    """Any two values of the whole domain look alike up to e^epsilon."""
    return Guarantee(
        KIND_LDP,
        epsilon,
        realised_epsilon,
        f"Each report is {epsilon_text(epsilon)}-LDP over all {domain_size} values: whatever a report shows, any two "
        f"values explain it within a factor of e^{epsilon_text(epsilon)}.",
        (_MEMBERSHIP,),
    )


def within_bin(epsilon: NanoEpsilon, realised_epsilon: float, binning: str) -> Guarantee:
    """Block-structured LDP: values of one bin look alike, the bin itself is in clear.

    Source: Acharya, Bonawitz, Kairouz, Ramage, Sun: Context-Aware Local Differential Privacy, ICML 2020.
    """
    return Guarantee(
        KIND_WITHIN_BIN,
        epsilon,
        realised_epsilon,
        f"Each report is {epsilon_text(epsilon)}-LDP within a bin only ({binning}): two values of one bin explain a "
        f"report within a factor of e^{epsilon_text(epsilon)}; the bin itself is disclosed.",
        (_BIN, _MEMBERSHIP),
    )


def at_department(epsilon: NanoEpsilon, neighbours: str) -> Guarantee:
    """Differential privacy of one department's noisy histogram; the department's own machine sees everything."""
    several = "several records of one person or household: the epsilon of each adds up"
    if neighbours == ADD_OR_REMOVE:
        compared, open_to_sight = "with any one record added or removed", ("that the department takes part", several)
    else:
        compared, open_to_sight = "with the value of any one record replaced", (_MEMBERSHIP, several)
    return Guarantee(
        KIND_AT_DEPARTMENT,
        epsilon,
        epsilon / 1e9,
        f"Each department's histogram is {epsilon_text(epsilon)}-DP as it leaves the department: {compared}, any "
        f"outcome is as likely within a factor of e^{epsilon_text(epsilon)}. Noise is added once to each count; no "
        "single record is perturbed.",
        open_to_sight,
    )
