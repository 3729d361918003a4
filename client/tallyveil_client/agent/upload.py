# pyright: standard
"""Sending a stored submission over gRPC until the aggregator holds all of it, whatever is lost on the way.

Not here: what is sent when (`session`), when to try again (`retry`) and connections (`transport`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from queue import SimpleQueue
from typing import TypeVar

import grpc

from tallyveil.batch import SubmissionKey
from tallyveil.choice import sign_choice
from tallyveil.errors import PeerError, TallyveilError, UnavailableError
from tallyveil.identity import Role
from tallyveil.wire.codec import Opened, Request, Response, decode_response, encode_request
from tallyveil.wire.v1 import collection_pb2 as pb
from tallyveil.wire.v1.collection_pb2_grpc import CollectionServiceStub
from tallyveil_client.agent.config import AggregatorConfig
from tallyveil_client.agent.retry import Attempts, Backoff, refusal_of
from tallyveil_client.agent.session import Delivery, Step
from tallyveil_client.agent.store import Store
from tallyveil_client.transport import Channel, Endpoint, calling, connect, credentials

SLOWEST_BYTES_PER_S = 32 * 1024
"""An attempt may take as long as its bytes need at this pace, beyond the endpoint's own timeout."""

MARK_EVERY = 64
"""Acknowledgements recorded in one transaction; one that is lost only costs asking again."""

_UNCHARGED = "nothing is charged yet"
_STORED = "the perturbed batches are safe on disk"
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Surroundings:
    """What waiting and telling need.

    Args:
        sleep: Waits that many seconds.
        random: A number in [0, 1), fresh each time.
        tell: Shows one line to whoever runs the agent.
        backoff: How often and how long.
    """

    sleep: Callable[[float], None]
    random: Callable[[], float]
    tell: Callable[[str], None]
    backoff: Backoff = field(default_factory=Backoff)


def endpoint_of(config: AggregatorConfig) -> Endpoint:
    """The aggregator of the agent's configuration, to which we are a department."""
    return Endpoint(
        config.address,
        config.ca,
        config.certificate,
        config.private_key,
        server_name=config.server_name,
        timeout_s=config.timeout_s,
        role=Role.DEPARTMENT,
    )


def require_usable(endpoint: Endpoint, now: datetime) -> None:
    """Stop where our own files would not do, whatever the aggregator says.

    Raises:
        ConfigurationError: A file is missing, the certificate has expired or states another role, or the key does not
            belong to it.
    """
    credentials.read(endpoint)
    if found := credentials.faults(endpoint, now):
        raise credentials.unusable(endpoint, found, "nothing was read, charged or sent")


