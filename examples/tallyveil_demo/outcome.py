"""What the demo's release is worth: beside the truth, beside GRR, and what it did not protect.

Not here: showing it (`command`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tallyveil.binning import Binning
from tallyveil.mechanisms import create
from tallyveil.release import VerifiedRelease
from tallyveil_demo.offices import Office

REPEATS = 20
SMALL_COUNT = 10


@dataclass(frozen=True)
class Outcome:
    """The demo's figures.

    Args:
        records: n of the release.
        departments: Complete submissions in it.
        bins: Bins really made.
        mape_brr: Mean absolute percentage error of the release over the ages, as a fraction.
        mape_grr: The same for GRR over all ages at the same epsilon, by simulation on this machine.
        mape_ss: The same for subset selection, the best that protects all ages alike.
        clear_counts: (office, bin) counts the aggregator saw exactly and that are not zero.
        clear_below_10: How many of those are below 10.
        clear_of_1: How many of those are 1.
        empty: (office, bin) counts that are zero, which shows too.
    """

    records: int
    departments: int
    bins: int
    mape_brr: float
    mape_grr: float
    mape_ss: float
    clear_counts: int
    clear_below_10: int
    clear_of_1: int
    empty: int


def judge(verified: VerifiedRelease, offices: Sequence[Office]) -> Outcome:
    """Compare a verified release with the table the offices' files were made from."""
    release = verified.release
    truth = national_truth(offices)
    binning = release.survey.binning
    epsilon = release.participants[0].epsilon / 1e9
    clear = clear_counts(offices, binning)
    shown = clear[clear > 0]
    return Outcome(
        records=release.records,
        departments=len(release.participants),
        bins=binning.bins,
        mape_brr=mape(estimates_of(verified), truth),
        mape_grr=simulated_mape("grr", truth, epsilon),
        mape_ss=simulated_mape("ss", truth, epsilon),
        clear_counts=int(shown.size),
        clear_below_10=int((shown < SMALL_COUNT).sum()),
        clear_of_1=int((shown == 1).sum()),
        empty=int((clear == 0).sum()),
    )


def national_truth(offices: Sequence[Office]) -> NDArray[np.int64]:
    """Heads by age over all offices, shape (85,)."""
    total: NDArray[np.int64] = np.sum([office.counts for office in offices], axis=0)
    return total


def clear_counts(offices: Sequence[Office], binning: Binning) -> NDArray[np.int64]:
    """What the aggregator sees exactly under BRR: records per office and bin, shape (offices, bins)."""
    return np.array([np.add.reduceat(office.counts, binning.starts) for office in offices])


def estimates_of(verified: VerifiedRelease) -> NDArray[np.float64]:
    """The published national estimates, shape (85,)."""
    return np.array([float(row.estimate) for row in verified.release.tables[0].rows])


def mape(estimates: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Mean of |estimate − truth| / truth over the cells with a true count above 0, as a fraction."""
    held = truth > 0
    return float(np.mean(np.abs(estimates[held] - truth[held]) / truth[held]))


def simulated_mape(name: str, truth: NDArray[np.int64], epsilon: float) -> float:
    """Mean MAPE of a mechanism over the whole domain in `REPEATS` runs of its own code."""
    mechanism = create(name, domain_size=truth.size, epsilon=epsilon)
    values = np.repeat(np.arange(truth.size), truth)
    runs = [mechanism.law.corrected(mechanism.perturb_and_tally(values)) for _ in range(REPEATS)]
    return float(np.mean([mape(run, truth) for run in runs]))
