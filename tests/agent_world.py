"""A small world for the agent's tests: a survey, a department's folder, rounds to store, an aggregator without gRPC.

Not here: any test, and any server.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

from tallyveil.batch import Batch, BatchReference, Manifest, SubmissionKey, encode_counts, make_batch
from tallyveil.domain import Categories, Integers
from tallyveil.epsilon import NANO, NanoEpsilon, epsilon_text, to_nano
from tallyveil.moments import moment_text
from tallyveil.randomness import Randomness
from tallyveil.signing import SigningKey
from tallyveil.survey import Dimension, Minimums, Round, Survey, sign_survey
from tallyveil.wire.codec import Acknowledged, Completed, Opened, Request, Response
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.department import Department
from tallyveil_client.agent.encode import Encoded
from tallyveil_client.agent.ledger import SUBMISSION, Charge, charge_of
from tallyveil_client.agent.run import Aids
from tallyveil_client.agent.scan import scan
from tallyveil_client.agent.selection import Approved
from tallyveil_client.agent.session import Delivery
from tallyveil_client.agent.store import AlreadyStoredError, NewRound, Store

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
KEY = SigningKey.generate()
AGES = range(15, 99)

SURVEY = Survey(
    name="ages",
    version=1,
    title="Ages",
    purpose="To test the agent.",
    attribute="age",
    domain=Integers(15, 98),
    bins=4,
    mechanism="brr",
    epsilons=(to_nano(2),),
    epsilon_floor=to_nano(1),
    dimensions=(Dimension("sex", Categories(("F", "M"))),),
    rounds=(Round(1, NOW - DAY, NOW + DAY), Round(2, NOW + DAY, NOW + 2 * DAY)),
    minimums=Minimums(),
    quota=100_000,
    expires=NOW + 5 * DAY,
)


def token(*parts: object) -> bytes:
    """16 bytes that look random and are the same every time."""
    return sha256(repr(parts).encode()).digest()[:16]


def make_round(
    *,
    name: str = "ages",
    number: int = 1,
    epsilon: NanoEpsilon = SURVEY.epsilons[0],
    rows: int = 1,
    total: int = 4 * NANO,
    cells: int = 2,
    account: str = "people",
    seed: object = 0,
) -> NewRound:
    """A round as `Store.commit_round` takes it, without a survey behind it."""
    survey_hash = sha256(name.encode()).hexdigest()
    key = SubmissionKey(survey_hash, number, epsilon, token("submission", name, number, seed))
    batches = tuple(
        make_batch(key, token("batch", key, cell), token("nonce", key, cell), cell, 95, encode_counts(np.arange(5, 15)))
        for cell in range(cells)
    )
    charge = Charge(
        account=account,
        kind=SUBMISSION,
        survey_hash=survey_hash,
        survey=f"{name}@1",
        round=number,
        epsilon=epsilon,
        max_rows_per_person=rows,
        factor=1,
        charged=charge_of(epsilon, rows),
        submission=key.submission_id.hex(),
        at=moment_text(NOW),
    )
    return NewRound(key, charge, total, batches, "people", "")


@dataclass
class MemoryAggregator:
    """Truthful, and without a store: holds one submission and refuses other bytes under a known id."""

    key: SubmissionKey | None = None
    held: dict[bytes, Batch] = field(default_factory=dict[bytes, Batch])
    complete: bool = False
    seen: dict[bytes, set[bytes]] = field(default_factory=dict[bytes, set[bytes]])

    def answer(self, request: Request) -> Response:
        """What an honest aggregator says."""
        match request:
            case SubmissionKey():
                assert self.key in (None, request)
                self.key = request
                return Opened(tuple(batch.reference for batch in self.held.values()), self.complete)
            case Batch():
                self.seen.setdefault(request.batch_id, set()).add(repr(request).encode())
                self.held.setdefault(request.batch_id, request)
                assert self.held[request.batch_id] == request
                return Acknowledged(BatchReference(request.batch_id, request.digest))
            case Manifest():
                assert sorted(request.batches) == sorted(batch.reference for batch in self.held.values())
                self.complete = True
                return Completed(len(self.held), sum(batch.records for batch in self.held.values()))

    @property
    def counts(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Records by cell."""
        return np.bincount(
            [batch.cell for batch in self.held.values()], [batch.records for batch in self.held.values()]
        ).astype(np.int64)


def even_rows(per_age_and_sex: int = 1) -> list[tuple[str, str]]:
    """Rows of age and sex, the same number of each pair."""
    return [(str(age), sex) for age in AGES for sex in "FM" for _ in range(per_age_and_sex)]


