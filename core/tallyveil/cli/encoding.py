"""Standard output and error in a terminal that cannot show every character: the nearest one in place of an error.

Not here: what is shown (`tallyveil.cli.console`) and bytes that are files (`tallyveil.cli.files`). JSON loses nothing:
its own escapes stand for what the encoding lacks.
"""

from __future__ import annotations

import codecs
import io
import json
import sys
import unicodedata

NEAREST = "tallyveil-nearest"
ESCAPES = "tallyveil-json"

# One character for one wherever tables and bars hold it, so that columns stay where they are.
_SPELT = {
    "±": "+-", "×": "x", "–": "-", "—": "-", "−": "-", "…": "...", "≥": ">=", "≤": "<=", "→": "->", "·": "*",
    "‘": "'", "’": "'", "“": '"', "”": '"', "•": "*", "✓": "+", "ε": "epsilon", "δ": "delta", "∞": "inf",
    "█": "#", "▒": "=", "●": "o", "│": "|", "└": "+", "─": "-", "━": "-", "╸": "-", "╺": "-",
}  # fmt: skip


def prepare_output(*, as_json: bool) -> None:
    """Let no character that a command prints end it.

    Args:
        as_json: Whether standard output holds JSON, whose escapes are exact, or lines for people.
    """
    codecs.register_error(NEAREST, _nearest)
    codecs.register_error(ESCAPES, _escaped)
    for stream, errors in ((sys.stdout, ESCAPES if as_json else NEAREST), (sys.stderr, NEAREST)):
        if isinstance(stream, io.TextIOWrapper):  # another kind stands in for it, and takes text as it is
            stream.reconfigure(errors=errors)


def shows_all(stream: object) -> bool:
    """Whether every character can be written to a stream; one that names no encoding takes text as it is."""
    encoding = getattr(stream, "encoding", None)
    return not isinstance(encoding, str) or codecs.lookup(encoding).name.startswith("utf")


def _nearest(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plainest, error.object[error.start : error.end])), error.end


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _plainest(character: str) -> str:
    if character in _SPELT:
        return _SPELT[character]
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"
