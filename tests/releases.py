"""Releases of the FIES heads, for tests: one of the nation, one crossed by a dimension and with two epsilons.

Not here: any test.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deterministic import Named
from tallyveil import canonical
from tallyveil.domain import Categories
from tallyveil.epsilon import NANO, NanoEpsilon
from tallyveil.mechanisms import for_survey
from tallyveil.release import Participant, Release, sign_release
from tallyveil.signing import SigningKey
from tallyveil.survey import Dimension, Survey, survey_from_json
from tallyveil.tables import Pool

TESTS = Path(__file__).resolve().parent
SURVEY = survey_from_json(canonical.decode((TESTS / "vectors/core_survey.json").read_bytes()))
AGES = np.loadtxt(TESTS / "vectors/fies_age_counts.csv", delimiter=",", skiprows=3, usecols=1, dtype=np.int64)
STRICT, LAX = NanoEpsilon(NANO), NanoEpsilon(2 * NANO)
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(b"a key for tests, known to anyone"))

Body = dict[str, Any]


def pool(survey: Survey, epsilon: NanoEpsilon, cell: int, departments: int, label: str, share: int = 1) -> Pool:
    """Reports of the FIES heads, every `share`-th of each age."""
    mechanism = for_survey(survey, epsilon, Named(f"release {label}"))
    tally = mechanism.tally(mechanism.perturb(np.repeat(np.arange(AGES.size), AGES // share)))
    return Pool(epsilon, cell, departments, tally.records, tuple(tally.counts.tolist()))


@cache
def national() -> Release:
    """The 16,685 heads, from 17 offices that all chose epsilon 2."""
    offices = tuple(Participant(f"office-{number:02}", LAX) for number in range(1, 18))
    moment = datetime(2026, 2, 2, 3, 4, 5, tzinfo=UTC)
    return Release(SURVEY, 1, 1, moment, None, offices, (pool(SURVEY, LAX, 0, 17, "national"),))


@cache
def crossed() -> Release:
    """Two epsilons and two cells, one of them without records."""
    sex = Dimension("sex", Categories(("f", "m")))
    survey = replace(SURVEY, epsilons=(STRICT, LAX), dimensions=(sex,), mechanism="grr", bins=1)
    pools = (
        pool(survey, STRICT, 0, 2, "strict", share=10),
        pool(survey, LAX, 0, 3, "lax", share=3),
        Pool(LAX, 1, 1, 0, (0,) * 85),
    )
    participants = (Participant("a", STRICT), Participant("b", STRICT), *(Participant(name, LAX) for name in "cde"))
    return Release(survey, 2, 3, datetime(2026, 3, 2, tzinfo=UTC), "ab" * 32, participants, pools)


@cache
def signed() -> bytes:
    return sign_release(national(), KEY)
