"""Closing rounds early and opening them again, and what a round's state is called.

Not here: windows (the signed survey) and releasing (`tallyveil_aggregator.publication`).
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from tallyveil.errors import TallyveilError
from tallyveil.moments import moment_text
from tallyveil.survey import Survey
from tallyveil_aggregator.intake import RoundState
from tallyveil_aggregator.store import Transaction


class RoundError(TallyveilError):
    """What was asked of a round does not fit its state."""

    kind: ClassVar[str] = "round"
    exit_code: ClassVar[int] = 8
    consequence: ClassVar[str] = "nothing was changed"

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(what, not_done=self.consequence, next_step=next_step)


def state_of(state: RoundState, now: datetime) -> str:
    """One of: not open yet, open, closed early, closed, released."""
    if state.released:
        return "released"
    if now >= state.window.closes:
        return "closed"
    if state.closed_early:
        return "closed early"
    return "open" if now >= state.window.opens else "not open yet"


def close_round(transaction: Transaction, survey: Survey, number: int, now: datetime) -> bool:
    """Close a round before its window ends; False where it was closed before.

    Raises:
        RoundError: There is no such round, or it has not opened yet.
    """
    state = _known(transaction, survey, number)
    if state.closed_early or now >= state.window.closes:
        return False
    if now < state.window.opens:
        raise RoundError(f"round {number} opens only at {moment_text(state.window.opens)}", "close it after that")
    transaction.rounds.set_closed(survey.hash, number, now)
    return True


def reopen_round(transaction: Transaction, survey: Survey, number: int, now: datetime) -> bool:
    """Take back an early close; False where the round was not closed early.

    Raises:
        RoundError: There is no such round, its window has ended, or it is released.
    """
    state = _known(transaction, survey, number)
    if state.released:
        raise RoundError(
            f"round {number} is released: a further submission would follow by subtraction from two releases",
            "collect again in the next round",
        )
    if now >= state.window.closes:
        raise RoundError(
            f"the window of round {number} ended at {moment_text(state.window.closes)}, as the survey says",
            "collect in the next round, or have the authority sign a new version of the survey",
        )
    if not state.closed_early:
        return False
    transaction.rounds.set_closed(survey.hash, number, None)
    return True


def _known(transaction: Transaction, survey: Survey, number: int) -> RoundState:
    state = transaction.rounds.state(survey, number)
    if state is None:
        raise RoundError(f"the survey has no round {number}", f"it has rounds 1 to {len(survey.rounds)}")
    return state
