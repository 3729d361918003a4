"""Which records a source's filter keeps: ``COLUMN OP LITERAL (and COLUMN OP LITERAL)*``.

Not here: whole records (`encode`). OP is one of ``== != < <= > >=``; a literal is a number or 'text'. Cells are read
by the same rules as values: a cell that cannot be compared makes the record rejected, never silently left out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ConfigurationError
from tallyveil_client.agent.cell_text import as_decimal, clean, named_by
from tallyveil_client.agent.cells import CellReader, CellRules

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SPACE = re.compile(r"\s*")
_COLUMN = re.compile(r"[^\W\d][\w-]*")
_OPERATOR = re.compile("|".join(_OPERATORS))
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?![0-9A-Za-z_.])")
_TEXT = re.compile(r"'((?:[^']|'')*)'")
_AND = re.compile(r"and\b")
_INT64 = np.iinfo(np.int64)
_FALSE, _TRUE = 0, 1


@dataclass(frozen=True)
class Condition:
    """One comparison.

    Args:
        column: Logical name.
        operator: One of ``== != < <= > >=``.
        literal: A number is compared as a number; text as cleaned text, by code point.
    """

    column: str
    operator: str
    literal: Decimal | str


def parse_filter(text: str) -> tuple[Condition, ...]:
    """The conditions of a filter, all of which a record must meet; none for blank text.

    In 'text' a quotation mark is written twice.

    Raises:
        ConfigurationError: Not such a filter; the message shows the position.
    """
    position = _skip(text, 0)
    conditions: list[Condition] = []
    while position < len(text) or conditions:
        column, position = _take(_COLUMN, text, position, "a column's name")
        sign, position = _take(_OPERATOR, text, position, "one of == != <= >= < >")
        if text[position : position + 1] == "'":
            quoted, position = _take(_TEXT, text, position, "a closing quotation mark")
            conditions.append(Condition(column, sign, clean(quoted[1:-1].replace("''", "'"))))
        else:
            number, position = _take(_NUMBER, text, position, "a number or 'text'")
            conditions.append(Condition(column, sign, Decimal(number)))
        if position == len(text):
            break
        _, position = _take(_AND, text, position, "'and', or the end")
    return tuple(conditions)


def filter_columns(conditions: tuple[Condition, ...]) -> tuple[str, ...]:
    """The logical names the conditions need, each once."""
    return tuple(dict.fromkeys(condition.column for condition in conditions))


class ConditionReader(CellReader):
    """Reads a cell into 1 where it meets the condition, 0 where it does not, or the code of a reason."""

    def __init__(self, condition: Condition, rules: CellRules) -> None:
        self._literal = condition.literal
        self._compare = _OPERATORS[condition.operator]
        self.numeric = isinstance(condition.literal, Decimal)
        super().__init__(rules)

    def _read_value(self, text: str) -> int:
        if isinstance(self._literal, str):
            return int(self._compare(clean(text), self._literal))
        number = self._number_or_reason(text)
        return number if isinstance(number, int) else int(self._compare(as_decimal(number), self._literal))

    def _integer_codes(self, values: NDArray[np.int64]) -> NDArray[np.int64] | None:
        literal = self._literal
        if not isinstance(literal, Decimal) or not _INT64.min < literal < _INT64.max:
            return None
        if literal == literal.to_integral_value():
            bound = int(literal)
        elif self._compare in (operator.eq, operator.ne):
            return np.full(len(values), _FALSE if self._compare is operator.eq else _TRUE, dtype=np.int64)
        else:
            # Between two whole numbers: v < 2.5 is v < 3, v <= 2.5 is v <= 2, v > 2.5 is v > 2, v >= 2.5 is v >= 3.
            bound = ceil(literal) if self._compare in (operator.lt, operator.ge) else floor(literal)
        met: NDArray[np.bool_] = self._compare(values, bound)
        return met.astype(np.int64)

    def _float_codes(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        literal = self._literal
        if not isinstance(literal, Decimal) or not isfinite(nearest := float(literal)):
            return None
        met: NDArray[np.bool_] = self._compare(values, nearest)
        met[values == nearest] = self._compare(named_by(nearest), literal)
        return met.astype(np.int64)


def combine(outcomes: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The outcome of all conditions for each record: 0 if one fails, else a reason if one cannot be told, else 1."""
    result = outcomes[0].copy()
    for outcome in outcomes[1:]:
        unknown = (result < 0) & (outcome != _FALSE)
        result = np.where(unknown | (result == _FALSE), result, outcome)
    return result


def _take(token: re.Pattern[str], text: str, position: int, expected: str) -> tuple[str, int]:
    found = token.match(text, position)
    if found is None:
        found_there = f"before {text[position : position + 20]!r}" if position < len(text) else "at its end"
        raise ConfigurationError(
            f"the filter {text!r} is wrong at character {position + 1}: {expected} was expected {found_there}",
            not_done="nothing was read",
            next_step="write it as: COLUMN >= 200000 and OTHER == 'text'",
        )
    return found.group(), _skip(text, found.end())


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