@dataclass
class Home:
    """A department's folder with everything but certificates."""

    folder: Path
    address: str = "127.0.0.1:1"

    @property
    def config(self) -> Path:
        return self.folder / "agent.toml"

    @property
    def store(self) -> Path:
        return self.folder / "agent.sqlite"

    @property
    def survey_file(self) -> Path:
        return self.folder / "ages.survey"

    def prepare(
        self,
        rows: Iterable[Sequence[str]] = (),
        *,
        survey: Survey = SURVEY,
        config: str = "",
        columns: str = "",
        policy: str = "",
        total: NanoEpsilon | int = 4 * NANO,
        max_rows: int = 1,
    ) -> Home:
        """Write configuration, policy, authority's key, survey and records.

        Args:
            rows: Age and sex.
            survey: To be signed.
            config: Lines added to the source.
            columns: Lines added to its columns.
            policy: Lines added to the collection; a later key wins over the ones here.
            total: Of the account.
            max_rows: Per person.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "authority.pub").write_bytes(KEY.public.to_pem())
        self.survey_file.write_bytes(sign_survey(survey, KEY))
        self.write_rows(rows or even_rows(2))
        self.config.write_text(
            f'[aggregator]\naddress = "{self.address}"\nca = "ca.pem"\ncertificate = "certificate.pem"\n'
            'private_key = "private.key"\ntimeout_s = 5\n[authority]\npublic_key = "authority.pub"\n'
            '[store]\npath = "agent.sqlite"\n[policy]\npath = "policy.toml"\n'
            f'[sources.people]\nformat = "csv"\npath = "people.csv"\n{config}\n'
            f'[sources.people.columns]\nage = "age"\nsex = "sex"\n{columns}\n'
        )
        limits = {
            "source": '"people"',
            "attribute": '"age"',
            "account": '"people"',
            "max_epsilon": "2",
            "guarantees": '["epsilon-LDP", "epsilon-LDP within bin, bin disclosed"]',
            "dimensions": '["sex"]',
            "max_rounds": "5",
        }
        limits |= {
            key.strip(): value.strip() for key, _, value in (line.partition("=") for line in policy.splitlines())
        }
        (self.folder / "policy.toml").write_text(
            f'[[accounts]]\nname = "people"\nperson = "a person"\nmax_rows_per_person = {max_rows}\n'
            f"total_epsilon = {epsilon_text(total)}\n[[collections]]\n"
            + "".join(f"{key} = {value}\n" for key, value in limits.items())
        )
        return self

    def write_rows(self, rows: Iterable[Sequence[str]], header: str = "age,sex") -> None:
        """Replace the records."""
        lines = [header, *(",".join(row) for row in rows)]
        (self.folder / "people.csv").write_text("\n".join(lines) + "\n")


def with_bins(bins: int, **changes: object) -> Survey:
    """The survey with other bins, and under another name."""
    return replace(SURVEY, bins=bins, name=f"ages-{bins}", **changes)  # type: ignore[arg-type]


def charge_often(path: str, process: int, times: int) -> None:
    """Charge one account from a process of its own."""
    with Store(Path(path)) as store:
        for number in range(1, times + 1):
            store.commit_round(make_round(name=f"survey-{process}", number=number, total=8 * 50 * 2 * NANO, cells=1))


def store_the_same(path: str, barrier: Barrier, seed: int) -> None:
    """Store one round from a process of its own, at the moment others do; exit with 4 where one was faster."""
    with Store(Path(path)) as store:
        barrier.wait(60)
        try:
            store.commit_round(make_round(seed=seed))
        except AlreadyStoredError:
            sys.exit(4)


def stored_in(store: Store) -> tuple[int, int, int]:
    """Numbers of charges, submissions and batches."""
    submissions = store.submissions()
    return len(store.ledger().charges), len(submissions), sum(item.batches for item in submissions)


def aids_for(department: Department, aggregator: MemoryAggregator, randomness: Randomness | None = None) -> Aids:
    """What a round needs, with an aggregator in memory and identifiers that are the same every time."""
    drawn, before = count(), len(department.store.submissions())

    def deliver(key: SubmissionKey) -> None:
        outgoing = department.store.outgoing(key.submission_id)
        delivery = Delivery(key, [item.batch for item in outgoing])
        requests = deque(delivery.connect().send)
        while requests:
            step = delivery.receive(aggregator.answer(requests.popleft()))
            department.store.mark_batches(step.mark, step.unmark)
            requests.extend(step.send)

    def announce(key: SubmissionKey) -> bool:
        opened = aggregator.answer(key)
        assert isinstance(opened, Opened)
        return bool(opened.held)

    def read(source: SourceConfig, item: Approved) -> Generator[Encoded]:
        yield from scan(source, item.survey)

    return Aids(lambda: NOW, lambda: token(before, next(drawn)), randomness, lambda: None, read, announce, deliver)
