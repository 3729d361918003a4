"""When to try again and after how long: a pure function of what happened, the attempt and a random number.

Not here: waiting, and what is sent then (`tallyveil_client.agent.session`): always the same bytes. Which gRPC
status becomes which error is the transport's; this is the table that follows it:

| what happened | then |
|---|---|
| UnavailableError: unreachable, cut, too slow, too busy (UNAVAILABLE, DEADLINE_EXCEEDED …) | again |
| a refusal whose code is retryable | again |
| a certificate found wrong after this run was answered (a connection cut in the handshake looks so) | again |
| any other refusal, wrong configuration, an answer that makes no sense | final |
| any of them after the last attempt | final |

An attempt that got further than any before it counts as the first again. What was acknowledged, forgotten and
acknowledged once more is no further: a server could keep an agent alive with that for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.errors import ConfigurationError, TallyveilError, UnavailableError
from tallyveil.refusal import Refusal


@dataclass(frozen=True)
class Backoff:
    """Full jitter: a wait uniform between 0 and a bound that doubles with every failure.

    Args:
        attempts: How many in a row may fail, at least 1.
        base_s: Bound of the first wait.
        cap_s: Largest bound.

    Source: Brooker: Exponential Backoff And Jitter, AWS Architecture Blog, 2015 ("full jitter").
    """

    attempts: int = 8
    base_s: float = 1.0
    cap_s: float = 60.0

    def delay_s(self, failures: int, random: float) -> float:
        """The wait after `failures` failures in a row (1, 2, …), for `random` in [0, 1)."""
        bound = min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 60))
        return bound * random


@dataclass(frozen=True)
class Wait:
    """Try again after `seconds`; it will be attempt number `attempt`."""

    seconds: float
    attempt: int


@dataclass
class Attempts:
    """How often one thing has been tried in a row without getting further than before."""

    backoff: Backoff
    failures: int = 0
    furthest: int = 0

    def reached(self, batches: int) -> None:
        """The attempt under way got so many batches through, with those of the attempts before it."""
        if batches > self.furthest:
            self.furthest, self.failures = batches, 0

    def after(self, error: TallyveilError, random: float, *, answered: bool) -> Wait | None:
        """The wait before the next attempt, or None where the error is final or was the last.

        Args:
            error: What ended the attempt.
            random: In [0, 1).
            answered: Whether the aggregator has answered this run before.
        """
        self.failures += 1
        if not is_retryable(error, answered=answered) or self.failures >= self.backoff.attempts:
            return None
        return Wait(self.backoff.delay_s(self.failures, random), self.failures + 1)


def is_retryable(error: TallyveilError, *, answered: bool) -> bool:
    """Whether the same bytes may get through later without anybody changing anything."""
    refusal = refusal_of(error)
    if refusal is not None:
        return refusal.retryable
    return isinstance(error, UnavailableError) or (answered and isinstance(error, ConfigurationError))


def refusal_of(error: TallyveilError) -> Refusal | None:
    """The aggregator's reason, where the error carries one."""
    refusal = getattr(error, "refusal", None)
    return refusal if isinstance(refusal, Refusal) else None
