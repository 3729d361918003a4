"""From what is typed after `tallyveil survey new` and `plan` to a survey's parts.

Not here: the survey's own rules (`tallyveil.survey`), which refuse what makes no sense.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import inf

from tallyveil.domain import Categories, Domain, parse_domain
from tallyveil.epsilon import NanoEpsilon, to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.moments import parse_moment
from tallyveil.survey import SIGN_ANEW, Dimension, Round

GRACE = timedelta(days=90)
"""How long after its last round a survey expires, where nothing else is said."""

_DASHED = re.compile(r"([+-]?\d+)\s*(?:-|\N{EN DASH}|:|\.|\.\.\.|to)\s*([+-]?\d+)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NOT_MADE = "the survey was not made"
_NOT_PLANNED = "nothing was planned or made"


def parse_epsilons(texts: Sequence[str]) -> tuple[NanoEpsilon, ...]:
    """The permitted values, rising.

    Raises:
        ConfigurationError: One is not a number in [0.01, 16], or is given twice.
    """
    with making():
        values = sorted(to_nano(text) for text in texts)
    if len(set(values)) < len(values):
        raise ConfigurationError(
            "a permitted epsilon is given twice", not_done=_NOT_MADE, next_step="give each --epsilon once"
        )
    return tuple(values)


def require_readable(options: Mapping[str, str]) -> None:
    """Refuse words that this terminal's encoding could not read.

    Args:
        options: What was typed, by the option it followed.

    Raises:
        ConfigurationError: One holds bytes of another encoding.
    """
    for option, text in options.items():
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise ConfigurationError(
                f"{option} holds bytes that are none of the terminal's encoding, {sys.getfilesystemencoding()}",
                not_done=_NOT_MADE,
                next_step="use a UTF-8 terminal: set LC_ALL=C.UTF-8, or PYTHONUTF8=1, and run it again",
            )


@contextmanager
def making() -> Generator[None]:
    """Say of a rule that a new survey breaks what its maker can do: there is nothing signed yet."""
    try:
        yield
    except ConfigurationError as error:
        general = error.next_step in ("", SIGN_ANEW)
        step = "correct the option and run it again" if general else error.next_step
        raise ConfigurationError(error.what, not_done=_NOT_MADE, next_step=step) from None


def parse_values(text: str) -> Domain:
    """The domain, as `tallyveil.domain.parse_domain` reads it.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        return parse_domain(text)
    except ConfigurationError as error:
        meant = _DASHED.fullmatch(text.strip())
        step = f"write {meant[1]}..{meant[2]} for a range" if meant else error.next_step
        raise ConfigurationError(
            f"--domain: {error.what}",
            not_done=_NOT_MADE,
            next_step=step or "write for example 15..99, 0..100:5, a,b,c or [0,1000,5000]",
        ) from None


def parse_bins(text: str | None) -> tuple[int, ...]:
    """Bin counts to try, ``8,16``; none where nothing is said.

    Raises:
        ConfigurationError: Not whole numbers.
    """
    return () if text is None else _whole_numbers(text, "bins", "--bins 8,16")


def parse_departments(text: str) -> tuple[int, ...] | int:
    """How many departments, ``17``; or the records of each, ``9000,5000,2685``.

    Raises:
        ConfigurationError: Neither.
    """
    numbers = _whole_numbers(text, "departments", "--departments 17")
    return numbers[0] if len(numbers) == 1 else numbers


def parse_target(text: str) -> float:
    """A relative error as a fraction, from ``10%`` or ``0.1``.

    Raises:
        ConfigurationError: Neither; without a % sign it is below 1, since 10 might mean either.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = 0.0
    if rest or not 0 < value < (inf if percent else 1):
        raise ConfigurationError(
            "a target error is a percentage above 0, or a fraction between 0 and 1",
            not_done=_NOT_PLANNED,
            next_step="write for example --target-error 10%",
        )
    return value


def _whole_numbers(text: str, what: str, example: str) -> tuple[int, ...]:
    try:
        return tuple(int(item) for item in text.split(","))
    except ValueError:
        raise ConfigurationError(
            f"{what} are whole numbers with commas between them",
            not_done=_NOT_PLANNED,
            next_step=f"write for example {example}",
        ) from None


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
    try:
        return Dimension(name.strip(), Categories(tuple(value.strip() for value in values.split(","))))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"--dimension: {error.what}",
            not_done=_NOT_MADE,
            next_step="write for example --dimension sex=Female,Male",
        ) from None


def parse_time(text: str) -> datetime:
    """A moment in UTC, ``2026-12-01T08:00:00Z``, or a day, ``2026-12-01``, which means its first moment in UTC.

    Raises:
        ConfigurationError: Neither.
    """
    with making():
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
