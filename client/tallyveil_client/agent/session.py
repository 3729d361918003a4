"""The delivery of one submission as a state machine: answers in, what to send and what to mark out.

Not here: gRPC, the store, waiting. Whatever is lost, repeated or cut, the bytes that go out are those that were
stored, and a batch counts as delivered only while the aggregator says that it holds it.

| state | event | then |
|---|---|---|
| idle | `connect` | opening: send the submission's key |
| opening | Opened | sending: mark what is held, send the first batches that are not · completing, where all are held |
| opening | Opened, complete | done |
| sending | Acknowledged | mark it, send the next batch · completing, where all are held: send the manifest |
| completing | Completed | done |
| any but done | `lost` | idle |

A repeated answer changes nothing. Any other answer is a PeerError.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from tallyveil.batch import Batch, BatchReference, Manifest, SubmissionKey, expected_digest
from tallyveil.errors import IntegrityError, InternalError, PeerError
from tallyveil.wire.codec import Acknowledged, Completed, Opened, Request, Response

WINDOW_BATCHES = 16
"""Batches under way without an acknowledgement: enough to fill a link, few enough to repeat after a cut."""


class State(StrEnum):
    """Where a delivery stands."""

    IDLE = "idle"
    OPENING = "opening"
    SENDING = "sending"
    COMPLETING = "completing"
    DONE = "done"


@dataclass(frozen=True)
class Step:
    """What to do now, in this order.

    Args:
        mark: Ids of batches to record as held by the aggregator.
        unmark: Ids of batches it acknowledged before and no longer holds: record them as queued again.
        send: Messages to send, in order.
    """

    mark: tuple[bytes, ...] = ()
    unmark: tuple[bytes, ...] = ()
    send: tuple[Request, ...] = ()


NOTHING = Step()


class Delivery:
    """One submission on its way.

    Args:
        key: What the batches belong to.
        batches: All of them, as stored.
        acknowledged: Ids of those acknowledged before.
        window: Largest number of batches under way.

    Raises:
        IntegrityError: A stored batch no longer has the digest it was stored with.
    """

    def __init__(
        self,
        key: SubmissionKey,
        batches: Sequence[Batch],
        acknowledged: Collection[bytes] = (),
        *,
        window: int = WINDOW_BATCHES,
    ) -> None:
        for batch in batches:
            if expected_digest(key, batch) != batch.digest:
                raise IntegrityError(
                    "a stored batch differs from what was stored",
                    not_done="nothing was sent",
                    next_step="put the newest copy of the agent's store back",
                )
        self._key = key
        self._batches = {batch.batch_id: batch for batch in batches}
        self._manifest = Manifest(tuple(b.reference for b in batches), sum(b.records for b in batches))
        self._marked = set(acknowledged) & self._batches.keys()
        self._held = set[bytes]()
        self._unsent = dict[bytes, Batch]()
        self._window = window
        self.state = State.IDLE

    @property
    def done(self) -> bool:
        """Whether the aggregator has said that the submission is complete."""
        return self.state is State.DONE

    @property
    def held(self) -> int:
        """Batches known to be held."""
        return len(self._marked)

    def connect(self) -> Step:
        """A connection is there."""
        if self.state is not State.IDLE:
            raise InternalError(f"a delivery that is {self.state} cannot connect")
        self.state = State.OPENING
        return Step(send=(self._key,))

    def lost(self) -> None:
        """The connection is gone; what was under way may have arrived or not."""
        if self.state is not State.DONE:
            self.state = State.IDLE

    def receive(self, answer: Response) -> Step:
        """An answer has arrived.

        Raises:
            PeerError: It does not fit what was sent; nothing is to be marked.
        """
        match answer:
            case Opened() if self.state is State.OPENING:
                return self._opened(answer)
            case Opened() if self.state is not State.IDLE:
                return NOTHING
            case Acknowledged() if self.state in (State.SENDING, State.COMPLETING):
                return self._acknowledged(answer)
            case Completed() if self.state in (State.COMPLETING, State.DONE):
                return self._completed(answer)
            case _ if self.state is State.DONE:
                return NOTHING
            case _:
                raise _senseless(f"it answered {type(answer).__name__.lower()} while we were {self.state}")

    def _opened(self, answer: Opened) -> Step:
        for reference in answer.held:
            self._require_ours(reference)
        self._held = {reference.batch_id for reference in answer.held}
        if answer.complete and self._held != self._batches.keys():
            raise _senseless("it calls the submission complete without holding every batch")
        mark = tuple(i for i in self._batches if i in self._held and i not in self._marked)
        unmark = tuple(i for i in self._batches if i in self._marked and i not in self._held)
        self._marked = set(self._held)
        if answer.complete:
            self.state = State.DONE
            return Step(mark, unmark)
        self.state = State.SENDING
        self._unsent = {i: batch for i, batch in self._batches.items() if i not in self._held}
        return Step(mark, unmark, self._next(self._window))

    def _acknowledged(self, answer: Acknowledged) -> Step:
        batch_id = answer.batch.batch_id
        self._require_ours(answer.batch)
        if batch_id in self._unsent:
            raise _senseless("it acknowledged a batch before it was sent")
        if batch_id in self._held:
            return NOTHING
        self._held.add(batch_id)
        self._marked.add(batch_id)
        return Step(mark=(batch_id,), send=self._next(1))

    def _completed(self, answer: Completed) -> Step:
        if (answer.batches, answer.records) != (len(self._batches), self._manifest.records):
            raise _senseless("it completed the submission with other numbers of batches or records than ours")
        self.state = State.DONE
        return NOTHING

    def _next(self, count: int) -> tuple[Request, ...]:
        if len(self._held) == len(self._batches):
            self.state = State.COMPLETING
            return (self._manifest,)
        return tuple(self._unsent.pop(i) for i in list(islice(self._unsent, count)))

    def _require_ours(self, reference: BatchReference) -> None:
        ours = self._batches.get(reference.batch_id)
        if ours is None or ours.digest != reference.digest:
            raise _senseless("it names a batch, or a digest of one, that we did not send")


def _senseless(what: str) -> PeerError:
    return PeerError(
        f"the aggregator's answer makes no sense: {what}",
        not_done="the submission was not completed; its perturbed batches stay stored, unchanged",
        next_step="tell the aggregator's operator; run again once it is understood",
    )
