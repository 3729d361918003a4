"""Which records a table was counted from, and how their cells were read: one text that two tables can be compared by.

Not here: the records, and what follows from a comparison (`overlap`). The source's own name is left out: a file is
the same file under another name. So are columns that the survey does not use, and the logical names of those it does.
"""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from tallyveil import canonical
from tallyveil.errors import IntegrityError
from tallyveil.survey import Survey
from tallyveil_client.agent.cell_text import clean
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.filter import Condition

_COLUMN = ("format", "path", "table", "query", "column")
_WORDS = {
    "format": "another format",
    "path": "another file or server",
    "table": "another table of the source",
    "query": "another query",
    "csv": "another way of reading the file",
    "filter": "another filter",
    "missing": "other missing codes",
    "on_invalid": "another on_invalid",
    "column": "another column",
    "recode": "another recode",
}
_REJECT = "reject"


def fingerprint(source: SourceConfig, survey: Survey) -> str:
    """Canonical JSON of everything in a source's configuration that decides which records a survey's table counts.

    Args:
        source: Names the column of the attribute and of every dimension.
        survey: Says which columns are used.
    """
    place, csv = source.uri_file or source.path, source.csv
    parts = {
        "format": source.format,
        "path": "" if place is None else str(place.resolve()).encode("utf-8", "backslashreplace").decode(),
        "table": source.table or "",
        "query": (source.query or "").strip(),
        "csv": _text(csv.encoding, csv.delimiter, csv.header_row, csv.numbers.decimal_mark, csv.numbers.thousands_mark),
        "filter": _text(*sorted(_condition(source, item) for item in source.conditions)),
        "missing": _text(*sorted({"", *map(clean, source.missing)})),
        "on_invalid": source.on_invalid,
        "column": source.columns.get(survey.attribute, ""),
        "recode": _recode(source, survey.attribute),
    }
    for dimension in survey.dimensions:
        parts[f"dimension {dimension.name}"] = _column(source, dimension.name)
    return canonical.encode(parts).decode()


def difference(one: str, other: str, same_survey: bool = False) -> str | None:
    """In what two fingerprints differ, in words; None where they name the same records, read in the same way.

    A dimension that only one of them has is no difference here; nor is another file, from round to round of one survey.

    Raises:
        IntegrityError: One is not a fingerprint.
    """
    before, after = _parts(one), _parts(other)
    changed = {key for key in before.keys() & after.keys() if before[key] != after[key]}
    changed |= {key for key in before.keys() ^ after.keys() if not key.startswith("dimension ")}
    if same_survey:
        changed.discard("path")
    if not changed:
        return None
    return next((_WORDS[key] for key in _WORDS if key in changed), f"another column or recode of {min(changed)}")


def same_column(one: str, other: str) -> bool:
    """Whether both count one column of one place, whatever they call it."""
    before, after = _parts(one), _parts(other)
    return all(before.get(key) == after.get(key) for key in _COLUMN)


def leaves_out(selection: str) -> bool:
    """Whether records that cannot be used are left out instead of stopping the run."""
    return _parts(selection).get("on_invalid") == _REJECT


def _parts(selection: str) -> dict[str, str]:
    document = canonical.decode(selection.encode())
    if not isinstance(document, dict):
        raise IntegrityError(
            "the agent's store does not say from which records an earlier table was counted",
            not_done="nothing was charged, stored or sent",
            next_step="find out what changed the store",
        )
    return {key: str(value) for key, value in cast("dict[str, object]", document).items()}


def _condition(source: SourceConfig, item: Condition) -> str:
    if isinstance(item.literal, Decimal):
        return _text(_column(source, item.column), item.operator, "number", f"{item.literal.normalize():f}")
    return _text(_column(source, item.column), item.operator, "text", item.literal)


def _column(source: SourceConfig, name: str) -> str:
    return _text(source.columns.get(name, ""), _recode(source, name))


def _recode(source: SourceConfig, name: str) -> str:
    return _text({clean(text): other for text, other in source.recode.get(name, {}).items()})


def _text(*parts: object) -> str:
    return canonical.encode(list(parts)).decode()
