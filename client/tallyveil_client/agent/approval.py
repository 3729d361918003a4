"""Whether a survey may be approved here: signature, hash, expiry, epsilon, policy and earlier tables.

Not here: fetching it, showing it and recording the consent (`commands`). The moment is an argument.
"""

from __future__ import annotations

import re
from datetime import datetime

from tallyveil.epsilon import NanoEpsilon, epsilon_text, to_nano
from tallyveil.errors import ConfigurationError, PeerError, PolicyError
from tallyveil.moments import moment_text
from tallyveil.signing import VerifyingKey
from tallyveil.survey import Survey, open_survey
from tallyveil_client.agent.department import Department
from tallyveil_client.agent.overlap import require_nested
from tallyveil_client.agent.policy import Collection, check_survey
from tallyveil_client.agent.selection import label_of

_HASH_DIGITS = 64
_SOME_DIGITS = re.compile(r"[0-9a-fA-F]{6,}")
_UNAPPROVED = "nothing was approved"


def hash_in(text: str) -> str | None:
    """The hash that a command's argument is, or None: the name of a file.

    Raises:
        ConfigurationError: The first digits of a hash, or too many; fetching a survey needs all of them.
    """
    if _SOME_DIGITS.fullmatch(text) is None:
        return None
    if len(text) == _HASH_DIGITS:
        return text.lower()
    raise ConfigurationError(
        f"there is no file {text}, and a survey's hash has {_HASH_DIGITS} digits: this has {len(text)}",
        not_done=_UNAPPROVED,
        next_step="give the survey's file or its whole hash; tallyveil survey show FILE shows it",
    )


def verified(document: bytes, authority: VerifyingKey, expected_hash: str | None) -> Survey:
    """The survey of a signed file.

    Raises:
        IntegrityError: It was altered after signing, or another key signed it.
        ConfigurationError: Signed, yet not a survey this version can honour.
        PeerError: It is not the survey that was asked for.
    """
    survey = open_survey(document, authority)
    if expected_hash is not None and survey.hash != expected_hash:
        raise PeerError(
            "the aggregator served another survey than the one asked for",
            not_done=_UNAPPROVED,
            next_step="ask the survey authority for the file, and tell the aggregator's operator",
        )
    return survey


def chosen_epsilon(survey: Survey, text: str | None) -> NanoEpsilon:
    """The department's choice among the values the survey permits.

    Args:
        survey: It.
        text: As typed; None for the only one.

    Raises:
        ConfigurationError: Not a number from 0.01 to 16, not permitted, or to be chosen among several.
    """
    permitted = " or ".join(map(epsilon_text, survey.epsilons))
    if text is None:
        if len(survey.epsilons) == 1:
            return survey.epsilons[0]
        what = "permits several values of epsilon"
    else:
        chosen = to_nano(text)
        if chosen in survey.epsilons:
            return chosen
        what = "does not permit this epsilon"
    raise ConfigurationError(
        f"{label_of(survey)} {what}", not_done=_UNAPPROVED, next_step=f"choose {permitted} with --epsilon"
    )


def require_approvable(
    department: Department, survey: Survey, epsilon: NanoEpsilon, source: str | None, now: datetime
) -> Collection:
    """The policy's limits that the survey keeps.

    Raises:
        PolicyError: The policy forbids it, or an earlier table does; or it has expired.
        ConfigurationError: The configuration lacks the source.
    """
    if now > survey.expires:
        raise PolicyError(
            f"{label_of(survey)} expired on {moment_text(survey.expires)}",
            not_done=_UNAPPROVED,
            next_step="ask the survey authority for a newer version",
        )
    return require_allowed(department, survey, epsilon, source)


def require_allowed(department: Department, survey: Survey, epsilon: NanoEpsilon, source: str | None) -> Collection:
    """What holds at approval and again at every run: the policy may have changed, and more may have been shown."""
    check_survey(department.policy, survey, epsilon, source)
    limits = department.limits(survey, source)
    require_nested(department.shown(survey, limits), department.shown_before(), limits.allow_overlap)
    return limits
