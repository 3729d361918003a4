"""Releases as published: signed files in one chain.

Not here: how a release is made (`tallyveil_aggregator.publication`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, insert, select

from tallyveil.moments import moment_text
from tallyveil_aggregator.store.schema import releases, surveys

_Select = Select[*tuple[Any, ...]]


@dataclass(frozen=True)
class StoredRelease:
    """One published release without its document.

    Args:
        sequence: Place in the chain, from 1.
        survey_hash: The survey.
        survey_name: Its name.
        survey_version: Its version.
        round: Number of the round.
        revision: 1, 2, …
        hash: The release's hash, which the next one names as `previous`.
        content: Digest of what it was made from.
        released_at: A moment's text.
    """

    sequence: int
    survey_hash: str
    survey_name: str
    survey_version: int
    round: int
    revision: int
    hash: str
    content: str
    released_at: str


class Releases:
    """The releases, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def last(self) -> StoredRelease | None:
        """The end of the chain, or None before the first release."""
        return self._first(_stored().order_by(releases.c.sequence.desc()))

    def last_of(self, survey_hash: str, round_number: int) -> StoredRelease | None:
        """The newest revision of a round, or None."""
        here = (releases.c.survey_hash == survey_hash, releases.c.round == round_number)
        return self._first(_stored().where(*here).order_by(releases.c.revision.desc()))

    def find(self, name: str, version: int = 0, round_number: int = 0, revision: int = 0) -> StoredRelease | None:
        """The release so named, or None; a 0 means the newest there is."""
        query = _stored().where(surveys.c.name == name)
        for column, wanted in (
            (surveys.c.version, version),
            (releases.c.round, round_number),
            (releases.c.revision, revision),
        ):
            query = query.where(column == wanted) if wanted else query.order_by(column.desc())
        return self._first(query)

    def newest(self, limit: int) -> tuple[StoredRelease, ...]:
        """The last `limit` releases, newest first."""
        rows = self._connection.execute(_stored().order_by(releases.c.sequence.desc()).limit(limit))
        return tuple(StoredRelease(*row) for row in rows)

    def document(self, sequence: int) -> bytes:
        """The signed file of a release that exists."""
        query = select(releases.c.document).where(releases.c.sequence == sequence)
        return bytes(self._connection.execute(query).scalar_one())

    def add(self, release: StoredRelease, previous: str | None, released_at: datetime, document: bytes) -> None:
        """Append a release to the chain."""
        row = {
            "sequence": release.sequence,
            "survey_hash": release.survey_hash,
            "round": release.round,
            "revision": release.revision,
            "hash": release.hash,
            "previous": previous,
            "content": release.content,
            "released_at": moment_text(released_at),
            "document": document,
        }
        self._connection.execute(insert(releases).values(row))

    def _first(self, query: _Select) -> StoredRelease | None:
        row = self._connection.execute(query.limit(1)).one_or_none()
        return None if row is None else StoredRelease(*row)


def _stored() -> _Select:
    return select(
        releases.c.sequence,
        releases.c.survey_hash,
        surveys.c.name,
        surveys.c.version,
        releases.c.round,
        releases.c.revision,
        releases.c.hash,
        releases.c.content,
        releases.c.released_at,
    ).join(surveys, surveys.c.hash == releases.c.survey_hash)
