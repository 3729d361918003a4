"""Which approved survey and which round is meant, by what was typed and by the agent's clock.

Not here: where approvals are kept (`store`). No IO; the moment is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, PolicyError, RefusedError, UnavailableError
from tallyveil.moments import moment_text
from tallyveil.survey import Round, Survey

_HASH_PREFIX = re.compile(r"[0-9a-f]{6,64}")
_UNCHARGED = "nothing was read, charged or sent"


@dataclass(frozen=True)
class Approved:
    """A survey whose signature holds and to which the operator has consented.

    Args:
        survey: It.
        epsilon: The value chosen for this department.
        at: The moment of the consent.
    """

    survey: Survey
    epsilon: NanoEpsilon
    at: str

    @property
    def label(self) -> str:
        """``name@version``."""
        return label_of(self.survey)


def label_of(survey: Survey) -> str:
    """``name@version``: what commands and messages call a survey."""
    return f"{survey.name}@{survey.version}"


def select_survey(approved: Sequence[Approved], wanted: str | None) -> Approved:
    """The one approved survey that is meant.

    Args:
        approved: All of them.
        wanted: A name, ``name@version`` or the first digits of a hash, at least six; None where there is only one.

    Raises:
        PolicyError: None is approved, or not this one.
        ConfigurationError: It could be several.
    """
    if not approved:
        raise PolicyError(
            "no survey is approved here",
            not_done=_UNCHARGED,
            next_step="look at one and approve it: tallyveil agent approve FILE",
        )
    found = [item for item in approved if wanted is None or _is(item, wanted)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{item.label} ({item.survey.hash[:12]})" for item in found or approved)
    if not found:
        raise PolicyError(
            "this survey is not approved here",
            not_done=_UNCHARGED,
            next_step=f"approve it first: tallyveil agent approve FILE; approved are {known}",
        )
    raise ConfigurationError(
        "several approved surveys could be meant", not_done=_UNCHARGED, next_step=f"name one of {known}"
    )


def round_to_run(survey: Survey, now: datetime, number: int | None, stored: Collection[int]) -> Round:
    """The round that a run is about.

    Args:
        survey: Of the round.
        now: By the agent's clock.
        number: As typed; None for the one that is open, else one that was stored, else the next.
        stored: Numbers of the rounds that were charged and stored.

    Raises:
        ConfigurationError: The survey has no round of that number.
    """
    if number is not None:
        return _numbered(survey, number)
    for item in survey.rounds:
        if item.opens <= now < item.closes:
            return item
    if stored:
        return _numbered(survey, max(stored))
    return next((item for item in survey.rounds if now < item.opens), survey.rounds[-1])


def require_open(survey: Survey, item: Round, now: datetime) -> None:
    """Stop, uncharged, where the aggregator would refuse the round by the clock.

    Raises:
        UnavailableError: It is not open yet.
        RefusedError: It is closed, or the survey has expired.
    """
    if now > survey.expires:
        raise RefusedError(
            f"{label_of(survey)} expired on {moment_text(survey.expires)}",
            not_done="nothing was read, charged or sent",
            next_step="ask the survey authority for a newer version",
        )
    if now < item.opens:
        raise UnavailableError(
            f"round {item.number} of {label_of(survey)} opens on {moment_text(item.opens)}; it is {moment_text(now)}",
            not_done=_UNCHARGED,
            next_step="run again then; tallyveil agent check can be used before",
        )
    if now >= item.closes:
        raise RefusedError(
            f"round {item.number} of {label_of(survey)} closed on {moment_text(item.closes)}; it is {moment_text(now)}",
            not_done=_UNCHARGED,
            next_step="check this machine's clock; otherwise take part in the next round",
        )


def _numbered(survey: Survey, number: int) -> Round:
    item = survey.round(number)
    if item is None:
        raise ConfigurationError(
            f"{label_of(survey)} has no round {number}; its rounds are 1 to {len(survey.rounds)}",
            not_done=_UNCHARGED,
            next_step="correct --round",
        )
    return item


def _is(item: Approved, wanted: str) -> bool:
    by_hash = _HASH_PREFIX.fullmatch(wanted) is not None and item.survey.hash.startswith(wanted)
    return by_hash or wanted in (item.survey.name, item.label)
