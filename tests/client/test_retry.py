"""When to try again, and after how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyveil.errors import (
    ConfigurationError,
    IntegrityError,
    InternalError,
    PeerError,
    RefusedError,
    TallyveilError,
    UnavailableError,
)
from tallyveil.refusal import Refusal
from tallyveil_client.agent.retry import Attempts, Backoff, is_retryable, refusal_of
from tallyveil_client.transport import Refused, RefusedForNow

LOST = UnavailableError("gone")


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_uniform_below_a_bound_that_doubles_up_to_the_cap(failures: int, random: float) -> None:
    backoff = Backoff(base_s=0.5, cap_s=30)
    bound = min(30.0, 0.5 * 2.0 ** min(failures - 1, 60))
    assert backoff.delay_s(failures, random) == bound * random
    assert backoff.delay_s(failures, 0) == 0


def test_attempts_end_and_are_counted_for_people() -> None:
    attempts = Attempts(Backoff(attempts=3))
    waits = [attempts.after(LOST, 0.5, answered=False) for _ in range(3)]
    assert [wait.attempt if wait else None for wait in waits] == [2, 3, None]
    assert [wait.seconds if wait else None for wait in waits] == [0.5, 1.0, None]


def test_an_attempt_that_got_further_counts_as_the_first_again() -> None:
    attempts = Attempts(Backoff(attempts=2))
    for batches in range(1, 20):
        attempts.reached(batches)
        wait = attempts.after(LOST, 0.5, answered=False)
        assert wait is not None and wait.attempt == 2


def test_what_is_got_through_again_is_no_progress() -> None:
    attempts = Attempts(Backoff(attempts=3))
    waits = list[bool]()
    for batches in (5, 5, 4, 5):
        attempts.reached(batches)
        waits.append(attempts.after(LOST, 0.5, answered=True) is not None)
    assert waits == [True, True, False, False]


@pytest.mark.parametrize("refusal", list(Refusal))
def test_a_refusal_is_tried_again_exactly_where_its_code_says_so(refusal: Refusal) -> None:
    kind = RefusedForNow if refusal.retryable else Refused
    error = kind(refusal, not_done="")
    assert is_retryable(error, answered=False) is refusal.retryable
    assert refusal_of(error) is refusal
    assert (Attempts(Backoff()).after(error, 0.5, answered=True) is not None) is refusal.retryable


@pytest.mark.parametrize("kind", [ConfigurationError, IntegrityError, InternalError, PeerError, RefusedError])
def test_what_trying_again_cannot_change_is_final(kind: type[TallyveilError]) -> None:
    assert Attempts(Backoff()).after(kind("no"), 0.5, answered=False) is None


def test_a_certificate_that_was_accepted_before_is_tried_again() -> None:
    """A connection cut in the handshake cannot be told from a refused certificate."""
    assert is_retryable(ConfigurationError("no"), answered=True)
    assert not is_retryable(PeerError("no"), answered=True)
