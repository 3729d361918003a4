"""The planner: what every mechanism would give for one collection, before anything is collected.

Not here: what it looks like on a terminal (`tallyveil.cli.plan`). No record is read and no coin is drawn: every number
follows from the mechanisms' exact laws and a stated case.
"""

from __future__ import annotations

from tallyveil.planner.advice import best, number_text, recommendation
from tallyveil.planner.needed import epsilon_needed, records_needed
from tallyveil.planner.options import Candidate, Option, Plan, Skipped, candidates, make_plan
from tallyveil.planner.prior import read_prior
from tallyveil.planner.question import Question, shares_of

__all__ = [
    "Candidate",
    "Option",
    "Plan",
    "Question",
    "Skipped",
    "best",
    "candidates",
    "epsilon_needed",
    "make_plan",
    "number_text",
    "read_prior",
    "recommendation",
    "records_needed",
    "shares_of",
]
