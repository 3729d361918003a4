"""From what is typed after `tallyveil survey new` to a survey.

Not here: the survey's own rules (`tallyveil.survey`), which refuse what makes no sense.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from tallyveil.domain import Categories
from tallyveil.epsilon import NanoEpsilon, to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.moments import parse_moment
from tallyveil.survey import Dimension, Round

GRACE = timedelta(days=90)
"""How long after its last round a survey expires, where nothing else is said."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NOT_MADE = "the survey was not made"


def parse_epsilons(texts: Sequence[str]) -> tuple[NanoEpsilon, ...]:
    """The permitted values, rising.

    Raises:
        ConfigurationError: One is not a number in [0.01, 16], or is given twice.
    """
    values = sorted(to_nano(text) for text in texts)
    if len(set(values)) < len(values):
        raise ConfigurationError(
            "a permitted epsilon is given twice", not_done=_NOT_MADE, next_step="give each --epsilon once"
        )
    return tuple(values)


def parse_dimension(text: str) -> Dimension:
    """A dimension as ``NAME=VALUE,VALUE,…``.

    Raises:
        ConfigurationError: Not of that form.
    """
    name, equals, values = text.partition("=")
    if not equals:
        raise ConfigurationError(
            "a dimension is written NAME=VALUE,VALUE",
            not_done=_NOT_MADE,
            next_step="write for example --dimension sex=Female,Male",
        )
    return Dimension(name.strip(), Categories(tuple(value.strip() for value in values.split(","))))


def parse_time(text: str) -> datetime:
    """A moment in UTC, ``2026-12-01T08:00:00Z``, or a day, ``2026-12-01``, which means its first moment in UTC.

    Raises:
        ConfigurationError: Neither.
    """
    return parse_moment(f"{text}T00:00:00Z" if _DAY.fullmatch(text) else text)


def parse_rounds(opens: Sequence[str], closes: Sequence[str]) -> tuple[Round, ...]:
    """One round for each pair of moments, in the order given.

    Raises:
        ConfigurationError: They do not pair up, or one is no moment.
    """
    if len(opens) != len(closes):
        raise ConfigurationError(
            f"{len(opens)} rounds open and {len(closes)} close",
            not_done=_NOT_MADE,
            next_step="give one --closes for each --opens, in the same order",
        )
    pairs = zip(opens, closes, strict=True)
    return tuple(Round(number, parse_time(a), parse_time(b)) for number, (a, b) in enumerate(pairs, start=1))


def expiry(text: str | None, rounds: Sequence[Round]) -> datetime:
    """When the survey expires: as said, else `GRACE` after its last round closes.

    Raises:
        ConfigurationError: No moment, or one beyond the calendar's end.
    """
    if text is not None:
        return parse_time(text)
    try:
        return max(item.closes for item in rounds) + GRACE
    except OverflowError:
        raise ConfigurationError(
            "the last round closes too near the calendar's end",
            not_done=_NOT_MADE,
            next_step="let it close earlier, or say --expires",
        ) from None
