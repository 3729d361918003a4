"""Whether the quotation marks of a CSV file fit: one that does not swallows the records after it in silence.

Not here: parsing. A field may be quoted from its first character to its last, with quotation marks inside written
twice; a quotation mark inside a field that is not quoted is a character like any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import InputError
from tallyveil_client.agent.sources.source import UNSENT

_QUOTE = ord('"')
_NEXT_STEP = "correct the quotation marks around there; inside a quoted field each is written twice"


class QuoteCheck:
    """Follows the quotation marks of a text given piece by piece.

    Args:
        name: The source's, for messages.
        delimiter: Between fields.
        lines: Lines before the first piece.
    """

    def __init__(self, name: str, delimiter: str, lines: int) -> None:
        self._name = name
        self._line = lines + 1
        self._ends = np.zeros(256, dtype=np.bool_)
        self._ends[[ord(delimiter), ord("\n"), ord("\r")]] = True
        self._inside = False
        self._opened_line = 0
        self._held = b""
        self._previous = ord("\n")
        self._previous_closes = False

    def feed(self, piece: bytes) -> None:
        """Check the next piece.

        Raises:
            InputError: A quoted field goes on after its closing quotation mark; says the line.
        """
        data = self._held + piece
        # What follows a quotation mark decides what it means, so the last byte waits for the next piece.
        self._held = b'"' if data.endswith(b'"') else b""
        if body := data[: len(data) - len(self._held)]:
            self._check(body, _QUOTE)

    def finish(self) -> None:
        """Check that no quoted field is open at the end.

        Raises:
            InputError: One is; says the line where it opens.
        """
        if self._held:
            self._check(self._held, ord("\n"))
        if self._inside:
            raise self._fault(f"the quotation mark that opens a field on line {self._opened_line} is never closed")

    def _check(self, body: bytes, after: int) -> None:
        """Check what is known to be followed by the byte `after`, where it ends with a quotation mark."""
        if b'"' in body:
            data = np.frombuffer(body, dtype=np.uint8)
            places = np.flatnonzero(data == _QUOTE)
            before = np.where(places > 0, data[places - 1], self._previous)
            following = np.where(places + 1 < len(data), data[np.minimum(places + 1, len(data) - 1)], after)
            if self._alternate(places, before, following):
                self._inside ^= bool(len(places) % 2)
                opened = int(places[-1]) if self._inside else None
                closes = int(places[-1])
            else:
                opened, closes = self._one_by_one(body, places, before, following)
            if self._inside and opened is not None:
                self._opened_line = self._line + _lines(body[:opened])
            self._previous_closes = closes == len(body) - 1 and not self._inside
        else:
            self._previous_closes = False
        self._line += _lines(body)
        self._previous = body[-1]

    def _alternate(self, places: NDArray[np.intp], before: NDArray[np.integer], following: NDArray[np.integer]) -> bool:
        """Whether the marks open and close fields in turn; one written twice closes and opens again."""
        opens = (np.arange(len(places)) + self._inside) % 2 == 0
        if opens[0] and places[0] == 0 and before[0] == _QUOTE and not self._previous_closes:
            return False
        beside = np.where(opens, before, following)
        return bool((self._ends[beside] | (beside == _QUOTE)).all())

    def _one_by_one(
        self,
        body: bytes,
        places: NDArray[np.intp],
        before: NDArray[np.integer],
        following: NDArray[np.integer],
    ) -> tuple[int | None, int]:
        """Where the field still open at the end was opened, and the last mark that closes one."""
        opened = None
        closes = -1 if self._previous_closes else -2
        for place, left, right in zip(places.tolist(), before.tolist(), following.tolist(), strict=True):
            if self._inside:
                if not (self._ends[right] or right == _QUOTE):
                    line = self._line + _lines(body[:place])
                    raise self._fault(f"on line {line} a quoted field goes on after its closing quotation mark")
                self._inside, closes = False, place
            elif self._ends[left] or closes == place - 1:
                self._inside, opened = True, place
        return opened, closes

    def _fault(self, what: str) -> InputError:
        return InputError(f"source '{self._name}': {what}", not_done=UNSENT, next_step=_NEXT_STEP)


def _lines(data: bytes) -> int:
    return data.count(b"\n") or data.count(b"\r")
