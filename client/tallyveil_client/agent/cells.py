"""Reading one cell: the index of a domain's value, or the reason why it is not one.

Not here: Arrow columns (`columns`) and whole records (`encode`). A reader gives the same answer for the same value
whatever the source and its type, never guesses, never clips, and never raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from math import ceil
from re import compile as pattern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.domain import Categories, Domain, Integers, Intervals
from tallyveil.errors import ConfigurationError
from tallyveil_client.agent.cell_text import UNREADABLE, NumberFormat, as_decimal, clean, named_by


class Reason(Enum):
    """Why a record is not used; the value is what people read."""

    MISSING = "missing"
    NOT_A_NUMBER = "not-a-number"
    NOT_WHOLE = "not-whole"
    OUT_OF_DOMAIN = "out-of-domain"
    OFF_GRID = "off-grid"
    NOT_IN_CODEBOOK = "not-in-codebook"
    TOP_CODED = "top-coded"
    UNREADABLE = "unreadable"
    DIMENSION_MISSING = "dimension-missing"
    DIMENSION_NOT_IN_CODEBOOK = "dimension-not-in-codebook"
    FILTER_MISSING = "filter-missing"
    FILTER_UNREADABLE = "filter-unreadable"


_REASONS = tuple(Reason)
_CODES = {reason: -1 - number for number, reason in enumerate(_REASONS)}

_TOP_CODED = pattern(
    r"(?i)[<>≤≥⩽⩾] ?=? ?\d+.{0,8}"
    r"|\d+ ?\+.{0,3}|\d+['’]?s"
    r"|\d+.{0,3}及?以[上下]|[未不][满滿] ?\d+.{0,3}"
    r"|\d+ .{0,12}\b(?:and|or) (?:over|above|older|more|under|below|younger|less)"
    r"|(?:under|over|above|below|less than|more than) \d+.{0,12}"
    r"|\d+ (?:i més|y más|e mais|et plus|und mehr|ou plus)"
)
_SMALL = 2**61
_EXACT = 2**53
_MAX_WHOLE_DIGITS = 19


def code_of(reason: Reason) -> int:
    """The negative number that stands for a reason among value indices."""
    return _CODES[reason]


def reason_of(code: int) -> Reason:
    """The reason a negative number stands for."""
    return _REASONS[-1 - code]


@dataclass(frozen=True)
class CellRules:
    """What an operator declares about the cells of one column.

    Args:
        missing: Texts that stand for a missing value; an empty cell always does.
        recode: Cell text -> the text to read in its place.
        numbers: How numbers are written.
    """

    missing: tuple[str, ...] = ()
    recode: Mapping[str, str] = field(default_factory=dict[str, str])
    numbers: NumberFormat = field(default_factory=NumberFormat)


class CellReader(ABC):
    """Reads one column's cells into codes: an index from 0, or the negative code of a `Reason`."""

    numeric: bool
    """Whether cells are read as numbers, so that ``43``, ``43.0`` and ``+43`` are one value."""

    def __init__(self, rules: CellRules) -> None:
        self._numbers = rules.numbers
        self._special: dict[str | Decimal, int] = {"": _CODES[Reason.MISSING]}
        recoded = {cell: self._read_value(target) for cell, target in rules.recode.items()}
        missing = dict.fromkeys(rules.missing, _CODES[Reason.MISSING])
        for text, code in [*recoded.items(), *missing.items()]:
            for key in self._keys(text):
                if self._special.get(key, code) != code:
                    raise ConfigurationError(f"the cell text {text!r} is both recoded and missing, or recoded twice")
                self._special[key] = code

    def read(self, text: str | None) -> int:
        """The code of a cell's text; None is a cell without a value."""
        if text is None:
            return _CODES[Reason.MISSING]
        if UNREADABLE in text:
            return _CODES[Reason.UNREADABLE]
        for key in self._keys(text):
            if (code := self._special.get(key)) is not None:
                return code
        return self._read_value(text)

    def read_integers(self, values: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The codes of whole numbers, all at once; None where a reader has no such way."""
        codes = self._integer_codes(values) if self.numeric else None
        if codes is not None:
            for key, code in self._special.items():
                if isinstance(key, Decimal) and key == key.to_integral_value() and abs(key) < 2**63:
                    codes[values == int(key)] = code
        return codes

    def read_floats(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """The codes of finite floats, all at once, each taken as the shortest decimal that names it; None as above.

        Shortest decimals rise with their floats. So a float above the one nearest to a decimal is above the decimal
        too, and only for that nearest one itself must the decimals be compared.
        """
        codes = self._float_codes(values) if self.numeric else None
        if codes is not None:
            for key, code in self._special.items():
                if isinstance(key, Decimal) and named_by(nearest := float(key)) == key:
                    codes[values == nearest] = code
        return codes

    def _keys(self, text: str) -> list[str | Decimal]:
        number = self._numbers.read(text) if self.numeric else None
        return [clean(text)] if number is None else [clean(text), as_decimal(number)]

    @abstractmethod
    def _read_value(self, text: str) -> int:
        """The code of text that is neither missing nor recoded."""

    def _integer_codes(self, values: NDArray[np.int64]) -> NDArray[np.int64] | None:
        return None

    def _float_codes(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        return None

    def _number_or_reason(self, text: str) -> tuple[str, str] | int:
        number = self._numbers.read(text)
        if number is not None:
            return number
        top_coded = _TOP_CODED.fullmatch(clean(text)) is not None
        return _CODES[Reason.TOP_CODED if top_coded else Reason.NOT_A_NUMBER]


class IntegerReader(CellReader):
    """Cells of an integer domain."""

    numeric = True

    def __init__(self, domain: Integers, rules: CellRules) -> None:
        self._domain = domain
        super().__init__(rules)

    def _read_value(self, text: str) -> int:
        number = self._number_or_reason(text)
        if isinstance(number, int):
            return number
        whole, fraction = number
        if fraction:
            return _CODES[Reason.NOT_WHOLE]
        domain = self._domain
        if len(whole.lstrip("-")) > _MAX_WHOLE_DIGITS or not domain.low <= (value := int(whole)) <= domain.high:
            return _CODES[Reason.OUT_OF_DOMAIN]
        index, off_grid = divmod(value - domain.low, domain.step)
        return _CODES[Reason.OFF_GRID] if off_grid else index

    def _integer_codes(self, values: NDArray[np.int64]) -> NDArray[np.int64] | None:
        low, high, step = self._domain.low, self._domain.high, self._domain.step
        if max(-low, high, step) > _SMALL:
            return None
        codes = np.clip(values, low - 1, high + 1)
        codes -= low
        outside = (codes < 0) | (codes > high - low)
        if step > 1:
            codes, rest = np.divmod(codes, step)
            codes[rest != 0] = _CODES[Reason.OFF_GRID]
        codes[outside] = _CODES[Reason.OUT_OF_DOMAIN]
        return codes

    def _float_codes(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        if max(-self._domain.low, self._domain.high) >= _EXACT:
            return None
        codes = self._integer_codes(np.clip(values, -_EXACT, _EXACT).astype(np.int64))
        if codes is not None:
            codes[np.floor(values) != values] = _CODES[Reason.NOT_WHOLE]
        return codes


class IntervalReader(CellReader):
    """Cells of an interval domain: exact decimals, never floats."""

    numeric = True

    def __init__(self, domain: Intervals, rules: CellRules) -> None:
        self._edges = [Decimal(edge) for edge in domain.edges]
        super().__init__(rules)

    def _read_value(self, text: str) -> int:
        number = self._number_or_reason(text)
        if isinstance(number, int):
            return number
        index = bisect_right(self._edges, as_decimal(number)) - 1
        return index if 0 <= index < len(self._edges) - 1 else _CODES[Reason.OUT_OF_DOMAIN]

    def _integer_codes(self, values: NDArray[np.int64]) -> NDArray[np.int64] | None:
        if max(abs(edge) for edge in self._edges) > _SMALL:
            return None
        return self._search(np.array([ceil(edge) for edge in self._edges], dtype=np.int64), values)

    def _float_codes(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        if max(abs(edge) for edge in self._edges) > _SMALL:
            return None
        nearest = [(float(edge), edge) for edge in self._edges]
        return self._search(
            np.array([near if named_by(near) >= edge else np.nextafter(near, np.inf) for near, edge in nearest]), values
        )

    def _search(self, edges: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
        codes = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
        codes[(codes < 0) | (codes >= len(edges) - 1)] = _CODES[Reason.OUT_OF_DOMAIN]
        return codes


class CategoryReader(CellReader):
    """Cells of a category domain: the exact text after cleaning; codes keep their leading zeros."""

    numeric = False

    def __init__(self, domain: Categories, rules: CellRules) -> None:
        self._index = {clean(label): index for index, label in enumerate(domain.values)}
        if len(self._index) != domain.size:
            raise ConfigurationError(
                "two categories of the survey are the same once written in Unicode's NFKC form",
                next_step="ask the survey authority for categories that differ",
            )
        super().__init__(rules)

    def _read_value(self, text: str) -> int:
        return self._index.get(clean(text), _CODES[Reason.NOT_IN_CODEBOOK])


def domain_reader(domain: Domain, rules: CellRules) -> CellReader:
    """The reader for a survey's domain.

    Raises:
        ConfigurationError: A rule makes no sense for it, or it is of a kind this version does not know.
    """
    match domain:
        case Integers():
            return IntegerReader(domain, rules)
        case Intervals():
            return IntervalReader(domain, rules)
        case Categories():
            return CategoryReader(domain, rules)
        case _:
            raise ConfigurationError(f"this version cannot read cells for a domain of kind '{domain.kind}'")
