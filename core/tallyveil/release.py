"""A release: the signed, chained, versioned table of estimates of one round.

Not here: the estimates' arithmetic (`tallyveil.tables`) and the decision to publish. A release holds everything its
numbers follow from, so that reading one means computing it again and comparing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise

import numpy as np

from tallyveil import canonical
from tallyveil.amplification import amplified, histogram_text
from tallyveil.batch import MAX_RECORDS
from tallyveil.canonical import Json
from tallyveil.epsilon import NanoEpsilon, checked_nano
from tallyveil.errors import ConfigurationError, IntegrityError, TallyveilError
from tallyveil.fields import Fields
from tallyveil.guarantee import Guarantee
from tallyveil.identity import NAME
from tallyveil.mechanisms import for_survey
from tallyveil.moments import moment_text, parse_moment
from tallyveil.signing import SigningKey, VerifyingKey, seal, unseal
from tallyveil.survey import Survey, survey_from_json
from tallyveil.tables import Pool, Table, build_tables

_KEYS = (
    "format",
    "estimator",
    "survey",
    "survey_hash",
    "round",
    "revision",
    "released_at",
    "previous",
    "records",
    "participants",
    "guarantees",
    "notes",
    "parameters",
    "pools",
    "tables",
)

_TABLE_KEYS = ("cell", "records", "bins", "rows")
_HASH = re.compile(r"[0-9a-f]{64}")

FORMAT = "tallyveil-release/1"
PURPOSE = "release"
ESTIMATOR = "tallyveil-estimator/1"
"""Named in every release; another one only where the same counts would give other numbers or other texts."""

ERRORS_NOTE = (
    "Standard errors, 95 % intervals and quality letters count the perturbation's error only, "
    "not coverage, misreporting or processing."
)
COMPOSITION_NOTE = (
    "Epsilon adds up over rounds, surveys and queries about the same person: a person in m departments, or with up to "
    "m records, is protected by m times the epsilon stated here."
)


@dataclass(frozen=True)
class Participant:
    """A department whose complete submission is in the release, and the epsilon it chose."""

    department: str
    epsilon: NanoEpsilon


@dataclass(frozen=True)
class Release:
    """What a release is made from; everything else in the document follows.

    Args:
        survey: The survey as signed.
        round: Number of the round.
        revision: 1, 2, …
        released_at: The aggregator's time, UTC.
        previous: Hash of the release before this one on the same aggregator, or None for its first.
        participants: In order of their names.
        pools: Support counts, in order of epsilon and cell.
    """

    survey: Survey
    round: int
    revision: int
    released_at: datetime
    previous: str | None
    participants: tuple[Participant, ...]
    pools: tuple[Pool, ...]

    def __post_init__(self) -> None:
        names = [item.department for item in self.participants]
        chosen = Counter(item.epsilon for item in self.participants)
        keys = [(pool.epsilon, pool.cell) for pool in self.pools]
        _require(self.survey.round(self.round) is not None, "a round of its survey")
        _require(1 <= self.revision < 2**31, "a revision from 1 on")
        _require(self.previous is None or bool(_HASH.fullmatch(self.previous)), "the hash of a release before it")
        _require(all(NAME.fullmatch(name) for name in names), "names that certificates give departments")
        _require(bool(names) and names == sorted(set(names)), "participants in order of their names, each once")
        _require(chosen.keys() <= set(self.survey.epsilons), "an epsilon that the survey permits")
        _require(keys == sorted(set(keys)), "pools in order of epsilon and cell, each once")
        for pool in self.pools:
            law = for_survey(self.survey, pool.epsilon).law
            _require(len(pool.support) == law.outputs, "as many support counts as its mechanism has")
            _require(min(pool.support) >= (-MAX_RECORDS if law.signed else 0), "support counts from 0 on")
            _require(max(pool.support) <= MAX_RECORDS, "support counts up to 2^53 - 1")
            _require(0 <= pool.records <= MAX_RECORDS, "a number of records from 0 to 2^53 - 1")
            _require(0 <= pool.cell < self.survey.cell_count, "a dimension cell of its survey")
            _require(1 <= pool.departments <= chosen[pool.epsilon], "as many departments as chose the epsilon")

    @property
    def epsilons(self) -> tuple[NanoEpsilon, ...]:
        """The values that the participants chose, rising."""
        return tuple(sorted({item.epsilon for item in self.participants}))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One for each epsilon: what holds, and what is not protected."""
        return tuple(for_survey(self.survey, epsilon).guarantee for epsilon in self.epsilons)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The total, then one table per dimension cell where there are dimensions."""
        return build_tables(self.survey, self.pools)

    @property
    def records(self) -> int:
        """n, over all strata; an estimate where the mechanism does not tell it."""
        return self.tables[0].records

    def smallest_histogram(self, epsilon: NanoEpsilon) -> int:
        """Records of the smallest histogram of reports that a reader sees apart: a pool's, or a bin's; 0 for none."""
        sums = list[int]()
        for pool in self.pools:
            if pool.epsilon == epsilon:
                bins = self.survey.binning
                sums += [pool.records] if bins.bins == 1 else np.add.reduceat(pool.support, bins.starts).tolist()
        return min((records for records in sums if records), default=0)

    def _histogram_json(self, guarantee: Guarantee) -> Json | None:
        """What this release's histograms add to the guarantee of one report, for its readers."""
        records = self.smallest_histogram(guarantee.epsilon)
        text = histogram_text(guarantee, records) if records else None
        if text is None:
            return None
        found = amplified(guarantee.epsilon, records)
        delta = None if found.delta == 0 else max(10**6, 10 * found.records)
        return {
            "records": found.records,
            "epsilon_nano": found.epsilon_nano,
            "delta_one_in": delta,
            "text": text,
        }

    def to_json(self) -> Json:
        """The body that is signed."""
        return {
            "format": FORMAT,
            "estimator": ESTIMATOR,
            "survey": self.survey.to_json(),
            "survey_hash": self.survey.hash,
            "round": self.round,
            "revision": self.revision,
            "released_at": moment_text(self.released_at),
            "previous": self.previous,
            "records": self.records,
            "participants": [
                {"department": item.department, "epsilon_nano": item.epsilon} for item in self.participants
            ],
            "guarantees": [
                _guarantee_json(guarantee) | {"histogram": self._histogram_json(guarantee)}
                for guarantee in self.guarantees
            ],
            "notes": [ERRORS_NOTE, COMPOSITION_NOTE],
            "parameters": _parameters(self.survey, self.epsilons),
            "pools": [
                {
                    "epsilon_nano": pool.epsilon,
                    "cell": pool.cell,
                    "departments": pool.departments,
                    "records": pool.records,
                    "support": list(pool.support),
                }
                for pool in self.pools
            ],
            "tables": [table.to_json() for table in self.tables],
        }


