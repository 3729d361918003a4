"""How the rounds of surveys stand: an operator's early close, releases, progress.

Not here: windows, which the signed survey defines.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update

from tallyveil.moments import moment_text
from tallyveil.survey import Survey
from tallyveil_aggregator.intake import RoundState
from tallyveil_aggregator.store.engine import is_writing
from tallyveil_aggregator.store.schema import batches, releases, rounds, submissions


@dataclass(frozen=True)
class Progress:
    """How far a round is: departments that opened and completed their submission, and the records held of all."""

    opened: int
    complete: int
    records: int


class Rounds:
    """The rounds, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def state(self, survey: Survey, number: int) -> RoundState | None:
        """The round as it stands, or None where the survey has no such round or is not stored."""
        if (window := survey.round(number)) is None:
            return None
        here = (rounds.c.survey_hash == survey.hash, rounds.c.number == number)
        query = select(rounds.c.closed_at).where(*here)
        if is_writing(self._connection):  # where a database locks rows, taking in waits for closing and releasing
            query = query.with_for_update()
        row = self._connection.execute(query).one_or_none()
        if row is None:
            return None
        released = select(releases.c.sequence).where(releases.c.survey_hash == survey.hash, releases.c.round == number)
        return RoundState(window, row.closed_at is not None, self._connection.execute(released).first() is not None)

    def set_closed(self, survey_hash: str, number: int, closed_at: datetime | None) -> None:
        """Note an operator's early close, or take it back with None."""
        value = None if closed_at is None else moment_text(closed_at)
        here = (rounds.c.survey_hash == survey_hash, rounds.c.number == number)
        self._connection.execute(update(rounds).where(*here).values(closed_at=value))

    def progress(self, survey_hash: str, number: int) -> Progress:
        """How far the round is."""
        here = (submissions.c.survey_hash == survey_hash, submissions.c.round == number)
        opened, complete = self._connection.execute(
            select(func.count(), func.count(submissions.c.completed_at)).where(*here)
        ).one()
        held = select(func.coalesce(func.sum(batches.c.records), 0)).join(submissions).where(*here)
        return Progress(opened, complete, int(self._connection.execute(held).scalar_one()))
