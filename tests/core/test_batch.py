"""Batches: one histogram has one encoding, garbage is refused, and the digest binds every field.

Not here: protobuf (`test_codec`) and what an aggregator accepts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallyveil.batch import (
    MAX_OUTPUTS,
    MAX_RECORDS,
    Batch,
    BatchReference,
    SubmissionKey,
    decode_counts,
    encode_counts,
    expected_digest,
    make_batch,
)
from tallyveil.epsilon import NANO, NanoEpsilon
from tallyveil.errors import PeerError

VECTOR = Path(__file__).resolve().parents[1] / "vectors" / "core_batch.json"
KEY = SubmissionKey("ab" * 32, 1, NanoEpsilon(2 * NANO), bytes(range(16)))
COUNTS = np.array([0, 1, 127, 128, 16_383, 16_384, 5])
BATCH = make_batch(KEY, bytes(range(16, 32)), bytes(range(32, 48)), 3, int(COUNTS.sum()), encode_counts(COUNTS))


class BadPayload(TypedDict):
    """A payload that no histogram of `values` counts has."""

    why: str
    values: int
    payload: str


class Vector(TypedDict):
    """The batch that the constants above make, and payloads to refuse."""

    counts: list[int]
    payload: str
    digest: str
    bad_payloads: list[BadPayload]


def vector() -> Vector:
    return cast(Vector, json.loads(VECTOR.read_bytes()))


def test_the_encoding_and_the_digest_are_those_of_the_vector() -> None:
    stated = vector()
    assert COUNTS.tolist() == stated["counts"]
    assert BATCH.payload.hex() == stated["payload"]
    assert BATCH.digest.hex() == stated["digest"]


def test_the_vectors_bad_payloads_are_refused() -> None:
    for bad in vector()["bad_payloads"]:
        with pytest.raises(PeerError):
            decode_counts(bytes.fromhex(bad["payload"]), bad["values"])


@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**44)), max_size=200))
@example([MAX_RECORDS])
@example([0, MAX_RECORDS, 0])
@example([])
def test_counts_read_back_from_their_varints(counts: list[int]) -> None:
    payload = encode_counts(counts)
    assert decode_counts(payload, len(counts)).tolist() == counts
    assert encode_counts(np.array(counts, dtype=np.int64)) == payload
    assert len(payload) == sum(max(1, -(-count.bit_length() // 7)) for count in counts)


@given(st.binary(max_size=40), st.integers(0, 40))
@settings(max_examples=500)
@example(b"\x80\x00", 1)
@example(b"\x80", 1)
@example(b"\xff" * 8, 1)
@example(b"\xff" * 7 + b"\x0f", 1)
@example(b"\xff" * 7 + b"\x1f", 1)
@example(b"", 0)
def test_any_bytes_are_the_one_encoding_of_a_histogram_or_a_peer_error(payload: bytes, values: int) -> None:
    try:
        counts = decode_counts(payload, values)
    except PeerError:
        return
    assert counts.shape == (values,)
    assert counts.dtype == np.int64
    assert counts.min(initial=0) >= 0
    assert encode_counts(counts) == payload


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=30), st.integers(-2, 3))
def test_another_number_of_values_is_refused(counts: list[int], off: int) -> None:
    values = len(counts) + off
    if off:
        with pytest.raises(PeerError):
            decode_counts(encode_counts(counts), values)


def test_counts_whose_sum_would_wrap_round_are_refused() -> None:
    """2,049 counts below 2^53 may add up to a small number in 64 bits."""
    counts = [MAX_RECORDS] * 2_048 + [2_048 + 5]
    assert sum(counts) % 2**64 == 5
    for refused in (counts, [MAX_RECORDS, 1], [2**52, 2**52]):
        with pytest.raises(PeerError):
            decode_counts(encode_counts(refused), len(refused))


def test_a_histogram_of_more_values_than_a_domain_has_is_refused() -> None:
    assert decode_counts(bytes(MAX_OUTPUTS), MAX_OUTPUTS).size == MAX_OUTPUTS
    with pytest.raises(PeerError):
        decode_counts(bytes(MAX_OUTPUTS + 1), MAX_OUTPUTS + 1)


def test_a_count_below_zero_is_never_written() -> None:
    with pytest.raises(ValueError):
        encode_counts([1, -1])


def changed_batch(field: str, value: object) -> Batch:
    change: dict[str, Any] = {field: value}
    return replace(BATCH, **change)


def other_batches() -> Iterator[tuple[str, SubmissionKey, Batch]]:
    """The batch with one thing changed, a bit of it where it is bytes."""
    for field in ("batch_id", "nonce", "payload"):
        value: bytes = getattr(BATCH, field)
        for position in range(len(value)):
            for bit in range(8):
                changed = bytearray(value)
                changed[position] ^= 1 << bit
                yield field, KEY, changed_batch(field, bytes(changed))
    yield "payload longer", KEY, replace(BATCH, payload=BATCH.payload + b"\x00")
    yield "payload shorter", KEY, replace(BATCH, payload=BATCH.payload[:-1])
    for field, number in (("cell", 4), ("cell", 3 + 2**32), ("records", BATCH.records + 1), ("records", 2**53 - 1)):
        yield field, KEY, changed_batch(field, number)
    for position in range(64):
        digits = KEY.survey_hash[:position] + "0" + KEY.survey_hash[position + 1 :]
        yield "survey", replace(KEY, survey_hash=digits), BATCH
    yield "round", replace(KEY, round=2), BATCH
    yield "round and cell swapped", replace(KEY, round=BATCH.cell), replace(BATCH, cell=KEY.round)
    yield "epsilon", replace(KEY, epsilon=NanoEpsilon(KEY.epsilon + 1)), BATCH
    yield "submission", replace(KEY, submission_id=bytes(16)), BATCH


def test_the_digest_binds_every_field() -> None:
    assert expected_digest(KEY, BATCH) == BATCH.digest
    seen = {BATCH.digest}
    for what, key, batch in other_batches():
        digest = expected_digest(key, batch)
        assert digest not in seen, what
        seen.add(digest)


def test_a_batch_states_the_records_of_its_counts_and_its_reference() -> None:
    assert BATCH.records == int(COUNTS.sum())
    assert BATCH.reference == BatchReference(BATCH.batch_id, BATCH.digest)
    assert decode_counts(BATCH.payload, COUNTS.size).tolist() == COUNTS.tolist()


def test_a_secret_nonce_keeps_small_histograms_from_being_guessed() -> None:
    """The digest is stored and shown; without the nonce one could try every small histogram."""
    guess = make_batch(KEY, BATCH.batch_id, bytes(16), BATCH.cell, BATCH.records, BATCH.payload)
    assert guess.payload == BATCH.payload
    assert guess.digest != BATCH.digest


def test_small_counts_take_one_byte_a_value() -> None:
    assert len(encode_counts([16_685] + [3] * 84)) == 3 + 84
