"""Publication: from the complete submissions of a closed round to a signed release at the end of the chain.

Not here: the estimates and the document (`tallyveil.release`). The numbers are worked out outside of any transaction,
since that may take a while; then one transaction looks whether anything has changed meanwhile and appends the release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import numpy as np

from tallyveil import canonical
from tallyveil.batch import MAX_RECORDS
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import InternalError
from tallyveil.guarantee import REPLACE_ONE
from tallyveil.mechanisms import Tally
from tallyveil.moments import moment_text
from tallyveil.release import Participant, Release, VerifiedRelease, open_release, sign_release
from tallyveil.signing import SigningKey
from tallyveil.survey import Survey
from tallyveil.tables import Pool
from tallyveil_aggregator.rounds import RoundError
from tallyveil_aggregator.store import Store, Transaction
from tallyveil_aggregator.store.releases import StoredRelease

_ATTEMPTS = 3


class PublicationError(RoundError):
    """The round cannot be released as it stands."""

    kind: ClassVar[str] = "publication"
    consequence: ClassVar[str] = "nothing was released"


class AlreadyReleased(PublicationError):
    """The round is released, and another release would say the same."""

    def __init__(self, survey: Survey, standing: StoredRelease) -> None:
        called = f"{survey.name}@{survey.version} {standing.round}"
        super().__init__(
            f"the round is released already, as revision {standing.revision}, and nothing has changed since",
            f"write its file: tallyveil aggregator release {called} --output FILE; "
            f"or read it: tallyveil stats get {survey.name} --round {standing.round}",
        )
        self.standing = standing


@dataclass(frozen=True)
class Material:
    """What a release is made from, and its place.

    Args:
        participants: By department.
        pools: By epsilon and cell.
        revision: Of the release to be made.
        sequence: Its place in the chain, from 1.
        previous: Hash of the release before it in the chain, or None.
    """

    participants: tuple[Participant, ...]
    pools: tuple[Pool, ...]
    revision: int
    sequence: int
    previous: str | None

    @property
    def content(self) -> str:
        """Digest of what the numbers follow from: equal for two revisions that would say the same."""
        body = {
            "participants": [[item.department, item.epsilon] for item in self.participants],
            "pools": [
                [pool.epsilon, pool.cell, pool.departments, pool.records, list(pool.support)] for pool in self.pools
            ],
        }
        return canonical.digest("release-content", canonical.encode(body))


def publish(
    store: Store, survey: Survey, round_number: int, key: SigningKey, clock: Callable[[], datetime]
) -> VerifiedRelease:
    """Make, sign, verify and store the release of a round.

    Args:
        store: Where submissions are and the release goes.
        survey: The survey, verified.
        round_number: Its round.
        key: Signs the release.
        clock: The present moment, aware.

    Raises:
        PublicationError: The round is open, or nothing or too little is complete.
        AlreadyReleased: It is released as it stands.
        StoreUnavailable: The store cannot be used.
    """
    for _ in range(_ATTEMPTS):
        now = clock()
        with store.reading() as transaction:
            material = _gather(transaction, survey, round_number, now)
        release = Release(
            survey, round_number, material.revision, now, material.previous, material.participants, material.pools
        )
        # Read back as a consumer would: what cannot be verified is never published.
        verified = open_release(sign_release(release, key), key.public)
        with store.writing() as transaction:
            if _gather(transaction, survey, round_number, clock()) == material:
                _append(transaction, material, verified)
                return verified
    raise InternalError("the round kept changing while its release was made", not_done="nothing was released")


def _append(transaction: Transaction, material: Material, verified: VerifiedRelease) -> None:
    release = verified.release
    stored = StoredRelease(
        material.sequence,
        release.survey.hash,
        release.survey.name,
        release.survey.version,
        release.round,
        release.revision,
        verified.hash,
        material.content,
        moment_text(release.released_at),
    )
    transaction.releases.add(stored, material.previous, release.released_at, verified.document)


def _gather(transaction: Transaction, survey: Survey, round_number: int, now: datetime) -> Material:
    _check_closed(transaction, survey, round_number, now)
    complete = transaction.submissions.complete(survey.hash, round_number)
    least = survey.minimums.departments
    told = survey.neighbours == REPLACE_ONE  # elsewhere nobody's number of records is known
    with_records = [item for item in complete if not told or transaction.batches.records(item.number)]
    if len(with_records) < least:
        had = (
            "no submission is complete"
            if not complete
            else f"{len(with_records)} submissions with records are complete"
        )
        raise PublicationError(
            f"{had}, and the survey asks for at least {least}",
            "see who is missing: tallyveil aggregator rounds list "
            f"{survey.name}@{survey.version}; an early-closed round can be opened again with rounds open",
        )
    last, before = transaction.releases.last(), transaction.releases.last_of(survey.hash, round_number)
    material = Material(
        tuple(Participant(item.department, item.held.key.epsilon) for item in complete),
        _pools(transaction, [(item.number, item.held.key.epsilon) for item in complete]),
        before.revision + 1 if before else 1,
        last.sequence + 1 if last else 1,
        last.hash if last else None,
    )
    if before and before.content == material.content:
        raise AlreadyReleased(survey, before)
    return material


def _check_closed(transaction: Transaction, survey: Survey, round_number: int, now: datetime) -> None:
    state, called = transaction.rounds.state(survey, round_number), f"{survey.name}@{survey.version}"
    if state is None:
        raise PublicationError(
            f"the survey has no round {round_number}", f"it has {len(survey.rounds)}: rounds list {called}"
        )
    if not state.closed_early and now < state.window.closes:
        closes = moment_text(state.window.closes)
        if now < state.window.opens:
            raise PublicationError(
                f"round {round_number} has not opened yet; it opens at {moment_text(state.window.opens)}",
                f"wait until it closes, at {closes}; once it is open, rounds close can end it earlier",
            )
        raise PublicationError(
            f"round {round_number} is open; it closes at {closes}",
            f"wait, or close it early: tallyveil aggregator rounds close {called} {round_number}",
        )


def _pools(transaction: Transaction, submissions: list[tuple[int, NanoEpsilon]]) -> tuple[Pool, ...]:
    tallies: dict[tuple[NanoEpsilon, int], Tally] = {}
    holders = Counter[tuple[NanoEpsilon, int]]()
    largest = 0
    for number, epsilon in submissions:
        for cell, tally in transaction.batches.strata(number):
            largest += max(tally.records, int(np.abs(tally.counts).sum()))
            if largest > MAX_RECORDS:  # below it, no sum of counts can overflow
                raise PublicationError(
                    f"the round holds more than {MAX_RECORDS} records", "look for a department that sent nonsense"
                )
            stratum = (epsilon, cell)
            tallies[stratum] = tallies[stratum] + tally if stratum in tallies else tally
            holders[stratum] += 1
    return tuple(
        Pool(epsilon, cell, holders[epsilon, cell], tally.records, tuple(tally.counts.tolist()))
        for (epsilon, cell), tally in sorted(tallies.items(), key=lambda item: item[0])
    )