class Courier:
    """Goes to the aggregator, as often as it takes.

    Args:
        endpoint: Where to.
        surroundings: See there.
    """

    def __init__(self, endpoint: Endpoint, surroundings: Surroundings) -> None:
        self._endpoint = endpoint
        self._surroundings = surroundings
        self._answered = False

    def announce(self, key: SubmissionKey) -> Opened:
        """Ask the aggregator whether it would take this submission, before anything is charged.

        Raises:
            TallyveilError: It refuses, cannot be reached, or makes no sense. Nothing was charged.
        """

        def attempt(_: Attempts) -> Opened:
            with _stream(self._endpoint, "asking whether the round is open", self._endpoint.timeout_s) as stream:
                stream.send(key)
                answer = self._heard(stream.receive())
                if not isinstance(answer, Opened):
                    raise PeerError("the aggregator did not answer what was asked")
                return answer

        return self._persistently(attempt, _UNCHARGED, "nothing was charged, stored or sent", "")

    def deliver(self, store: Store, key: SubmissionKey, on_held: Callable[[int], None] = lambda batches: None) -> None:
        """Send a stored submission to its end, and record which batches the aggregator holds.

        Args:
            store: Holds the batches.
            key: Which submission.
            on_held: Called with the number of batches held.

        Raises:
            TallyveilError: Refused for good, out of attempts, or an answer that makes no sense. The batches stay
                stored.
        """
        outgoing = store.outgoing(key.submission_id)
        delivery = Delivery(
            key, [item.batch for item in outgoing], {item.batch.batch_id for item in outgoing if item.acknowledged}
        )
        timeout_s = self._endpoint.timeout_s
        timeout_s += sum(len(item.batch.payload) for item in outgoing) / SLOWEST_BYTES_PER_S

        def attempt(attempts: Attempts) -> None:
            try:
                with _stream(self._endpoint, "sending the submission", timeout_s) as stream, _marking(store) as note:
                    step = delivery.connect()
                    while True:
                        for request in step.send:
                            stream.send(request)
                        if delivery.done:
                            return
                        step = delivery.receive(self._heard(stream.receive()))
                        note(step)
                        attempts.reached(delivery.held)
                        on_held(delivery.held)
            finally:
                delivery.lost()

        not_done = f"the submission is not complete; {_STORED} and are not charged again"
        try:
            self._persistently(attempt, _STORED, not_done, "run again, and it goes on where this ended; ")
        except TallyveilError as error:
            if (refusal := refusal_of(error)) is not None:
                store.note_refusal(key.submission_id, refusal.value)
            raise

    def _heard(self, answer: Response) -> Response:
        self._answered = True
        return answer

    def _persistently(self, attempt: Callable[[Attempts], _Result], safe: str, not_done: str, first: str) -> _Result:
        """Try until it works, the error is final, or the attempts are used up.

        Args:
            attempt: One try; it may say that it got something through.
            safe: What is certain, while there is hope.
            not_done: What the error that ends it all says was not done.
            first: What it says to do before anything else, where trying later may help.
        """
        surroundings = self._surroundings
        attempts = Attempts(surroundings.backoff)
        while True:
            try:
                return attempt(attempts)
            except TallyveilError as error:
                wait = attempts.after(error, surroundings.random(), answered=self._answered)
                if wait is None:
                    error.not_done = not_done
                    if isinstance(error, UnavailableError):
                        error.next_step = first + error.next_step
                    raise
                surroundings.tell(
                    f"{error.what}; trying again in {wait.seconds:.1f} s "
                    f"(attempt {wait.attempt} of {surroundings.backoff.attempts}); {safe}"
                )
            surroundings.sleep(wait.seconds)


class _Stream:
    """One Submit call, whose errors come out as ours."""

    def __init__(self, channel: Channel, endpoint: Endpoint, doing: str, timeout_s: float) -> None:
        self._endpoint, self._doing = endpoint, doing
        self._outbound: SimpleQueue[pb.SubmitRequest | None] = SimpleQueue()
        self._call = CollectionServiceStub(channel).Submit(iter(self._outbound.get, None), timeout=timeout_s)

    def send(self, request: Request) -> None:
        """Queue one message; an opening with our signed choice of epsilon."""
        signature = b""
        if isinstance(request, SubmissionKey):
            signature = sign_choice(credentials.read_file(self._endpoint.private_key, "private key"), request)
        self._outbound.put(encode_request(request, signature))

    def receive(self) -> Response:
        """Wait for the next answer."""
        with calling(self._endpoint, self._doing):
            message = next(self._call, None)
        if message is None:
            raise UnavailableError(f"{self._endpoint.address} ended the conversation early", next_step="try again")
        return decode_response(message)

    def end(self) -> None:
        """Say that nothing more is coming, and hear the other side out, whatever it says."""
        self._outbound.put(None)
        with suppress(grpc.RpcError):
            for _ in self._call:
                pass

    def abandon(self) -> None:
        """Leave at once; without the end mark gRPC's own thread would wait for messages for ever."""
        self._outbound.put(None)
        self._call.cancel()


@contextmanager
def _stream(endpoint: Endpoint, doing: str, timeout_s: float) -> Generator[_Stream]:
    with connect(endpoint) as channel:
        stream = _Stream(channel, endpoint, doing, timeout_s)
        try:
            yield stream
        except BaseException:
            stream.abandon()
            raise
        stream.end()


@contextmanager
def _marking(store: Store) -> Generator[Callable[[Step], None]]:
    """Record acknowledgements a few at a time, and the rest however the attempt ends."""
    waiting = list[bytes]()

    def flush() -> None:
        if waiting:
            store.mark_batches(acknowledged=waiting)
            waiting.clear()

    def note(step: Step) -> None:
        if step.unmark:
            flush()
            store.mark_batches(queued=step.unmark)
        waiting.extend(step.mark)
        if len(waiting) >= MARK_EVERY:
            flush()

    try:
        yield note
    finally:
        flush()
