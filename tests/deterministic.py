"""Deterministic sources of words for tests: the only place where coins can be repeated.

Not here: any law. A `Named` source yields the keystream that belongs to its label; a `Scripted` one yields the words
that the test wrote down, and fails where the code asks for another number of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_256

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tallyveil.randomness import WordBits, Words


class Named:
    """AES-256-CTR under a key and counter derived from a label by SHAKE-256.

    Args:
        label: What the stream is for; one label, one stream.
    """

    def __init__(self, label: str) -> None:
        material = shake_256(b"tallyveil/tests/1\n" + label.encode()).digest(48)
        self._cipher = Cipher(algorithms.AES(material[:32]), modes.CTR(material[32:])).encryptor()

    def words(self, count: int, bits: WordBits) -> Words:
        stream = self._cipher.update(bytes(count * bits // 8))
        return np.frombuffer(stream, dtype=f"<u{bits // 8}").astype(f"u{bits // 8}", copy=False)


class Scripted:
    """The answers to come, in order; each call takes exactly one of them.

    Args:
        answers: The words of each call.
    """

    def __init__(self, *answers: Sequence[int]) -> None:
        self._answers = list(answers)

    @property
    def exhausted(self) -> bool:
        """Whether every answer was asked for."""
        return not self._answers

    def words(self, count: int, bits: WordBits) -> Words:
        answer = self._answers.pop(0)
        if len(answer) != count:
            raise AssertionError(f"{count} words were asked for; the script has {len(answer)} here")
        return np.array(answer, dtype=f"u{bits // 8}")
