"""Reading a JSON object whose keys and types are known: one place for "missing, unknown or ill-typed".

Not here: what a value means. Messages name keys, never values.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from tallyveil.errors import ConfigurationError


class Fields:
    """A JSON object that holds exactly `keys`.

    Args:
        material: What should be an object with text keys.
        where: How messages call it, such as ``"the survey"``.
        keys: All of its keys.

    Raises:
        ConfigurationError: Not an object, or a key is missing or unknown.
    """

    def __init__(self, material: object, where: str, keys: Collection[str]) -> None:
        self._where = where
        if not isinstance(material, dict):
            raise ConfigurationError(f"{where} is not an object with keys")
        self._values = cast(dict[str, object], material)
        if wrong := self._values.keys() ^ set(keys):
            named = ", ".join(sorted(key[:40] for key in wrong))
            raise ConfigurationError(f"{where} has missing or unknown keys: {named}")

    def text(self, key: str) -> str:
        """A text. Like the others, raises ConfigurationError where the value is of another type."""
        value = self._values[key]
        if not isinstance(value, str):
            raise self._ill_typed(key, "text")
        return value

    def integer(self, key: str) -> int:
        """A whole number; a boolean is none."""
        value = self._values[key]
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._ill_typed(key, "a whole number")
        return value

    def value(self, key: str) -> object:
        """The value as it is."""
        return self._values[key]

    def items(self, key: str) -> list[object]:
        """A list of anything."""
        value = self._values[key]
        if not isinstance(value, list):
            raise self._ill_typed(key, "a list")
        return cast(list[object], value)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        items = self.items(key)
        if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            raise self._ill_typed(key, "a list of whole numbers")
        return tuple(cast(list[int], items))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        items = self.items(key)
        if not all(isinstance(item, str) for item in items):
            raise self._ill_typed(key, "a list of texts")
        return tuple(cast(list[str], items))

    def _ill_typed(self, key: str, expected: str) -> ConfigurationError:
        return ConfigurationError(f"key '{key}' of {self._where} is not {expected}")
