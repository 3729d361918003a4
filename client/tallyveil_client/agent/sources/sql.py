"""The SQL every database source shares: quoted names and a query taken as a table.

Not here: any one database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tallyveil.errors import ConfigurationError
from tallyveil_client.agent.config import SourceConfig

_READS = re.compile(r"(?is)(?>\s|--[^\n]*\n|/\*.*?\*/)*+(?:select|with|values)\b")
"""Comments are atomic, and what was read as one is never tried as something else: linear in the query's length."""

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def quoted(name: str) -> str:
    """An identifier in quotation marks, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def quoted_path(text: str) -> str:
    """``schema.table`` or ``table``, each part quoted; a part may be written in quotation marks itself.

    Raises:
        ConfigurationError: Anything else.
    """
    parts: list[str] = []
    position = 0
    while len(parts) < 3 and (found := _PART.match(text, position)):
        inner, bare = found.groups()
        parts.append(inner.replace('""', '"') if inner else bare)
        position = found.end()
        if text[position : position + 1] != ".":
            break
        position += 1
    if position != len(text) or not parts or text.endswith("."):
        raise ConfigurationError(
            f"{text!r} is not a table's name",
            not_done="nothing was read",
            next_step='write table, schema.table or "odd.schema"."odd.table"',
        )
    return ".".join(map(quoted, parts))


def relation(config: SourceConfig, table: str) -> str:
    """What stands after FROM: the quoted table, or the operator's query in parentheses.

    A second statement cannot pass: inside the parentheses it is a syntax error, and beyond them the databases
    refuse more than one statement.

    Raises:
        ConfigurationError: The query is not a SELECT.
    """
    if config.query is None:
        return table
    query = config.query.strip().rstrip(";").rstrip()
    if not _READS.match(query):
        raise ConfigurationError(
            f"source '{config.name}': the query must be one SELECT", next_step="begin it with SELECT or WITH"
        )
    return f"(\n{query}\n) AS tallyveil_source"


def selection(expressions: Iterable[str], source: str) -> str:
    """The SELECT of these expressions."""
    return f"SELECT {', '.join(expressions)} FROM {source}"
