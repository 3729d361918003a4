"""The only converter between values and protobuf messages of a submission.

Not here: transport, and the meaning of a message (the agent's session, the aggregator's intake). What comes in is
checked for form only: lengths, ranges, presence. Anything else is a `PeerError`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.batch import (
    DIGEST_BYTES,
    ID_BYTES,
    MAX_RECORDS,
    NONCE_BYTES,
    Batch,
    BatchReference,
    Manifest,
    SubmissionKey,
)
from tallyveil.choice import MAX_SIGNATURE_BYTES
from tallyveil.epsilon import HIGHEST, LOWEST, NanoEpsilon
from tallyveil.errors import PeerError
from tallyveil.wire.v1 import collection_pb2 as pb

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""Set explicitly on both sides; every message we make stays below a quarter of it."""

HASH_BYTES = 32


@dataclass(frozen=True)
class Opened:
    """The aggregator's answer to an opening: what it holds of this submission already."""

    held: tuple[BatchReference, ...]
    complete: bool


@dataclass(frozen=True)
class Acknowledged:
    """A batch is durably held."""

    batch: BatchReference


@dataclass(frozen=True)
class Completed:
    """The submission is complete and durably held."""

    batches: int
    records: int


Request = SubmissionKey | Batch | Manifest
Response = Opened | Acknowledged | Completed


def encode_request(request: Request, signature: bytes = b"") -> pb.SubmitRequest:
    """The message of an agent's step.

    Args:
        request: The step.
        signature: Of an opening: the department's choice of epsilon, signed (`tallyveil.choice`).
    """
    match request:
        case SubmissionKey():
            opening = pb.OpenSubmission(
                survey_hash=bytes.fromhex(request.survey_hash),
                round=request.round,
                epsilon_nano=request.epsilon,
                submission_id=request.submission_id,
                choice_signature=signature,
            )
            return pb.SubmitRequest(open=opening)
        case Batch():
            batch = pb.Batch(
                batch_id=request.batch_id,
                nonce=request.nonce,
                cell=request.cell,
                records=request.records,
                histogram=request.payload,
                digest=request.digest,
            )
            return pb.SubmitRequest(batch=batch)
        case Manifest():
            complete = pb.CompleteSubmission(batches=map(_reference_out, request.batches), records=request.records)
            return pb.SubmitRequest(complete=complete)


def decode_request(message: pb.SubmitRequest) -> Request:
    """An agent's step. Raises PeerError where the message has not the agreed form."""
    match message.WhichOneof("message"):
        case "open":
            opening = message.open
            epsilon = opening.epsilon_nano
            _require(LOWEST <= epsilon <= HIGHEST, "epsilon_nano")
            return SubmissionKey(
                _bytes(opening.survey_hash, HASH_BYTES, "survey_hash").hex(),
                opening.round,
                NanoEpsilon(epsilon),
                _bytes(opening.submission_id, ID_BYTES, "submission_id"),
            )
        case "batch":
            batch = message.batch
            _require(batch.records <= MAX_RECORDS, "records")
            return Batch(
                _bytes(batch.batch_id, ID_BYTES, "batch_id"),
                _bytes(batch.nonce, NONCE_BYTES, "nonce"),
                batch.cell,
                batch.records,
                batch.histogram,
                _bytes(batch.digest, DIGEST_BYTES, "digest"),
            )
        case "complete":
            complete = message.complete
            _require(complete.records <= MAX_RECORDS, "records")
            return Manifest(tuple(map(_reference_in, complete.batches)), complete.records)
        case _:
            raise _malformed("message")


def signature_of(message: pb.SubmitRequest) -> bytes:
    """The signature in an opening; empty in any other step. Raises PeerError where it is longer than any can be."""
    signature = message.open.choice_signature
    _require(len(signature) <= MAX_SIGNATURE_BYTES, "choice_signature")
    return signature


def encode_response(response: Response) -> pb.SubmitResponse:
    """The message of the aggregator's answer."""
    match response:
        case Opened():
            held = map(_reference_out, response.held)
            return pb.SubmitResponse(opened=pb.SubmissionOpened(held=held, complete=response.complete))
        case Acknowledged():
            return pb.SubmitResponse(acknowledged=pb.BatchAcknowledged(batch=_reference_out(response.batch)))
        case Completed():
            completed = pb.SubmissionCompleted(batches=response.batches, records=response.records)
            return pb.SubmitResponse(completed=completed)


def decode_response(message: pb.SubmitResponse) -> Response:
    """The aggregator's answer. Raises PeerError where the message has not the agreed form."""
    match message.WhichOneof("message"):
        case "opened":
            return Opened(tuple(map(_reference_in, message.opened.held)), message.opened.complete)
        case "acknowledged":
            return Acknowledged(_reference_in(message.acknowledged.batch))
        case "completed":
            return Completed(message.completed.batches, message.completed.records)
        case _:
            raise _malformed("message")


def _reference_out(reference: BatchReference) -> pb.BatchReference:
    return pb.BatchReference(batch_id=reference.batch_id, digest=reference.digest)


def _reference_in(message: pb.BatchReference) -> BatchReference:
    return BatchReference(
        _bytes(message.batch_id, ID_BYTES, "batch_id"), _bytes(message.digest, DIGEST_BYTES, "digest")
    )


def _bytes(value: bytes, length: int, field: str) -> bytes:
    _require(len(value) == length, field)
    return value


def _require(condition: bool, field: str) -> None:
    if not condition:
        raise _malformed(field)


def _malformed(field: str) -> PeerError:
    return PeerError(
        f"a message of the submission has an unusable field: {field}",
        not_done="the message was not acted on",
        next_step="check that both sides run compatible versions",
    )
