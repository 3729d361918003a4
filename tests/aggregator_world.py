"""A small world for the aggregator's tests: a survey, keys, certificates, departments' messages, a running server.

Not here: any test. Nothing is mocked but the clock.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.batch import Batch, Manifest, SubmissionKey, encode_counts, make_batch
from tallyveil.domain import Categories, Integers
from tallyveil.epsilon import checked_nano, to_nano
from tallyveil.identity import Identity, Role
from tallyveil.signing import SigningKey
from tallyveil.survey import Dimension, Minimums, Round, Survey, sign_survey
from tallyveil_aggregator.config import AggregatorConfig, load_config
from tallyveil_aggregator.enrolment.authority import (
    Authority,
    certificate_to_pem,
    create_authority,
    generate_key,
    issue_client,
    issue_server,
    key_to_pem,
)
from tallyveil_aggregator.store import Store

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
LOW, HIGH = to_nano(1.0), to_nano(2.0)

SURVEY = Survey(
    name="ages",
    version=1,
    title="Ages",
    purpose="To test the aggregator.",
    attribute="age",
    domain=Integers(0, 9),
    bins=2,
    mechanism="brr",
    epsilons=(LOW, HIGH),
    epsilon_floor=LOW,
    dimensions=(Dimension("region", Categories(("north", "south"))),),
    rounds=(Round(1, NOW - DAY, NOW + DAY), Round(2, NOW + DAY, NOW + 2 * DAY), Round(3, NOW + 3 * DAY, NOW + 4 * DAY)),
    minimums=Minimums(departments=2),
    quota=1_000,
    expires=NOW + 5 * DAY,
)


def token(*parts: object) -> bytes:
    """16 bytes that look random and are the same every time."""
    return sha256(repr(parts).encode()).digest()[:16]


@dataclass(frozen=True)
class Upload:
    """A department's submission, ready to send."""

    key: SubmissionKey
    batches: tuple[Batch, ...]

    @property
    def manifest(self) -> Manifest:
        return Manifest(tuple(batch.reference for batch in self.batches), sum(batch.records for batch in self.batches))


def make_key(seed: object = 0, survey: Survey = SURVEY, round_number: int = 1, epsilon: int = HIGH) -> SubmissionKey:
    """The key of a submission whose id follows from `seed`."""
    return SubmissionKey(survey.hash, round_number, checked_nano(epsilon), token("submission", seed, round_number))


def batch_of(key: SubmissionKey, cell: int, counts: ArrayLike, seed: object = 0) -> Batch:
    """A batch whose id follows from submission, cell and seed."""
    parts = (key.submission_id, cell, seed)
    array = np.asarray(counts, dtype=np.int64)
    return make_batch(key, token("batch", *parts), token("nonce", *parts), cell, int(array.sum()), encode_counts(array))


def make_upload(
    seed: object = 0, survey: Survey = SURVEY, round_number: int = 1, epsilon: int = HIGH, least: int = 1
) -> Upload:
    """One batch for each cell; the counts rise from `least`."""
    key = make_key(seed, survey, round_number, epsilon)
    counts = np.arange(survey.domain.size) + least
    return Upload(key, tuple(batch_of(key, cell, counts + cell) for cell in range(survey.cell_count)))


class Clock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Pki:
    """A CA with certificates by name; made once, since keys take time."""

    authority: Authority = field(default_factory=lambda: create_authority(NOW, 30))
    surveys: SigningKey = field(default_factory=SigningKey.generate)
    releases: SigningKey = field(default_factory=SigningKey.generate)
    issued: dict[str, tuple[bytes, bytes]] = field(default_factory=dict[str, tuple[bytes, bytes]])

    @property
    def root(self) -> bytes:
        return certificate_to_pem(self.authority.certificate)

    def server(self) -> tuple[bytes, bytes]:
        """Certificate and key for localhost."""
        if "server" not in self.issued:
            key = generate_key()
            certificate = issue_server(self.authority, key.public_key(), ["localhost", "127.0.0.1"], NOW, 20)
            self.issued["server"] = certificate_to_pem(certificate), key_to_pem(key)
        return self.issued["server"]

    def client(self, identity: Identity) -> tuple[bytes, bytes]:
        """Certificate and key of a caller."""
        uri = identity.to_uri()
        if uri not in self.issued:
            key = generate_key()
            certificate = issue_client(self.authority, key.public_key(), identity, NOW, 20)
            self.issued[uri] = certificate_to_pem(certificate), key_to_pem(key)
        return self.issued[uri]


