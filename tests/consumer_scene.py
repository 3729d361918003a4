# pyright: standard
"""A server that serves what a test gives it, and a consumer's folder beside it.

Not here: any test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aggregator_stand_in import StandIn
from tallyveil.domain import Categories, Integers
from tallyveil.epsilon import NanoEpsilon
from tallyveil.release import Participant, Release
from tallyveil.signing import SigningKey
from tallyveil.survey import Dimension, Minimums, Round, Survey
from tallyveil.tables import Pool
from tallyveil.wire.v1 import statistics_pb2 as pb
from tallyveil_client.consumer import Statistics

TWO = NanoEpsilon(2_000_000_000)
SUPPORT = ((30, 12, 9, 8, 0, 1, 2, 3), (5, 5, 5, 5, 40, 4, 4, 4))


def survey_of(**changes: Any) -> Survey:
    start, end = datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    survey = Survey(
        name="age",
        version=1,
        title="Age",
        purpose="For tests",
        attribute="age",
        domain=Integers(0, 7),
        bins=2,
        mechanism="brr",
        epsilons=(TWO,),
        epsilon_floor=TWO,
        dimensions=(Dimension("sex", Categories(("Female", "Male"))),),
        rounds=(Round(1, start, end), Round(2, end, datetime(2027, 2, 1, tzinfo=UTC))),
        minimums=Minimums(),
        quota=1000,
        expires=datetime(2027, 3, 1, tzinfo=UTC),
    )
    return replace(survey, **changes)


def release_of(survey: Survey | None = None, **changes: Any) -> Release:
    pools = tuple(Pool(TWO, cell, 2, sum(support), support) for cell, support in enumerate(SUPPORT))
    release = Release(
        survey or survey_of(),
        round=1,
        revision=1,
        released_at=datetime(2027, 1, 2, tzinfo=UTC),
        previous=None,
        participants=(Participant("health", TWO), Participant("labour", TWO)),
        pools=pools,
    )
    return replace(release, **changes)


@dataclass
class Scene:
    """A server that serves what a test gives it, and a consumer's folder."""

    stand_in: StandIn
    folder: Path
    key: SigningKey

    @property
    def server(self) -> str:
        return f"localhost:{self.stand_in.port}"

    @property
    def connection(self) -> list[str]:
        return ["--server", self.server, "--credentials", str(self.folder)]

    def consumer(self) -> Statistics:
        return Statistics(self.server, credentials=self.folder, trusted_key=self.folder / "release.pub", timeout_s=10)


def summary(**changes: Any) -> pb.ReleaseSummary:
    fields: dict[str, Any] = {
        "survey_name": "age",
        "survey_version": 1,
        "survey_hash": bytes(32),
        "round": 1,
        "revision": 1,
        "release_hash": b"\x01" * 32,
        "released_at": "2027-01-02T00:00:00Z",
    }
    return pb.ReleaseSummary(**fields | changes)
