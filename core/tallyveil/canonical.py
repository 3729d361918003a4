"""Canonical JSON: one byte string for one document, so that hashes and signatures mean something.

Not here: signatures (`tallyveil.signing`). Numbers are integers only; decimals travel as text, because
languages print floats differently. Keys are sorted, nothing is indented, text is UTF-8.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import cast

from tallyveil.errors import IntegrityError

Json = dict[str, object]

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 64
"""Far more than any document of ours nests, far less than an interpreter's stack holds."""

_LEAVES = frozenset({str, int, bool, type(None)})


def encode(document: object) -> bytes:
    """The canonical bytes of a document of dicts, lists, text, integers, booleans and null.

    Raises:
        TypeError: A float, or anything else JSON cannot hold exactly (a programming fault).
        ValueError: Nested more than `MAX_DEPTH` deep (likewise).
    """
    _check(document)
    return _dump(document).encode("utf-8")


def decode(data: bytes) -> object:
    """The document of canonical bytes; anything that would not re-encode to the same bytes is refused.

    Raises:
        IntegrityError: Not UTF-8, not JSON, or not in canonical form.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise IntegrityError(f"the document is longer than {MAX_DOCUMENT_BYTES} bytes")
    try:
        document: object = json.loads(data.decode("utf-8"), parse_float=_no_float, parse_constant=_no_float)
        _check(document)
        again = _dump(document).encode("utf-8")
    except (ValueError, RecursionError):
        raise IntegrityError(
            "the document is not canonical JSON",
            next_step="fetch it again; it may have been edited or cut off",
        ) from None
    if again != data:
        raise IntegrityError(
            "the document's bytes are not in canonical form",
            next_step="fetch it again; it was reformatted, or altered, after it was made",
        )
    return document


def digest(purpose: str, data: bytes) -> str:
    """SHA-256 over a purpose line and the data, in lower-case hexadecimal."""
    return sha256(f"tallyveil/{purpose}/1\n".encode() + data).hexdigest()


def _dump(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _no_float(text: str) -> object:
    raise ValueError("floats have no canonical form")


def _check(document: object) -> None:
    """By levels, not by recursion: a stranger's file must not fill the stack."""
    level = [document]
    for _ in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for value in level:
            if type(value) in _LEAVES:
                continue
            if isinstance(value, dict):
                members = cast(dict[object, object], value)
                if [key for key in members if not isinstance(key, str)]:
                    raise TypeError("keys of a canonical document are text")
                inner += members.values()
            elif isinstance(value, list | tuple):
                inner += cast(list[object], value)
            elif isinstance(value, float):
                raise TypeError("floats have no canonical form; write a decimal as text")
        if not inner:
            return
        level = inner
    raise ValueError("the document is nested too deeply")