HEALTH = Identity(Role.DEPARTMENT, "health")
EDUCATION = Identity(Role.DEPARTMENT, "education")
CONSUMER = Identity(Role.CONSUMER, "newsroom")
OPERATOR = Identity(Role.OPERATOR, "alice")


@dataclass
class World:
    """An aggregator's folder with everything in it, before anything runs.

    Args:
        folder: Where its files are.
        pki: Its CA and keys.
        clock: Its time.
    """

    folder: Path
    pki: Pki
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        certificate, key = self.pki.server()
        for name, content in {
            "server.pem": certificate,
            "server.key": key,
            "ca.pem": self.pki.root,
            "authority.pub": self.pki.surveys.public.to_pem(),
            "release.key": self.pki.releases.to_pem(),
            "survey.json": sign_survey(SURVEY, self.pki.surveys),
        }.items():
            (self.folder / name).write_bytes(content)
        self.config_file.write_text(
            '[server]\nlisten = "localhost:0"\n'
            'certificate = "server.pem"\nprivate_key = "server.key"\nclient_ca = "ca.pem"\nmax_streams = 8\n'
        )

    @property
    def config_file(self) -> Path:
        return self.folder / "aggregator.toml"

    @property
    def config(self) -> AggregatorConfig:
        return load_config(self.config_file)

    @contextmanager
    def store(self) -> Generator[Store]:
        """The store, opened for a while."""
        with closing(Store.open(self.config.store)) as store:
            yield store

    def set_up(self, *departments: Identity, surveys: Iterable[Survey] = (SURVEY,)) -> None:
        """Make the store with departments and surveys."""
        with closing(Store.create(self.config.store)) as store, store.writing() as transaction:
            for department in departments or (HEALTH, EDUCATION):
                transaction.departments.add(department.name, NOW)
            for survey in surveys:
                transaction.surveys.add(survey, sign_survey(survey, self.pki.surveys), NOW)

    def records(self, round_number: int = 1) -> int:
        """Records held of a round."""
        with self.store() as store, store.reading() as transaction:
            return transaction.rounds.progress(SURVEY.hash, round_number).records


def register_and_add(store_path: str, key: SubmissionKey, department: str, steps: int) -> None:
    """Work of one process against a store that others use too: for a test of concurrency."""
    counts = np.array([1] + [0] * 9, dtype=np.int64)
    with closing(Store.open(Path(store_path))) as store:
        for step in range(steps):
            with store.writing() as transaction:
                stored = transaction.submissions.find(department, key.survey_hash, 1)
                if stored is None:
                    transaction.departments.add(department, NOW)
                    transaction.submissions.add(department, key, NOW)
                    stored = transaction.submissions.find(department, key.survey_hash, 1)
                assert stored is not None
                transaction.batches.add(stored.number, batch_of(key, step, counts), counts)


def put(store: Store, department: str, upload: Upload, *, complete: bool = True) -> None:
    """Store a submission as intake would."""
    with store.writing() as transaction:
        transaction.submissions.add(department, upload.key, NOW)
        stored = transaction.submissions.find(department, upload.key.survey_hash, upload.key.round)
        assert stored is not None
        for batch in upload.batches:
            transaction.batches.add(stored.number, batch, np.frombuffer(batch.payload, dtype=np.uint8).astype(np.int64))
        if complete:
            transaction.submissions.mark_complete(stored.number, NOW)
