"""Where randomness comes from: a keystream for privacy coins, and separate bytes for what is published.

Not here: any decision taken with it (`tallyveil.mechanisms`). This is the only module that asks the operating
system for entropy. There is no seed: tests hand in their own source of words.
"""

from __future__ import annotations

import os
import secrets
import weakref
from typing import Any, Literal, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

WordBits = Literal[32, 64]
Words = NDArray[np.unsignedinteger[Any]]

_ZEROS = memoryview(bytes(1024 * 1024))
"""What the cipher turns into its keystream; longer requests are cut into pieces."""


class Randomness(Protocol):
    """A source of uniform, independent words."""

    def words(self, count: int, bits: WordBits) -> Words:
        """`count` fresh uniform unsigned integers of `bits` bits, shape (count,), uint32 or uint64."""
        ...


class Keystream:
    """AES-256-CTR under a key drawn from the operating system; a forked child draws a key of its own.

    Not safe for use by several threads at once: give each its own.

    Privacy: every coin of every mechanism is a function of these words; they are never stored.
    Source: NIST SP 800-38A (CTR). One key yields at most 2^64 blocks here, far below CTR's birthday bound
        for the stream lengths in use (a table of 10^9 records needs 2^28 blocks).
    """

    def __init__(self) -> None:
        self._cipher: CipherContext | None = None
        _streams.add(self)

    def forget(self) -> None:
        """Draw a new key before the next word."""
        self._cipher = None

    def words(self, count: int, bits: WordBits) -> Words:
        nbytes, cipher = count * bits // 8, self._current()
        if nbytes <= len(_ZEROS):
            stream = cipher.update(_ZEROS[:nbytes])
        else:
            starts = range(0, nbytes, len(_ZEROS))
            stream = b"".join(cipher.update(_ZEROS[: min(len(_ZEROS), nbytes - start)]) for start in starts)
        return np.frombuffer(stream, dtype=f"u{bits // 8}")

    def _current(self) -> CipherContext:
        if self._cipher is None:
            self._cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
        return self._cipher

    def __reduce__(self) -> str | tuple[type[Keystream], tuple[()]]:
        """A pickled copy starts a stream of its own, so that two processes never share coins."""
        return (Keystream, ())


_streams: weakref.WeakSet[Keystream] = weakref.WeakSet()


def _forget_all() -> None:
    for stream in _streams:
        stream.forget()


os.register_at_fork(after_in_child=_forget_all)  # not by process id, which a child in another namespace may share


def public_token(nbytes: int = 16) -> bytes:
    """Bytes for identifiers and nonces, straight from the operating system: never from the coins' stream."""
    return secrets.token_bytes(nbytes)


def jitter() -> float:
    """A number in [0, 1) to spread retries; not a privacy coin."""
    return secrets.randbelow(2**53) / 2**53
