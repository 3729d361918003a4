"""A delivery ends complete with the same bytes, whatever is lost, repeated or cut on the way."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world import MemoryAggregator, make_round, token
from tallyveil.batch import Batch, BatchReference, Manifest
from tallyveil.errors import IntegrityError, InternalError, PeerError
from tallyveil.wire.codec import Acknowledged, Completed, Opened, Request, Response, encode_request
from tallyveil_client.agent.session import Delivery, State, Step

FOREIGN = BatchReference(token("foreign"), bytes(32))


class Link:
    """One connection: what was sent and not yet received, and what was answered and not yet heard."""

    def __init__(self, aggregator: MemoryAggregator) -> None:
        self.aggregator = aggregator
        self.requests = deque[Request]()
        self.answers = deque[Response]()

    def send(self, step: Step) -> None:
        self.requests.extend(step.send)

    def carry(self) -> None:
        """The next message arrives and is answered."""
        if self.requests:
            self.answers.append(self.aggregator.answer(self.requests.popleft()))


class Memory:
    """What the store would remember."""

    def __init__(self) -> None:
        self.acknowledged = set[bytes]()

    def note(self, step: Step) -> None:
        self.acknowledged |= set(step.mark)
        self.acknowledged -= set(step.unmark)


def run_clean(delivery: Delivery, aggregator: MemoryAggregator, memory: Memory) -> None:
    link = Link(aggregator)
    link.send(delivery.connect())
    while not delivery.done:
        link.carry()
        step = delivery.receive(link.answers.popleft())
        memory.note(step)
        link.send(step)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_is_lost_or_repeated_the_same_bytes_arrive_once_and_the_delivery_ends_complete(
    data: st.DataObject,
) -> None:
    new = make_round(cells=data.draw(st.integers(1, 6)))
    window = data.draw(st.integers(1, 4))
    aggregator, memory = MemoryAggregator(), Memory()
    stored = {batch.batch_id: encode_request(batch).SerializeToString() for batch in new.batches}
    sent = list[Request]()
    delivery = Delivery(new.key, new.batches, window=window)
    for _ in range(data.draw(st.integers(0, 6))):
        if data.draw(st.booleans()):  # the agent was killed and has only what it stored
            delivery = Delivery(new.key, new.batches, memory.acknowledged, window=window)
        if delivery.done:
            break
        link = Link(aggregator)
        step = delivery.connect()
        sent += step.send
        link.send(step)
        for action in data.draw(st.lists(st.sampled_from(["carry", "hear", "hear twice"]), max_size=25)):
            if action == "carry":
                link.carry()
            elif link.answers:
                answer = link.answers.popleft()
                for _ in range(1 if action == "hear" else 2):
                    step = delivery.receive(answer)
                    memory.note(step)
                    sent += step.send
                    link.send(step)
        delivery.lost()
    if not delivery.done:
        run_clean(delivery, aggregator, memory)
    assert aggregator.complete
    assert aggregator.held == {batch.batch_id: batch for batch in new.batches}
    assert all(encode_request(r).SerializeToString() == stored[r.batch_id] for r in sent if isinstance(r, Batch))
    assert {r for r in sent if isinstance(r, Manifest)} <= {
        Manifest(tuple(batch.reference for batch in new.batches), sum(batch.records for batch in new.batches))
    }
    assert delivery.held == len(new.batches)


@given(st.data())
def test_any_answer_at_any_time_is_taken_or_is_a_peer_error(data: st.DataObject) -> None:
    new = make_round(cells=2)
    references = [*(batch.reference for batch in new.batches), FOREIGN]
    answers = st.one_of(
        st.builds(Opened, st.lists(st.sampled_from(references), max_size=3).map(tuple), st.booleans()),
        st.builds(Acknowledged, st.sampled_from(references)),
        st.builds(Completed, st.integers(0, 3), st.sampled_from([0, 190])),
    )
    delivery = Delivery(new.key, new.batches)
    delivery.connect()
    for answer in data.draw(st.lists(answers, max_size=8)):
        try:
            step = delivery.receive(answer)
        except PeerError:
            return
        assert set(step.mark) <= {batch.batch_id for batch in new.batches}


def test_no_more_than_the_window_is_under_way() -> None:
    new = make_round(cells=10)
    delivery = Delivery(new.key, new.batches, window=3)
    delivery.connect()
    step = delivery.receive(Opened((), complete=False))
    assert step.send == new.batches[:3]
    assert delivery.receive(Acknowledged(new.batches[1].reference)).send == (new.batches[3],)


def test_what_the_aggregator_holds_is_not_sent_again_and_what_it_forgot_is() -> None:
    new = make_round(cells=3)
    first, second, third = new.batches
    delivery = Delivery(new.key, new.batches, {first.batch_id, second.batch_id})
    delivery.connect()
    step = delivery.receive(Opened((second.reference, third.reference), complete=False))
    assert (step.mark, step.unmark, step.send) == ((third.batch_id,), (first.batch_id,), (first,))


def test_a_completion_that_was_not_heard_is_learnt_when_opening_again() -> None:
    new = make_round()
    delivery = Delivery(new.key, new.batches)
    delivery.connect()
    step = delivery.receive(Opened(tuple(batch.reference for batch in new.batches), complete=True))
    assert delivery.done and step.send == () and len(step.mark) == 2
    delivery.lost()
    assert delivery.done


def opened(cells: int = 2) -> tuple[Delivery, tuple[Batch, ...]]:
    new = make_round(cells=cells)
    delivery = Delivery(new.key, new.batches, window=1)
    delivery.connect()
    delivery.receive(Opened((), complete=False))
    return delivery, new.batches


def test_an_acknowledgement_of_another_digest_is_not_believed() -> None:
    delivery, (first, _) = opened()
    with pytest.raises(PeerError, match="digest"):
        delivery.receive(Acknowledged(replace(first.reference, digest=bytes(32))))
    assert delivery.held == 0


def test_an_acknowledgement_before_the_sending_is_not_believed() -> None:
    delivery, (_, second) = opened()
    with pytest.raises(PeerError, match="before it was sent"):
        delivery.receive(Acknowledged(second.reference))


@pytest.mark.parametrize("answer", [Acknowledged(FOREIGN), Completed(2, 190), Completed(0, 0)])
def test_an_answer_out_of_place_is_a_peer_error(answer: Response) -> None:
    delivery, _ = opened()
    with pytest.raises(PeerError):
        delivery.receive(answer)


def test_holding_what_was_never_sent_or_completing_too_little_is_a_peer_error() -> None:
    new = make_round()
    for answer in (Opened((FOREIGN,), complete=False), Opened((new.batches[0].reference,), complete=True)):
        delivery = Delivery(new.key, new.batches)
        delivery.connect()
        with pytest.raises(PeerError):
            delivery.receive(answer)


def test_a_completion_with_other_numbers_is_a_peer_error() -> None:
    delivery, (first, second) = opened()
    for batch in (first, second):
        step = delivery.receive(Acknowledged(batch.reference))
    assert isinstance(step.send[0], Manifest) and delivery.state is State.COMPLETING
    with pytest.raises(PeerError, match="other numbers"):
        delivery.receive(Completed(2, 191))


def test_a_stored_batch_that_was_altered_is_not_sent() -> None:
    new = make_round()
    altered = replace(new.batches[0], payload=bytes([9, *new.batches[0].payload[1:]]))
    with pytest.raises(IntegrityError, match="differs from what was stored"):
        Delivery(new.key, (altered, new.batches[1]))
    with pytest.raises(IntegrityError):
        Delivery(replace(new.key, round=2), new.batches)


def test_connecting_twice_is_our_fault() -> None:
    delivery, _ = opened()
    with pytest.raises(InternalError):
        delivery.connect()
