"""The surveys of the store, each verified once against the survey authority, and how people name them.

Not here: whether a survey is used now (`tallyveil_aggregator.intake`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from tallyveil.cli.logs import Log
from tallyveil.errors import ConfigurationError, TallyveilError
from tallyveil.moments import moment_text
from tallyveil.signing import VerifyingKey
from tallyveil.survey import Survey, open_survey
from tallyveil_aggregator.store.store import Transaction
from tallyveil_aggregator.store.surveys import StoredSurvey

_PREFIX = re.compile(r"[0-9a-f]{6,64}")


class KnownSurveys:
    """Surveys by their hash; what was verified is kept, since no survey ever changes.

    Args:
        authority: The key that surveys must be signed with.
    """

    def __init__(self, authority: VerifyingKey) -> None:
        self._authority = authority
        self._verified: dict[str, Survey] = {}
        self._log = Log("aggregator.surveys")

    def get(self, transaction: Transaction, survey_hash: str) -> Survey | None:
        """The survey of that hash, or None where none is stored that the authority has signed."""
        if (known := self._verified.get(survey_hash)) is not None:
            return known
        document = transaction.surveys.document(survey_hash)
        if document is None:
            return None
        try:
            survey = open_survey(document, self._authority)
        except TallyveilError as error:
            self._log.error("stored survey does not verify", error, survey=survey_hash)
            return None
        if survey.hash != survey_hash:
            self._log.error("stored survey has another hash", survey=survey_hash)
            return None
        self._verified[survey_hash] = survey
        return survey

    def all(self, transaction: Transaction) -> tuple[Survey, ...]:
        """Every survey that verifies, the last added first."""
        found = (self.get(transaction, stored.hash) for stored in transaction.surveys.all())
        return tuple(survey for survey in found if survey is not None)

    def add(self, transaction: Transaction, document: bytes, now: datetime) -> tuple[Survey, bool]:
        """Store a signed survey; the second value is False where the same one is there already.

        Raises:
            IntegrityError: The authority's signature does not hold.
            ConfigurationError: It is not a survey, another one has its name and version, or nothing can be
                collected for it any more.
        """
        survey = open_survey(document, self._authority)
        for stored in transaction.surveys.all():
            if stored.hash == survey.hash:
                return survey, False
            if (stored.name, stored.version) == (survey.name, survey.version):
                raise ConfigurationError(
                    f"another survey is known here as {survey.name}@{survey.version}: {stored.hash[:12]}…",
                    not_done="the survey was not added",
                    next_step="give the changed survey a new version, sign it, and add that",
                )
        _check_usable(survey, now)
        transaction.surveys.add(survey, document, now)
        return survey, True

    def choose(self, transaction: Transaction, wanted: str) -> Survey:
        """The survey a person means.

        Args:
            transaction: Of the store.
            wanted: A name that has one version here, ``name@version``, or the first 6 or more digits of a hash.

        Raises:
            ConfigurationError: None or several are meant, or the one meant does not verify.
        """
        stored = transaction.surveys.all()
        named = [item for item in stored if wanted in (item.name, f"{item.name}@{item.version}")]
        if not named and _PREFIX.fullmatch(wanted):
            named = [item for item in stored if item.hash.startswith(wanted)]
        if len(named) != 1:
            raise _not_one(named, stored)
        survey = self.get(transaction, named[0].hash)
        if survey is None:
            raise ConfigurationError(
                "the stored survey does not verify with the configured authority key",
                not_done="nothing was changed",
                next_step="check [authority] public_key in the configuration",
            )
        return survey


def _check_usable(survey: Survey, now: datetime) -> None:
    """Refuse a survey that has expired, or whose rounds are all over: no department could answer it."""
    last = survey.rounds[-1].closes
    if now > survey.expires:
        fault = f"it expired at {moment_text(survey.expires)}"
    elif now >= last:
        fault = f"its last round closed at {moment_text(last)}"
    else:
        return
    raise ConfigurationError(
        f"nothing can be collected for {survey.name}@{survey.version} any more: {fault} and it is {moment_text(now)}",
        not_done="the survey was not added",
        next_step="have the authority sign a new version with rounds to come, or set this machine's clock",
    )


def _not_one(named: Iterable[StoredSurvey], stored: Iterable[StoredSurvey]) -> ConfigurationError:
    meant = ", ".join(f"{item.name}@{item.version} ({item.hash[:12]}…)" for item in named)
    there = ", ".join(f"{item.name}@{item.version}" for item in stored)
    return ConfigurationError(
        f"several surveys are meant: {meant}" if meant else "no survey of that name or hash is known here",
        not_done="nothing was changed",
        next_step="name one as name@version" if meant else f"known here: {there or 'none; add one first'}",
    )
