"""A prior: a table of labels and expected counts, such as a census or an earlier release gives.

Not here: reading the file. Labels are the domain's, and public; errors name rows, never what stands in them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from math import inf

from tallyveil.domain import Domain
from tallyveil.errors import ConfigurationError

HEADER = "count"
_SHOWN = 5


def read_prior(data: bytes, domain: Domain) -> tuple[float, ...]:
    """Counts in the domain's order.

    Args:
        data: CSV in UTF-8, rows ``label,count`` in any order, one for each value of the domain. A first row whose
            second cell is ``count`` names the columns.
        domain: Whose labels they are.

    Raises:
        ConfigurationError: Rows that are not of that form, with a label that the domain does not have or that stood
            in an earlier row, all by number; or values of the domain without a row.
    """
    rows = _rows(data)
    index = {label: number for number, label in enumerate(domain.labels)}
    counts: dict[str, float] = {}
    malformed, unknown, repeated = list[int](), list[int](), list[int]()
    for number, row in rows:
        label = row[0].strip()
        count = _count(row[1]) if len(row) == 2 else None
        if count is None:
            malformed.append(number)
        elif label not in index:
            unknown.append(number)
        elif label in counts:
            repeated.append(number)
        else:
            counts[label] = count
    _require_none(malformed, "is no label with a count of 0 or more")
    _require_none(unknown, "has a label that the domain does not have")
    _require_none(repeated, "has a label that stood in an earlier row")
    missing = [label for label in domain.labels if label not in counts]
    if missing:
        raise _refused(f"the prior has no row for {_listed(missing)} of the domain")
    if not 0 < sum(counts.values()) < inf:
        raise _refused("the prior's counts are all 0, or too large to add up")
    return tuple(counts[label] for label in domain.labels)


def _rows(data: bytes) -> list[tuple[int, list[str]]]:
    """Rows that are not empty, with their numbers from 1, without the header."""
    try:
        found = list(csv.reader(StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise _refused("the prior is not CSV in UTF-8") from None
    rows = [(number, row) for number, row in enumerate(found, start=1) if row]
    named = bool(rows) and len(rows[0][1]) == 2 and rows[0][1][1].strip().lower() == HEADER
    return rows[1:] if named else rows


def _count(text: str) -> float | None:
    try:
        count = float(text)
    except ValueError:
        return None
    return count if 0 <= count < inf else None


def _require_none(rows: Sequence[int], what: str) -> None:
    if rows:
        raise _refused(f"a row of the prior {what}: row {_listed(list(map(str, rows)))}")


def _listed(items: Sequence[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _refused(what: str) -> ConfigurationError:
    return ConfigurationError(
        what,
        not_done="nothing was planned",
        next_step="give each value of the domain one row LABEL,COUNT, or leave the prior out",
    )
