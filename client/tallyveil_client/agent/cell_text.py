"""The text of one cell: cleaned, and read as a plain number where it is one.

Not here: what a survey's domain makes of it (`cells`). A number is written with ASCII or full-width digits and at
most a sign and a fraction; no exponent, no thousands mark unless one is declared, no digits of other scripts and
none that only look like digits (4³ is not 43).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from tallyveil.errors import ConfigurationError

UNREADABLE = "\0"
"""What a source puts in place of a cell it cannot make text of; NUL has no place in any value."""

_INVISIBLE = "".join(
    [
        "\N{SOFT HYPHEN}\N{MONGOLIAN VOWEL SEPARATOR}\N{ZERO WIDTH NO-BREAK SPACE}",
        *map(chr, [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A)]),
    ]
)
_WHITESPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_OUTER = _WHITESPACE + _INVISIBLE
_DIGIT = re.compile("[0-9]")
_SAME_DIGIT = ("<wide>", "<font>")


def clean(text: str) -> str:
    """The text in Unicode's NFKC form without white space, zero-width or direction marks at its ends."""
    return text.strip() if text.isascii() else unicodedata.normalize("NFKC", text).strip(_OUTER)


def trim(text: str) -> str:
    """The text without white space, zero-width or direction marks at its ends, otherwise as it is."""
    return text.strip(_OUTER)


def number_text(value: int | float | Decimal | np.floating) -> str:
    """A typed number as the shortest plain text that names it: 43, 43.0 and Decimal("43.00") are all ``43``."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        text = format(value, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = np.format_float_positional(value, unique=True, trim="-")
    return {"-0": "0", "nan": "NaN"}.get(text, text)


def named_by(value: float) -> Decimal:
    """The shortest decimal that names a float: 0.1 is one tenth, not the binary fraction nearest to it."""
    return Decimal(repr(value))


@dataclass(frozen=True)
class NumberFormat:
    """How a source writes numbers as text.

    Args:
        decimal_mark: ``.`` or ``,``.
        thousands_mark: Between groups of three digits; empty where there is none.
    """

    decimal_mark: str = "."
    thousands_mark: str = ""

    def __post_init__(self) -> None:
        if self.decimal_mark not in (".", ",") or self.thousands_mark not in ("", ".", ",", "'", " "):
            raise ConfigurationError("a decimal mark is '.' or ','; a thousands mark is '.', ',', \"'\" or a space")
        if self.decimal_mark == self.thousands_mark:
            raise ConfigurationError("the decimal mark and the thousands mark are the same")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        mark = re.escape(self.thousands_mark)
        whole = rf"[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+" if mark else "[0-9]+"
        return re.compile(rf"([+-]?)({whole})(?:{re.escape(self.decimal_mark)}([0-9]+))?")

    def read(self, raw: str) -> tuple[str, str] | None:
        """The number a cell's raw text writes, as (sign and whole digits, fraction digits); None if it writes none.

        Leading zeros of the whole part and trailing zeros of the fraction are gone, so that equal numbers are
        equal pairs.
        """
        found = self._pattern.fullmatch(clean(raw))
        if found is None or not (raw.isascii() or _digits_are_plain(raw)):
            return None
        sign, whole, fraction = found.groups()
        if self.thousands_mark:
            whole = whole.replace(self.thousands_mark, "")
        whole = whole.lstrip("0") or "0"
        fraction = (fraction or "").rstrip("0")
        minus = "-" if sign == "-" and (whole != "0" or fraction) else ""
        return minus + whole, fraction


def as_decimal(number: tuple[str, str]) -> Decimal:
    """The exact value of what `NumberFormat.read` returned."""
    whole, fraction = number
    return Decimal(f"{whole}.{fraction}" if fraction else whole)


def _digits_are_plain(raw: str) -> bool:
    """Whether no character but an ASCII or a full-width digit turns into digits under NFKC."""
    return all(
        char.isascii()
        or not _DIGIT.search(unicodedata.normalize("NFKC", char))
        or unicodedata.decomposition(char).startswith(_SAME_DIGIT)
        for char in raw
    )
