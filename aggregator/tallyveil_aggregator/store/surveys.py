"""Signed survey documents.

Not here: their verification (`tallyveil_aggregator.known_surveys`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from tallyveil.moments import moment_text
from tallyveil.survey import Survey
from tallyveil_aggregator.store.schema import rounds, surveys


@dataclass(frozen=True)
class StoredSurvey:
    """What a survey is found by; `added_at` is a moment's text."""

    hash: str
    name: str
    version: int
    added_at: str


class Surveys:
    """The surveys, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def document(self, survey_hash: str) -> bytes | None:
        """The signed file, or None."""
        found = self._connection.execute(select(surveys.c.document).where(surveys.c.hash == survey_hash)).scalar()
        return None if found is None else bytes(found)

    def add(self, survey: Survey, document: bytes, now: datetime) -> None:
        """Store a survey with a row for each of its rounds; its hash and its name with version must be new."""
        row = {
            "hash": survey.hash,
            "name": survey.name,
            "version": survey.version,
            "document": document,
            "added_at": moment_text(now),
        }
        self._connection.execute(insert(surveys).values(row))
        numbers = [{"survey_hash": survey.hash, "number": item.number} for item in survey.rounds]
        self._connection.execute(insert(rounds), numbers)

    def all(self) -> tuple[StoredSurvey, ...]:
        """Every survey, the last added first."""
        columns = (surveys.c.hash, surveys.c.name, surveys.c.version, surveys.c.added_at)
        order = (surveys.c.added_at.desc(), surveys.c.name, surveys.c.version.desc())
        return tuple(StoredSurvey(*row) for row in self._connection.execute(select(*columns).order_by(*order)))
