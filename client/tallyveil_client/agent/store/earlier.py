"""The tables behind the stored submissions, for comparing another one with them.

Not here: the comparison (`tallyveil_client.agent.overlap`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import cast

from tallyveil import canonical
from tallyveil.errors import IntegrityError
from tallyveil_client.agent.ledger import Ledger
from tallyveil_client.agent.store.records import Earlier


def read_earlier(connection: sqlite3.Connection, ledger: Ledger) -> tuple[Earlier, ...]:
    """All of them, in the order they were stored, inside the caller's transaction.

    Raises:
        IntegrityError: The survey of one of them is gone.
    """
    rows = connection.execute(
        "SELECT s.ledger_seq, a.document, s.selection, s.clear_counts FROM submissions s "
        "LEFT JOIN approvals a ON a.survey_hash = s.survey_hash ORDER BY s.ledger_seq"
    ).fetchall()
    if any(document is None for _, document, _, _ in rows):
        raise IntegrityError(
            "the survey behind a stored submission is gone from the approvals",
            not_done="nothing was charged, stored or sent",
            next_step="approve that survey again: tallyveil agent status names what was stored",
        )
    return tuple(
        Earlier(bytes(document), ledger.charges[int(seq) - 1].account, selection, _counts(text))
        for seq, document, selection, text in rows
    )


def counts_text(counts: Mapping[tuple[int, int], int]) -> str:
    """Records per clear cell as they are stored."""
    return canonical.encode(sorted([*key, count] for key, count in counts.items())).decode()


def _counts(text: str) -> dict[tuple[int, int], int]:
    rows = cast("list[tuple[int, int, int]]", canonical.decode(text.encode()))
    return {(cell, number): count for cell, number, count in rows}
