"""Reading a TOML file strictly: known keys only, of known types, each fault named with its table.

Not here: what the keys of one file mean (`config`, `policy`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from tallyveil.errors import ConfigurationError


class _Required:
    """Marks a key without a default."""


REQUIRED = _Required()
_UNCHANGED = "nothing was read, charged or sent"


class Table:
    """One table of a file: ask for every key it may hold, then call `finish`.

    Every method raises ConfigurationError, naming file, table and key, where the key is missing or ill-typed.
    """

    def __init__(self, name: str, values: Mapping[str, object], file: Path) -> None:
        self.name = name
        self._values = values
        self._file = file
        self._asked: set[str] = set()

    def text(self, key: str) -> str:
        """Text that is not blank."""
        value = self._get(key, REQUIRED)
        if not isinstance(value, str) or not value.strip():
            raise self.fault(key, "must be text that is not blank")
        return value

    def raw_text(self, key: str, default: str) -> str:
        """Any text, white space and nothing included."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.fault(key, "must be text")
        return value

    def choice(self, key: str, options: Collection[str], default: str | _Required = REQUIRED) -> str:
        """One of a few words."""
        value = self._get(key, default)
        if not isinstance(value, str) or value not in options:
            raise self.fault(key, f"must be one of {', '.join(map(repr, options))}")
        return value

    def integer(self, key: str, default: int | _Required = REQUIRED, *, low: int, high: int = 2**53) -> int:
        """A whole number from `low` to `high`."""
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.fault(key, f"must be a whole number from {low} to {high}")
        return value

    def number(self, key: str, default: Decimal | _Required = REQUIRED) -> Decimal:
        """A finite number, exactly as written."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
            raise self.fault(key, "must be a number")
        return Decimal(value)

    def texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of texts; blank ones are allowed."""
        items = self._list(key, [*default])
        texts = tuple(item for item in items if isinstance(item, str))
        if len(texts) != len(items):
            raise self.fault(key, "must be a list of texts")
        return texts

    def path(self, key: str) -> Path:
        """A file's path, relative to the folder of the file that names it."""
        return self._file.parent / Path(self.text(key)).expanduser()

    def optional_path(self, key: str) -> Path | None:
        """The same, or None where the key is absent."""
        return self.path(key) if self.has(key) else None

    def optional_text(self, key: str) -> str | None:
        """Text, or None where the key is absent."""
        return self.text(key) if self.has(key) else None

    def texts_by_name(self, key: str) -> dict[str, str]:
        """A table of texts under names of the operator's choice; empty where absent."""
        table = self.table(key, required=False)
        return {name: table.text(name) for name in table.names()}

    def table(self, key: str, *, required: bool = True) -> Table:
        """The table below this one; an empty one where absent and not required."""
        value = self._get(key, REQUIRED if required else {})
        if not isinstance(value, dict):
            raise self.fault(key, "must be a table")
        return Table(f"{self.name}.{key}" if self.name else key, cast("dict[str, object]", value), self._file)

    def tables(self, key: str) -> list[Table]:
        """The array of tables below this one; an empty list where absent."""
        tables: list[Table] = []
        for number, item in enumerate(self._list(key, []), 1):
            if not isinstance(item, dict):
                raise self.fault(key, "must be an array of tables, each headed by [[...]]")
            tables.append(Table(f"{key}[{number}]", cast("dict[str, object]", item), self._file))
        return tables

    def names(self) -> tuple[str, ...]:
        """The keys there are, for tables whose keys the operator chooses."""
        return tuple(self._values)

    def has(self, key: str) -> bool:
        """Whether the key is there; one that is not is known all the same."""
        self._asked.add(key)
        return key in self._values

    def finish(self) -> None:
        """Refuse every key nobody asked for."""
        for key in self._values:
            if key not in self._asked:
                close = get_close_matches(key, self._asked, 1)
                hint = f"did you mean '{close[0]}'?" if close else f"known keys: {', '.join(sorted(self._asked))}"
                raise self.fault(key, "is not a known key", hint)

    def fault(self, key: str, rule: str, next_step: str = "") -> ConfigurationError:
        """The error for one key; it never holds the key's value."""
        where = f"[{self.name}] key '{key}'" if self.name else f"'{key}'"
        return ConfigurationError(
            f"{self._file}: {where} {rule}",
            not_done=_UNCHANGED,
            next_step=next_step or "correct the file and run again",
        )

    def _list(self, key: str, default: list[object]) -> list[object]:
        value = self._get(key, default)
        if not isinstance(value, list):
            raise self.fault(key, "must be a list")
        return cast("list[object]", value)

    def _get(self, key: str, default: object) -> object:
        self._asked.add(key)
        if key in self._values:
            return self._values[key]
        if isinstance(default, _Required):
            raise self.fault(key, "is missing")
        return default


def read_toml(path: Path, what: str) -> Table:
    """The root table of a file; numbers with a point are read as exact decimals.

    Args:
        path: The file.
        what: What it is, for messages.

    Raises:
        ConfigurationError: It is missing, unreadable, not UTF-8, or not TOML.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        fault = f"the {what} {path} does not exist"
    except OSError as error:
        fault = f"the {what} {path} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        fault = f"the {what} {path} is not UTF-8 text"
    else:
        try:
            return Table("", tomllib.loads(text, parse_float=Decimal), path)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            fault = f"the {what} {path} is not TOML: {error}"
    raise ConfigurationError(
        fault, not_done=_UNCHANGED, next_step="tallyveil agent init DIR writes samples of both files"
    )
