"""The domain of an attribute: the ordered, finite list of values it may take.

Not here: how a department's raw cells are read (the agent's `encode`) and how values are grouped
(`tallyveil.binning`). A domain is part of a survey and never derived from data.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Protocol, cast

from tallyveil.errors import ConfigurationError
from tallyveil.fields import Fields

MAX_VALUES = 65_536
"""Largest domain: one histogram of it always fits one wire message."""

MAX_LABEL_LENGTH = 200
_EDGE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
MAX_INTEGER = 2**63 - 1


class Domain(Protocol):
    """What every kind of domain answers."""

    @property
    def kind(self) -> str:
        """``"integers"``, ``"categories"`` or ``"intervals"``: what raw cells must look like."""
        ...

    @property
    def size(self) -> int:
        """K, the number of values; indices are 0..K-1."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The K values as text, in order."""
        ...

    def index(self, value: int | str | Decimal) -> int | None:
        """The index of a value, or None where the domain does not hold it."""
        ...

    def to_json(self) -> dict[str, object]:
        """The domain as canonical-JSON material; `domain_from_json` reads it back."""
        ...


@dataclass(frozen=True)
class Integers:
    """``low``, ``low + step``, … up to ``high``, both ends included."""

    low: int
    high: int
    step: int = 1

    @property
    def kind(self) -> str:
        return "integers"

    def __post_init__(self) -> None:
        _require(abs(self.low) <= MAX_INTEGER and abs(self.high) <= MAX_INTEGER, "integers of a domain fit 64 bits")
        _require(self.step >= 1, "the step of an integer domain is at least 1")
        _require(self.low < self.high, "an integer domain needs a low end below its high end")
        _require(
            (self.high - self.low) % self.step == 0,
            "the high end of an integer domain is reached by its step",
        )
        _check_size(self.size)

    @property
    def size(self) -> int:
        return (self.high - self.low) // self.step + 1

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(str(value) for value in range(self.low, self.high + 1, self.step))

    def index(self, value: int | str | Decimal) -> int | None:
        if not isinstance(value, int) or not self.low <= value <= self.high:
            return None
        index, off_grid = divmod(value - self.low, self.step)
        return None if off_grid else index

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "low": self.low, "high": self.high, "step": self.step}


@dataclass(frozen=True)
class Categories:
    """A list of distinct texts; codes keep their leading zeros."""

    values: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "categories"

    def __post_init__(self) -> None:
        _check_size(len(self.values))
        _require(len(set(self.values)) == len(self.values), "the categories of a domain are distinct")
        for value in self.values:
            _require(value == value.strip() and value != "", "a category is not empty and has no outer spaces")
            _require(len(value) <= MAX_LABEL_LENGTH, f"a category has at most {MAX_LABEL_LENGTH} characters")
            _require(value.isprintable(), "a category holds printable characters only")

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.values

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {value: index for index, value in enumerate(self.values)}

    def index(self, value: int | str | Decimal) -> int | None:
        return self._indices.get(value) if isinstance(value, str) else None

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "values": list(self.values)}


@dataclass(frozen=True)
class Intervals:
    """Half-open numeric intervals [edge, next edge); edges are decimal texts, so that no float is involved."""

    edges: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "intervals"

    def __post_init__(self) -> None:
        _check_size(self.size)
        written = all(_EDGE.fullmatch(edge) for edge in self.edges)
        _require(written, "the edges of an interval domain are finite decimal numbers")
        numbers = self._numbers
        _require(
            all(a < b for a, b in pairwise(numbers)),
            "the edges of an interval domain rise strictly",
        )
        _require(all(len(edge) <= 40 for edge in self.edges), "an edge has at most 40 characters")

    @cached_property
    def _numbers(self) -> tuple[Decimal, ...]:
        return tuple(Decimal(edge) for edge in self.edges)

    @property
    def size(self) -> int:
        return len(self.edges) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"[{low}, {high})" for low, high in pairwise(self.edges))

    def index(self, value: int | str | Decimal) -> int | None:
        if isinstance(value, str) or (isinstance(value, Decimal) and value.is_nan()):
            return None
        if not self._numbers[0] <= value < self._numbers[-1]:
            return None
        return bisect_right(self._numbers, value) - 1

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "edges": list(self.edges)}


def domain_from_json(material: object) -> Domain:
    """Read back what `to_json` made.

    Raises:
        ConfigurationError: Unknown kind, missing or unknown key, or a value no domain allows.
    """
    kind = _kind_of(material)
    if kind == "integers":
        fields = Fields(material, "the domain", ("kind", "low", "high", "step"))
        return Integers(fields.integer("low"), fields.integer("high"), fields.integer("step"))
    if kind == "categories":
        return Categories(Fields(material, "the domain", ("kind", "values")).texts("values"))
    if kind == "intervals":
        return Intervals(Fields(material, "the domain", ("kind", "edges")).texts("edges"))
    raise ConfigurationError("a domain's kind is 'integers', 'categories' or 'intervals'")


def _kind_of(material: object) -> object:
    """The value under ``kind``, or None where there is none."""
    return cast(dict[str, object], material).get("kind") if isinstance(material, dict) else None


def parse_domain(text: str) -> Domain:
    """Read a domain as typed on a command line.

    ``15..99`` or ``0..100:5`` (with a step) are integers; ``a,b,c`` are categories;
    ``[0,1000,5000]`` are the edges of half-open intervals.

    Raises:
        ConfigurationError: None of these.
    """
    body = text.strip()
    if body.startswith("[") and body.endswith("]"):
        return Intervals(tuple(edge.strip() for edge in body[1:-1].split(",")))
    low, dots, rest = body.partition("..")
    if dots:
        high, colon, step = rest.partition(":")
        try:
            return Integers(int(low), int(high), int(step) if colon else 1)
        except ValueError:
            raise ConfigurationError(
                "a range domain is written LOW..HIGH or LOW..HIGH:STEP with whole numbers",
                next_step="write for example 15..99",
            ) from None
    return Categories(tuple(value.strip() for value in body.split(",")))


def _check_size(size: int) -> None:
    _require(
        2 <= size <= MAX_VALUES,
        f"a domain has from 2 to {MAX_VALUES} values; this one would have {max(size, 0)}",
    )


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ConfigurationError(rule)
