# pyright: standard
"""Refusals on the wire."""

from __future__ import annotations

from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped, unused-ignore]

from tallyveil.refusal import Refusal
from tallyveil_aggregator.service.refusals import CODES, status_of


def test_every_reason_has_a_status_code_and_retryable_ones_never_that_of_a_final_one() -> None:
    assert CODES.keys() == set(Refusal)
    retryable = {CODES[reason] for reason in Refusal if reason.retryable}
    final = {CODES[reason] for reason in Refusal if not reason.retryable}
    assert not retryable & final


def test_a_status_carries_the_reason_for_programs_and_its_sentence_for_people() -> None:
    for reason in Refusal:
        status, info = status_of(reason), ErrorInfo()
        assert status.message == reason.sentence
        assert status.code == CODES[reason].value[0]
        assert status.details[0].Unpack(info)
        assert (info.reason, info.domain) == (reason.value, "tallyveil")
