"""The codec of submissions: every value reads back, and any bytes parse or raise one error.

Not here: transport, and what an aggregator makes of a message that parses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.batch import MAX_RECORDS, Batch, BatchReference, Manifest, SubmissionKey
from tallyveil.epsilon import HIGHEST, LOWEST, NanoEpsilon
from tallyveil.errors import PeerError
from tallyveil.wire.codec import (
    MAX_MESSAGE_BYTES,
    Acknowledged,
    Completed,
    Opened,
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tallyveil.wire.v1 import collection_pb2 as pb

ids = st.binary(min_size=16, max_size=16)
digests = st.binary(min_size=32, max_size=32)
numbers = st.integers(0, 2**32 - 1)
amounts = st.integers(0, MAX_RECORDS)
references = st.builds(BatchReference, ids, digests)
lists = st.lists(references, max_size=5).map(tuple)
keys = st.builds(
    SubmissionKey,
    digests.map(bytes.hex),
    numbers,
    st.integers(LOWEST, HIGHEST).map(NanoEpsilon),
    ids,
)
batches = st.builds(Batch, ids, ids, numbers, amounts, st.binary(max_size=300), digests)
requests: st.SearchStrategy[Request] = st.one_of(keys, batches, st.builds(Manifest, lists, amounts))
responses: st.SearchStrategy[Response] = st.one_of(
    st.builds(Opened, lists, st.booleans()),
    st.builds(Acknowledged, references),
    st.builds(Completed, numbers, st.integers(0, 2**64 - 1)),
)

KEY = SubmissionKey("ab" * 32, 1, NanoEpsilon(2_000_000_000), b"s" * 16)
BATCH = Batch(b"i" * 16, b"n" * 16, 0, 3, b"\x01\x02", b"d" * 32)


@given(requests)
def test_a_request_reads_back_from_its_bytes(request: Request) -> None:
    data = encode_request(request).SerializeToString()
    assert decode_request(pb.SubmitRequest.FromString(data)) == request


@given(responses)
def test_a_response_reads_back_from_its_bytes(response: Response) -> None:
    data = encode_response(response).SerializeToString()
    assert decode_response(pb.SubmitResponse.FromString(data)) == response


def reads(data: bytes, message: Any, decode: Callable[[Any], Any], encode: Callable[[Any], Any]) -> None:
    """The fuzz invariant in one sentence: garbage either parses to a value that reads back, or raises PeerError."""
    try:
        parsed = message.FromString(data)
    except DecodeError:
        return  # gRPC answers these itself
    try:
        value = decode(parsed)
    except PeerError as error:
        assert error.not_done
        return
    assert decode(encode(value)) == value


@given(st.binary(max_size=200))
@settings(max_examples=500)
def test_garbage_parses_or_raises_peer_error(data: bytes) -> None:
    reads(data, pb.SubmitRequest, decode_request, encode_request)
    reads(data, pb.SubmitResponse, decode_response, encode_response)


@given(requests, st.data())
@settings(max_examples=300)
def test_a_damaged_request_parses_or_raises_peer_error(request: Request, data: st.DataObject) -> None:
    reads(damaged(encode_request(request).SerializeToString(), data), pb.SubmitRequest, decode_request, encode_request)


@given(responses, st.data())
@settings(max_examples=300)
def test_a_damaged_response_parses_or_raises_peer_error(response: Response, data: st.DataObject) -> None:
    bent = damaged(encode_response(response).SerializeToString(), data)
    reads(bent, pb.SubmitResponse, decode_response, encode_response)


def damaged(message: bytes, data: st.DataObject) -> bytes:
    """A part of the message replaced by other bytes."""
    start = data.draw(st.integers(0, len(message)))
    end = data.draw(st.integers(start, min(len(message), start + 8)))
    return message[:start] + data.draw(st.binary(max_size=8)) + message[end:]


def request_with(**fields: Any) -> pb.SubmitRequest:
    """The good batch and opening with fields of one of them changed."""
    if "batch" in fields:
        message = encode_request(BATCH)
        for name, value in fields["batch"].items():
            setattr(message.batch, name, value)
    else:
        message = encode_request(KEY)
        for name, value in fields["open"].items():
            setattr(message.open, name, value)
    return message


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"open": {"survey_hash": b""}}, "survey_hash"),
        ({"open": {"survey_hash": b"x" * 31}}, "survey_hash"),
        ({"open": {"survey_hash": b"x" * 33}}, "survey_hash"),
        ({"open": {"epsilon_nano": 0}}, "epsilon_nano"),
        ({"open": {"epsilon_nano": LOWEST - 1}}, "epsilon_nano"),
        ({"open": {"epsilon_nano": HIGHEST + 1}}, "epsilon_nano"),
        ({"open": {"epsilon_nano": 2**64 - 1}}, "epsilon_nano"),
        ({"open": {"submission_id": b""}}, "submission_id"),
        ({"open": {"submission_id": b"x" * 17}}, "submission_id"),
        ({"batch": {"batch_id": b"x" * 15}}, "batch_id"),
        ({"batch": {"nonce": b""}}, "nonce"),
        ({"batch": {"records": MAX_RECORDS + 1}}, "records"),
        ({"batch": {"records": 2**64 - 1}}, "records"),
        ({"batch": {"digest": b"x" * 31}}, "digest"),
    ],
)
def test_a_field_that_cannot_be_is_named_and_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(PeerError, match=named):
        decode_request(request_with(**fields))


def test_references_that_cannot_be_are_refused_in_both_directions() -> None:
    for bad in (pb.BatchReference(), pb.BatchReference(batch_id=b"x" * 16), pb.BatchReference(digest=b"x" * 32)):
        with pytest.raises(PeerError):
            decode_request(pb.SubmitRequest(complete=pb.CompleteSubmission(batches=[bad])))
        for response in (
            pb.SubmitResponse(opened=pb.SubmissionOpened(held=[bad])),
            pb.SubmitResponse(acknowledged=pb.BatchAcknowledged(batch=bad)),
            pb.SubmitResponse(acknowledged=pb.BatchAcknowledged()),
        ):
            with pytest.raises(PeerError):
                decode_response(response)
    with pytest.raises(PeerError, match="records"):
        decode_request(pb.SubmitRequest(complete=pb.CompleteSubmission(records=MAX_RECORDS + 1)))


def test_an_empty_message_is_refused() -> None:
    with pytest.raises(PeerError):
        decode_request(pb.SubmitRequest())
    with pytest.raises(PeerError):
        decode_response(pb.SubmitResponse())


def test_the_largest_batch_stays_below_a_quarter_of_the_message_limit() -> None:
    payload = b"\xff" * 7 + b"\x0f"  # eight bytes a count is the most, and only one count of a batch can be so large
    largest = Batch(b"i" * 16, b"n" * 16, 2**32 - 1, MAX_RECORDS, payload * 65_536, b"d" * 32)
    assert encode_request(largest).ByteSize() < MAX_MESSAGE_BYTES / 4
    manifest = Manifest(tuple(BatchReference(b"i" * 16, b"d" * 32) for _ in range(4_096)), MAX_RECORDS)
    assert encode_request(manifest).ByteSize() < MAX_MESSAGE_BYTES / 4
