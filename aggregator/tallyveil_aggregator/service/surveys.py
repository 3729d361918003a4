# pyright: standard
"""Handing on signed surveys: the file itself, which whoever receives it verifies.

Not here: the messages (`servicers`).
"""

from __future__ import annotations

from tallyveil.identity import Identity
from tallyveil.refusal import Refusal
from tallyveil.survey import Survey
from tallyveil.wire.codec import HASH_BYTES
from tallyveil_aggregator.known_surveys import KnownSurveys
from tallyveil_aggregator.service.access import check_reader
from tallyveil_aggregator.service.refusals import Refused
from tallyveil_aggregator.store import Store


class Surveys:
    """The surveys of a store, for its callers."""

    def __init__(self, store: Store, surveys: KnownSurveys) -> None:
        self._store = store
        self._surveys = surveys

    def list(self, caller: Identity | None) -> tuple[Survey, ...]:
        """Every survey known here, the last added first."""
        with self._store.reading() as transaction:
            check_reader(transaction, caller)
            return self._surveys.all(transaction)

    def get(self, caller: Identity | None, survey_hash: bytes) -> bytes:
        """The signed file of a survey.

        Raises:
            Refused: The hash has not 32 bytes, or no such survey is known here.
        """
        if len(survey_hash) != HASH_BYTES:
            raise Refused(Refusal.MALFORMED)
        with self._store.reading() as transaction:
            check_reader(transaction, caller)
            document = transaction.surveys.document(survey_hash.hex())
        if document is None:
            raise Refused(Refusal.UNKNOWN_SURVEY)
        return document
