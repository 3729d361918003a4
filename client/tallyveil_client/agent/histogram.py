"""What counting reports into histograms adds to the guarantee of one report, for one survey in this department.

Not here: the bound and its words (`tallyveil.amplification`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.amplification import amplified, histogram_text
from tallyveil.canonical import Json
from tallyveil.guarantee import Guarantee
from tallyveil.survey import Survey
from tallyveil_client.agent.clear_cells import Counts, visible_counts
from tallyveil_client.agent.policy import Collection


@dataclass(frozen=True)
class HistogramGuarantee:
    """Of the smallest histogram the aggregator sees: one dimension cell and, where bins are disclosed, one bin.

    Args:
        guarantee: Of one report.
        records: n that is counted on.
        counted: Whether records were counted; else n is the policy's smallest clear cell.
    """

    guarantee: Guarantee
    records: int
    counted: bool

    def to_json(self) -> Json:
        """For machines."""
        found = amplified(self.guarantee.epsilon, self.records)
        return {
            "records": found.records,
            "counted": self.counted,
            "epsilon": found.epsilon_prime,
            "delta": found.delta,
            "method": found.method,
            "text": self.text,
        }

    @property
    def text(self) -> str:
        """For people, with the n it holds for."""
        words = histogram_text(self.guarantee, self.records) or ""
        return words if self.counted else f"{words} n is the policy's min_clear_cell: no smaller histogram is sent."


def histogram_guarantee(
    survey: Survey, limits: Collection, guarantee: Guarantee, clear_counts: Counts | None = None
) -> HistogramGuarantee | None:
    """What may be claimed, or None: no report is perturbed, or the policy stops the table anyway.

    Args:
        survey: Its cells are what the aggregator sees.
        limits: The policy's, for it.
        guarantee: Of one report.
        clear_counts: Accepted records by (cell, bin), where they were counted.

    Privacy: n is never a count below the policy's min_clear_cell, which hides such counts.
    """
    if histogram_text(guarantee, limits.min_clear_cell) is None:
        return None
    if clear_counts is None:
        return HistogramGuarantee(guarantee, limits.min_clear_cell, counted=False)
    smallest = min((count for count in visible_counts(survey, clear_counts).values() if count), default=0)
    if smallest < limits.min_clear_cell:
        return None
    return HistogramGuarantee(guarantee, smallest, counted=True)
