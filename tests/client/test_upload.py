"""Sending to an aggregator that lies: it ends, whatever is answered."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_world import make_round
from tallyveil.batch import Batch, BatchReference, SubmissionKey
from tallyveil.errors import UnavailableError
from tallyveil.wire.codec import Acknowledged, Opened, Request, Response
from tallyveil_client.agent import upload
from tallyveil_client.agent.retry import Backoff
from tallyveil_client.agent.store import Store
from tallyveil_client.agent.upload import Courier, Surroundings
from tallyveil_client.transport import Endpoint

NOWHERE = Path("nowhere")
ENDPOINT = Endpoint("127.0.0.1:1", NOWHERE, NOWHERE, NOWHERE)


@dataclass
class Forgetful:
    """Acknowledges batches, then cuts the connection; of all that it acknowledged it still holds `kept` batches."""

    kept: list[int]
    acknowledges: int
    attempts: int = 0
    ours: tuple[BatchReference, ...] = ()
    answers: list[Response | None] = field(default_factory=list[Response | None])

    def send(self, request: Request) -> None:
        match request:
            case SubmissionKey():
                kept = self.kept[min(self.attempts, len(self.kept)) - 1]
                self.answers = [Opened(self.ours[:kept], False)]
            case Batch() if len(self.answers) < self.acknowledges:
                self.answers.append(Acknowledged(request.reference))
            case _:
                self.answers.append(None)

    def receive(self) -> Response:
        if not self.answers or (answer := self.answers.pop(0)) is None:
            raise UnavailableError("cut")
        return answer

    @contextmanager
    def stream(self, *_: object) -> Generator[Forgetful]:
        self.attempts += 1
        yield self


def deliver(folder: Path, monkeypatch: pytest.MonkeyPatch, aggregator: Forgetful) -> int:
    """After how many attempts the agent gives up."""
    new = make_round(cells=5)
    aggregator.ours = tuple(batch.reference for batch in new.batches)
    monkeypatch.setattr(upload, "_stream", aggregator.stream)
    courier = Courier(ENDPOINT, Surroundings(lambda seconds: None, lambda: 0.5, lambda line: None, Backoff(8)))
    with Store(folder / "agent.sqlite") as store:
        store.commit_round(new)
        with pytest.raises(UnavailableError) as caught:
            courier.deliver(store, new.key)
    assert "safe on disk" in caught.value.not_done
    return aggregator.attempts


@pytest.mark.parametrize("acknowledges", [0, 1, 5])
def test_an_aggregator_that_forgets_what_it_acknowledged_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acknowledges: int
) -> None:
    assert deliver(tmp_path, monkeypatch, Forgetful([0], acknowledges)) == 8


def test_every_batch_more_than_ever_before_is_progress_and_no_other_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deliver(tmp_path, monkeypatch, Forgetful([0, 1, 0, 1, 2, 1, 0], 0)) == 5 + 7
