"""Submissions: at most one for each department and round.

Not here: their batches (`batches`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, insert, select, update

from tallyveil.batch import SubmissionKey
from tallyveil.epsilon import NanoEpsilon
from tallyveil.moments import moment_text
from tallyveil_aggregator.intake import HeldSubmission
from tallyveil_aggregator.store.schema import submissions


@dataclass(frozen=True)
class StoredSubmission:
    """A submission and the number it has in the store."""

    number: int
    department: str
    held: HeldSubmission


class Submissions:
    """The submissions, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, department: str, survey_hash: str, round_number: int) -> StoredSubmission | None:
        """The department's submission of that round, or None."""
        found = self._select(survey_hash, round_number, submissions.c.department == department)
        return found[0] if found else None

    def complete(self, survey_hash: str, round_number: int) -> tuple[StoredSubmission, ...]:
        """The complete submissions of that round, by department."""
        return self._select(survey_hash, round_number, submissions.c.completed_at.is_not(None))

    def add(
        self, department: str, key: SubmissionKey, now: datetime, signature: bytes = b"", certificate: bytes = b""
    ) -> None:
        """Open a submission, with the department's signed choice of epsilon and the certificate it holds under."""
        row = {
            "department": department,
            "survey_hash": key.survey_hash,
            "round": key.round,
            "submission_id": key.submission_id,
            "epsilon_nano": key.epsilon,
            "opened_at": moment_text(now),
            "choice_signature": signature,
            "certificate": certificate,
        }
        self._connection.execute(insert(submissions).values(row))

    def mark_complete(self, number: int, now: datetime) -> None:
        """Mark a submission complete."""
        here = submissions.c.id == number
        self._connection.execute(update(submissions).where(here).values(completed_at=moment_text(now)))

    def _select(self, survey_hash: str, round_number: int, which: ColumnElement[bool]) -> tuple[StoredSubmission, ...]:
        rows = self._connection.execute(
            select(
                submissions.c.id,
                submissions.c.department,
                submissions.c.epsilon_nano,
                submissions.c.submission_id,
                submissions.c.completed_at,
            )
            .where(submissions.c.survey_hash == survey_hash, submissions.c.round == round_number, which)
            .order_by(submissions.c.department)
        )
        return tuple(
            StoredSubmission(
                number,
                department,
                HeldSubmission(
                    SubmissionKey(survey_hash, round_number, NanoEpsilon(epsilon), bytes(submission_id)),
                    completed_at is not None,
                ),
            )
            for number, department, epsilon, submission_id, completed_at in rows
        )
