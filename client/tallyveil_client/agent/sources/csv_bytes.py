"""The bytes of a CSV file as UTF-8, whatever it was written in: decoded strictly, never with replacements.

Not here: rows and columns (`csv`).
"""

from __future__ import annotations

import codecs
from pathlib import Path

from tallyveil.errors import InputError
from tallyveil_client.agent.sources.csv_quotes import QuoteCheck
from tallyveil_client.agent.sources.source import UNSENT

_CHUNK_BYTES = 1 << 20
_SAMPLE_BYTES = 4096
_UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class DecodedFile:
    """A file opened for reading as UTF-8, with what pyarrow needs of a file.

    Args:
        name: The source's, for messages.
        path: An existing file.
        encoding: One of `tallyveil_client.agent.config.ENCODINGS`; ``"auto"`` reads a file without a mark once before,
            strictly as UTF-8 and, if it is not that, as GB18030.

    Raises:
        InputError: On opening: it is none of these. On reading: a byte that its encoding does not allow, by its
            position, or quotation marks that do not fit.
    """

    def __init__(self, name: str, path: Path, encoding: str) -> None:
        self._name = name
        self._file = path.open("rb", buffering=0)
        self._bytes = path.stat().st_size
        self._pushed_back = b""
        self._quotes: QuoteCheck | None = None
        try:
            codec, skipped = self._choose(encoding)
        except BaseException:
            self._file.close()
            raise
        self._file.seek(skipped)
        self._decoder = _Decoder(codec, skipped)

    @property
    def fraction_read(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return self._decoder.position / self._bytes if self._bytes else 1.0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()

    def check_quotes(self, quotes: QuoteCheck) -> None:
        """From here on, check quotation marks."""
        self._quotes = quotes

    def push_back(self, data: bytes) -> None:
        """Let the next `read` return this data, which an earlier one returned."""
        self._pushed_back = data

    def has_more(self) -> bool:
        """Whether anything is left to read."""
        self._pushed_back = self._pushed_back or self._decoded(_CHUNK_BYTES)
        return bool(self._pushed_back)

    def read(self, size: int = -1) -> bytes:
        """About `size` bytes of UTF-8; none where the file has ended."""
        data, self._pushed_back = self._pushed_back, b""
        data = data or self._decoded(size if size > 0 else _CHUNK_BYTES)
        if self._quotes is not None:
            self._quotes.feed(data)
            if not data:
                self._quotes.finish()
        return data

    def _decoded(self, size: int) -> bytes:
        while True:
            chunk = self._file.read(size)
            data = self._decoder.feed(chunk)
            if isinstance(data, int):
                raise self._fault(f"byte {data + 1} of the file is not {self._decoder.codec}")
            if data or not chunk:
                return data

    def _choose(self, encoding: str) -> tuple[str, int]:
        """The codec and the length of the byte order mark."""
        head = self._file.read(_SAMPLE_BYTES)
        if head.startswith(_UTF32_MARKS):
            raise self._fault("the file is UTF-32, which is not read here")
        marked = next(((codec, len(mark)) for mark, codec in _MARKS.items() if head.startswith(mark)), None)
        if encoding != "auto":
            agrees = marked is not None and marked[0].startswith(encoding)
            return marked if marked and agrees else ({"utf-16": "utf-16-le"}.get(encoding, encoding), 0)
        if marked:
            return marked
        if head.count(0) * 5 > len(head):
            raise self._fault("the file looks like UTF-16 without a byte order mark")
        if (not_utf8 := self._first_fault("utf-8")) is None:
            return "utf-8", 0
        if (not_gb18030 := self._first_fault("gb18030")) is None:
            return "gb18030", 0
        raise self._fault(
            f"the file is neither UTF-8 (byte {not_utf8 + 1} is not) nor GB18030 (byte {not_gb18030 + 1} is not)"
        )

    def _first_fault(self, codec: str) -> int | None:
        decoder = _Decoder(codec, 0)
        self._file.seek(0)
        while True:
            chunk = self._file.read(_CHUNK_BYTES)
            data = decoder.feed(chunk)
            if isinstance(data, int):
                return data
            if not chunk:
                return None

    def _fault(self, what: str) -> InputError:
        return InputError(
            f"source '{self._name}': {what}",
            not_done=UNSENT,
            next_step="say its encoding in the source's configuration, or write the file anew as UTF-8",
        )


class _Decoder:
    """Decodes a file piece by piece; an empty piece ends it."""

    def __init__(self, codec: str, position: int) -> None:
        self.codec = codec
        self.position = position
        self._decoder = codecs.getincrementaldecoder(codec)("strict")
        self._holds_ascii = not codec.startswith("utf-16")

    def feed(self, chunk: bytes) -> bytes | int:
        """The piece as UTF-8, or the position in the file of the first byte that cannot be decoded."""
        pending = self._decoder.getstate()[0]
        if self._holds_ascii and not pending and chunk.isascii():
            self.position += len(chunk)
            return chunk
        try:
            data = self._decoder.decode(chunk, final=not chunk).encode("utf-8")
        except UnicodeDecodeError as error:
            return self.position - len(pending) + error.start
        except UnicodeEncodeError:
            return self.position
        self.position += len(chunk)
        return data
