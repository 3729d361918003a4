"""Amplification: what a histogram of reports protects beyond the reports themselves, since their order is gone.

Not here: the guarantee of one report (`tallyveil.guarantee`), and which histograms somebody sees.
"""

from __future__ import annotations

from tallyveil.amplification.closed_form import closed_form
from tallyveil.amplification.statement import MOST_RECORDS, Amplified, amplified, histogram_text

__all__ = ["MOST_RECORDS", "Amplified", "amplified", "closed_form", "histogram_text"]
