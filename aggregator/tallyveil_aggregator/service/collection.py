# pyright: standard
"""One department's upload, step by step: state from the store, a decision, what follows from it stored, an answer.

Not here: the decisions (`tallyveil_aggregator.intake`) and the stream (`servicers`). Every step is one transaction;
its answer leaves only after the commit, so what is acknowledged is on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tallyveil.batch import Batch, Manifest, SubmissionKey
from tallyveil.choice import choice_holds
from tallyveil.cli.logs import Log
from tallyveil.errors import PeerError
from tallyveil.identity import Identity
from tallyveil.refusal import Refusal
from tallyveil.survey import Survey
from tallyveil.wire.codec import (
    Acknowledged,
    Completed,
    Opened,
    Request,
    Response,
    decode_request,
    encode_response,
    signature_of,
)
from tallyveil.wire.v1 import collection_pb2 as pb
from tallyveil_aggregator.intake import (
    TAMPERING,
    AcknowledgeAgain,
    Begin,
    RoundState,
    admit,
    complete_submission,
    open_submission,
    take_batch,
)
from tallyveil_aggregator.known_surveys import KnownSurveys
from tallyveil_aggregator.service.refusals import Refused
from tallyveil_aggregator.store import Store, Transaction
from tallyveil_aggregator.store.submissions import StoredSubmission

Clock = Callable[[], datetime]


class Collection:
    """Where uploads begin.

    Args:
        store: Holds everything.
        surveys: The surveys of the store.
        clock: The present moment, aware; read inside each transaction, so that decisions are in its order.
    """

    def __init__(self, store: Store, surveys: KnownSurveys, clock: Clock) -> None:
        self._store = store
        self._surveys = surveys
        self._clock = clock
        self._log = Log("aggregator.collection")

    def begin(self, caller: Identity | None, certificate: bytes) -> Upload:
        """The upload of one stream.

        Args:
            caller: Whom the certificate names.
            certificate: The caller's, in PEM.

        Raises:
            Refused: The caller is no department, or not one that may submit.
        """
        refusal: Refusal | None = Refusal.NOT_A_DEPARTMENT
        if caller is not None:
            with self._store.reading() as transaction:
                refusal = admit(caller.role, transaction.departments.state(caller.name))
        if caller is None or refusal is not None:
            code = refusal or Refusal.NOT_A_DEPARTMENT
            self._log.info("submission refused", caller=None if caller is None else caller.to_uri(), code=code.value)
            raise Refused(code)
        return Upload(caller, certificate, self._store, self._surveys, self._clock, self._log)


class Upload:
    """The steps of one stream: open, then batches, then complete."""

    def __init__(
        self, caller: Identity, certificate: bytes, store: Store, surveys: KnownSurveys, clock: Clock, log: Log
    ) -> None:
        self._caller = caller
        self._certificate = certificate
        self._store = store
        self._surveys = surveys
        self._clock = clock
        self._log = log
        self._key: SubmissionKey | None = None

    @property
    def department(self) -> str:
        """Whose upload it is."""
        return self._caller.name

    def answer(self, message: pb.SubmitRequest) -> pb.SubmitResponse:
        """Answer one message.

        Raises:
            Refused: The step is refused; nothing of it was stored.
            StoreUnavailable: The store cannot be used; nothing of it was stored.
        """
        try:
            return encode_response(self._step(decode_request(message), signature_of(message)))
        except PeerError:
            raise self._refused(Refusal.MALFORMED) from None
        except Refused as error:
            raise self._refused(error.refusal) from None

    def _step(self, request: Request, signature: bytes) -> Response:
        if isinstance(request, SubmissionKey):
            if self._key is not None:
                raise Refused(Refusal.MALFORMED)
            if not choice_holds(self._certificate, request, signature):
                raise Refused(Refusal.UNSIGNED_CHOICE)
            return self._open(request, signature)
        if self._key is None:
            raise Refused(Refusal.MALFORMED)
        return self._take(self._key, request) if isinstance(request, Batch) else self._complete(self._key, request)

    def _open(self, key: SubmissionKey, signature: bytes) -> Opened:
        self._key = key
        with self._store.writing() as transaction:
            self._admit(transaction)
            survey = self._surveys.get(transaction, key.survey_hash)
            state = None if survey is None else transaction.rounds.state(survey, key.round)
            stored = transaction.submissions.find(self.department, key.survey_hash, key.round)
            decision = open_submission(key, survey, state, stored.held if stored else None, self._clock())
            if isinstance(decision, Refusal):
                raise Refused(decision)
            if stored is None or isinstance(decision, Begin):
                transaction.submissions.add(self.department, key, self._clock(), signature, self._certificate)
                opened = Opened((), complete=False)
            else:
                opened = Opened(transaction.batches.references(stored.number), decision.complete)
        self._log.info("submission opened", **self._fields(), held=len(opened.held), complete=opened.complete)
        return opened

    def _take(self, key: SubmissionKey, batch: Batch) -> Acknowledged:
        with self._store.writing() as transaction:
            survey, state, stored = self._opened(transaction, key)
            holdings = transaction.batches.holdings(stored.number, batch)
            decision = take_batch(batch, survey, state, stored.held, holdings, self._clock())
            if isinstance(decision, Refusal):
                raise Refused(decision)
            if not isinstance(decision, AcknowledgeAgain):
                transaction.batches.add(stored.number, batch, decision.counts)
        return Acknowledged(batch.reference)

    def _complete(self, key: SubmissionKey, manifest: Manifest) -> Completed:
        with self._store.writing() as transaction:
            survey, state, stored = self._opened(transaction, key)
            batches, records = transaction.batches.references(stored.number), transaction.batches.records(stored.number)
            now = self._clock()
            decision = complete_submission(manifest, survey, state, stored.held, batches, records, now)
            if isinstance(decision, Refusal):
                raise Refused(decision)
            if not decision.again:
                transaction.submissions.mark_complete(stored.number, now)
        self._log.info("submission completed", **self._fields(), batches=decision.batches, again=decision.again)
        return Completed(decision.batches, decision.records)

    def _opened(self, transaction: Transaction, key: SubmissionKey) -> tuple[Survey, RoundState, StoredSubmission]:
        """What was found when the submission was opened, as it is now."""
        self._admit(transaction)
        survey = self._surveys.get(transaction, key.survey_hash)
        if survey is None:
            raise Refused(Refusal.UNKNOWN_SURVEY)
        state = transaction.rounds.state(survey, key.round)
        stored = transaction.submissions.find(self.department, key.survey_hash, key.round)
        if state is None or stored is None:
            raise Refused(Refusal.MALFORMED)
        if stored.held.key != key:
            raise Refused(Refusal.SECOND_SUBMISSION)
        return survey, state, stored

    def _admit(self, transaction: Transaction) -> None:
        refusal = admit(self._caller.role, transaction.departments.state(self.department))
        if refusal is not None:
            raise Refused(refusal)

    def _refused(self, refusal: Refusal) -> Refused:
        write = self._log.warning if refusal in TAMPERING else self._log.info
        write("submission refused", **self._fields(), code=refusal.value)
        return Refused(refusal)

    def _fields(self) -> dict[str, str | int | None]:
        key = self._key
        return {
            "department": self.department,
            "survey": key.survey_hash if key else None,
            "round": key.round if key else None,
        }