@dataclass(frozen=True)
class VerifiedRelease:
    """A release whose signature holds and whose every number was computed again.

    Args:
        release: The inputs.
        body: The document that was signed.
        hash: The release's hash, which the next release names as `previous`.
        document: The signed file's bytes.
    """

    release: Release
    body: Json
    hash: str
    document: bytes


def sign_release(release: Release, key: SigningKey) -> bytes:
    """The signed release file."""
    return seal(PURPOSE, release.to_json(), key)


def release_hash(body: Json) -> str:
    """SHA-256 of the canonical body, as 64 hexadecimal digits."""
    return canonical.digest(PURPOSE, canonical.encode(body))


def open_release(data: bytes, trusted: VerifyingKey) -> VerifiedRelease:
    """Verify a release file: form, signature, and every number in it.

    Raises:
        IntegrityError: A byte differs from what was signed, another key signed it, or a number does not follow from
            the support counts.
    """
    body = unseal(PURPOSE, data, trusted)
    try:
        release = _release_from_json(body)
        _require_complete(body, release)
        again = release.to_json()
    except (TallyveilError, ValueError):
        raise IntegrityError(
            f"the release is signed, yet {ESTIMATOR} cannot read it",
            next_step="update this software, or ask the publisher",
        ) from None
    if canonical.encode(again) != canonical.encode(body):  # true == 1 in Python, not in the file
        raise IntegrityError(
            "the release is signed, yet its numbers do not follow from its support counts",
            next_step=f"this is {ESTIMATOR}; where the release names another estimator, try that version",
        )
    return VerifiedRelease(release, again, release_hash(again), data)


def check_chain(releases: Sequence[VerifiedRelease]) -> None:
    """Whether each release names the one before it.

    Raises:
        IntegrityError: A link is missing or altered.
    """
    for before, after in pairwise(releases):
        if after.release.previous != before.hash:
            raise IntegrityError(
                f"the release of round {after.release.round} does not follow the one before it",
                next_step="fetch the whole list again; a release was withheld or replaced",
            )


def _require_complete(body: object, release: Release) -> None:
    """Refuse a file without all tables and rows before any number is computed, which takes a while for large ones."""
    tables = [Fields(item, "a table", _TABLE_KEYS) for item in Fields(body, "the release", _KEYS).items("tables")]
    survey = release.survey
    _require(len(tables) == 1 + (survey.cell_count if survey.dimensions else 0), "a table for each dimension cell")
    _require(all(len(table.items("rows")) == survey.domain.size for table in tables), "a row for each value")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ConfigurationError(f"a release has {what}", not_done="the release was not made or used")


def _guarantee_json(guarantee: Guarantee) -> Json:
    return {
        "epsilon_nano": guarantee.epsilon,
        "kind": guarantee.kind,
        "realised_epsilon": f"{guarantee.realised_epsilon:.12f}",
        "text": guarantee.text,
        "not_protected": list(guarantee.not_protected),
    }


def _parameters(survey: Survey, epsilons: Sequence[NanoEpsilon]) -> list[Json]:
    return [
        {"epsilon_nano": epsilon, **parameters}
        for epsilon in epsilons
        for parameters in for_survey(survey, epsilon).law.parameters
    ]


def _release_from_json(body: object) -> Release:
    fields = Fields(body, "the release", _KEYS)
    previous = fields.value("previous")
    return Release(
        survey_from_json(fields.value("survey")),
        fields.integer("round"),
        fields.integer("revision"),
        parse_moment(fields.text("released_at")),
        None if previous is None else fields.text("previous"),
        tuple(_participant(item) for item in fields.items("participants")),
        tuple(_pool(item) for item in fields.items("pools")),
    )


def _participant(item: object) -> Participant:
    fields = Fields(item, "a participant", ("department", "epsilon_nano"))
    return Participant(fields.text("department"), checked_nano(fields.integer("epsilon_nano")))


def _pool(item: object) -> Pool:
    fields = Fields(item, "a pool", ("epsilon_nano", "cell", "departments", "records", "support"))
    support = fields.integers("support")
    return Pool(
        checked_nano(fields.integer("epsilon_nano")),
        fields.integer("cell"),
        fields.integer("departments"),
        fields.integer("records"),
        support,
    )
