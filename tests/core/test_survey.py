"""Surveys: what is signed reads back, any change is another survey, and every rule refuses.

Not here: the values inside (`test_values`), canonical form (`test_canonical`), and what an agent approves.
"""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tallyveil import canonical
from tallyveil.domain import Categories, Integers, Intervals
from tallyveil.epsilon import NANO, NanoEpsilon
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.guarantee import ADD_OR_REMOVE
from tallyveil.mechanisms import create, for_survey
from tallyveil.signing import SigningKey, VerifyingKey, seal, signer_of, unverified_body
from tallyveil.survey import (
    BINNED,
    FORMAT,
    MECHANISMS,
    PURPOSE,
    Dimension,
    Minimums,
    Round,
    Survey,
    most_counts,
    open_survey,
    read_unverified_survey,
    sign_survey,
    survey_from_json,
)

VECTOR = Path(__file__).resolve().parents[1] / "vectors" / "core_survey.json"
HASH = "1a385048d28170ffb7cf0d2716bb594dde20e5f4f31a9d589d160538f07ae02c"

Json = dict[str, Any]

EPSILON = NanoEpsilon(2 * NANO)
SEX = Dimension("sex", Categories(("f", "m")))
REGION = Dimension("region", Categories(("01", "02", "13")))
SURVEY = survey_from_json(canonical.decode(VECTOR.read_bytes()))
FIRST, SECOND = SURVEY.rounds
KEY, OTHER_KEY = SigningKey.generate(), SigningKey.generate()


def crossed() -> Survey:
    return replace(SURVEY, dimensions=(SEX, REGION), epsilons=(NanoEpsilon(NANO), EPSILON))


def test_the_format_is_the_one_of_the_vector() -> None:
    assert canonical.encode(SURVEY.to_json()) == VECTOR.read_bytes()
    assert SURVEY.hash == HASH
    assert SURVEY.to_json()["format"] == FORMAT


@pytest.mark.parametrize(
    "survey",
    [
        SURVEY,
        crossed(),
        replace(SURVEY, mechanism="grr", bins=1),
        replace(SURVEY, mechanism="brr", bins=1),
        replace(SURVEY, domain=Categories(("f", "m")), bins=1, mechanism="grr"),
        replace(SURVEY, domain=Intervals(("0", "10", "1e3", "5000")), bins=1, mechanism="grr"),
        replace(SURVEY, title="按年龄统计", purpose="É" * 2000),
    ],
)
def test_a_signed_survey_reads_back(survey: Survey) -> None:
    data = sign_survey(survey, KEY)
    assert open_survey(data, KEY.public) == survey
    assert open_survey(data, VerifyingKey.from_pem(KEY.public.to_pem())).hash == survey.hash
    assert survey_from_json(survey.to_json()) == survey
    assert read_unverified_survey(data) == survey
    assert sign_survey(survey, SigningKey.from_pem(KEY.to_pem())) == data
    assert signer_of(data) == KEY.public.fingerprint
    assert canonical.digest(PURPOSE, canonical.encode(unverified_body(data))) == survey.hash


OTHERWISE: dict[str, Json] = {
    "name": {"name": "high-income-heads-2"},
    "version": {"version": 2},
    "title": {"title": "Heads of high-income households by age."},
    "purpose": {"purpose": "Other."},
    "attribute": {"attribute": "age-of-head"},
    "domain": {"domain": Integers(16, 99)},
    "bins": {"bins": 15},
    "mechanism": {"mechanism": "grr", "bins": 1},
    "epsilons": {"epsilons": (NanoEpsilon(2 * NANO + 1),)},
    "epsilon_floor": {"epsilon_floor": NanoEpsilon(NANO + 1)},
    "dimensions": {"dimensions": (SEX,)},
    "rounds": {"rounds": (FIRST,)},
    "minimums": {"minimums": Minimums(3, 0, 4)},
    "quota": {"quota": 999_999},
    "expires": {"expires": SURVEY.expires - timedelta(seconds=1)},
    "neighbours": {"neighbours": ADD_OR_REMOVE, "mechanism": "histogram-laplace", "bins": 1},
}


def test_a_change_of_any_field_makes_another_hash() -> None:
    assert set(OTHERWISE) == {field.name for field in fields(Survey)}
    hashes = {replace(SURVEY, **change).hash for change in OTHERWISE.values()}
    hashes |= {
        replace(SURVEY, mechanism="brr", bins=1).hash,
        replace(SURVEY, minimums=Minimums(2, 0, 5)).hash,
        replace(SURVEY, dimensions=(SEX, REGION)).hash,
        replace(SURVEY, dimensions=(REGION, SEX)).hash,
        replace(SURVEY, rounds=(FIRST, replace(SECOND, closes=SECOND.closes - timedelta(seconds=1)))).hash,
        SURVEY.hash,
    }
    assert len(hashes) == len(OTHERWISE) + 6


def test_every_key_of_the_body_is_needed_and_no_other_is_taken() -> None:
    body = SURVEY.to_json()
    for key in body:
        with pytest.raises(ConfigurationError, match=key):
            survey_from_json({name: value for name, value in body.items() if name != key})
    with pytest.raises(ConfigurationError, match="urgency"):
        survey_from_json(body | {"urgency": 1})
    with pytest.raises(ConfigurationError, match="p_keep"):
        survey_from_json(body | {"minimums": {"departments": 1, "records_per_cell": 0, "bin_values": 4, "p_keep": 1}})


def test_every_value_of_the_body_has_one_type() -> None:
    body = SURVEY.to_json()
    wrongs: tuple[object, ...] = (None, True, 1.0, -1, "x", [True], ["x", 1], {"a": 1}, [[1]])
    for key in body:
        for wrong in wrongs:
            if type(wrong) is type(body[key]) and key in ("title", "purpose", "name", "attribute"):
                continue
            with pytest.raises(ConfigurationError):
                survey_from_json(body | {key: wrong})


def test_every_byte_of_a_signed_survey_counts() -> None:
    data = sign_survey(SURVEY, KEY)
    for position in range(len(data)):
        for flip in (0x01, 0x20, 0x80):
            altered = bytearray(data)
            altered[position] ^= flip
            with pytest.raises(IntegrityError):
                open_survey(bytes(altered), KEY.public)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"bins":16', b'"bins":85'),
        (b'"bins":16', b'"bins": 16'),
        (b"2000000000", b"9000000000"),
        (b"Heads", b"\\u0048eads"),
        (b'"domain":', b'"domain":null,"domain":'),
        (b'"key":"ed25519:', b'"key":"ED25519:'),
    ],
)
def test_a_survey_altered_after_signing_is_refused(old: bytes, new: bytes) -> None:
    data = sign_survey(SURVEY, KEY)
    assert data.count(old) >= 1
    with pytest.raises(IntegrityError):
        open_survey(data.replace(old, new), KEY.public)


def test_a_survey_cut_off_extended_or_replaced_is_refused() -> None:
    data = sign_survey(SURVEY, KEY)
    for altered in (data[:-1], data + b"\n", b" " + data, data + data, b"", b"{}", b"[]", b"null"):
        with pytest.raises(IntegrityError):
            open_survey(altered, KEY.public)


def test_a_survey_of_another_authority_is_refused_and_both_fingerprints_are_named() -> None:
    with pytest.raises(IntegrityError) as caught:
        open_survey(sign_survey(SURVEY, OTHER_KEY), KEY.public)
    assert KEY.public.fingerprint in str(caught.value)
    assert OTHER_KEY.public.fingerprint in str(caught.value)


def test_a_signature_under_a_borrowed_fingerprint_is_refused() -> None:
    forged = sign_survey(SURVEY, OTHER_KEY).replace(
        OTHER_KEY.public.fingerprint.encode(), KEY.public.fingerprint.encode()
    )
    with pytest.raises(IntegrityError, match="does not hold"):
        open_survey(forged, KEY.public)


def test_a_signature_made_for_another_purpose_is_refused() -> None:
    with pytest.raises(IntegrityError, match="does not hold"):
        open_survey(seal("release", SURVEY.to_json(), KEY), KEY.public)


@pytest.mark.parametrize("depth", [5, 61, 62, 63, 64, 65, 500, *range(860, 1_000, 8), 3_000, 100_000])
def test_a_deeply_nested_file_is_refused_whatever_its_depth(depth: int) -> None:
    body = b"[" * depth + b"]" * depth
    signature = b'{"key":"%s","value":"%s"}' % (KEY.public.fingerprint.encode(), b"0" * 128)
    with pytest.raises(IntegrityError):
        open_survey(b'{"body":%s,"signature":%s}' % (body, signature), KEY.public)


@pytest.mark.parametrize("body", [None, [], "survey", 1, {}, {"format": FORMAT}])
def test_signed_material_that_is_no_survey_is_refused(body: Any) -> None:
    with pytest.raises(ConfigurationError):
        open_survey(seal(PURPOSE, body, KEY), KEY.public)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "tallyveil-survey/2"),
        ("mechanism", "ss"),
        ("neighbours", "add-or-remove"),
        ("neighbours", "all"),
        ("mechanism", "auto"),
        ("minimums", {"departments": 1, "records_per_cell": 5, "bin_values": 4}),
        ("domain", {"kind": "text"}),
    ],
)
def test_a_signed_value_that_is_not_supported_is_refused_not_ignored(key: str, value: object) -> None:
    with pytest.raises(ConfigurationError):
        open_survey(seal(PURPOSE, SURVEY.to_json() | {key: value}, KEY), KEY.public)


def moment(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


BROKEN: list[Json] = [
    {"name": ""},
    {"name": "Heads"},
    {"name": "9heads"},
    {"name": "heads of households"},
    {"name": "a" * 64},
    {"name": "heads\n"},
    {"attribute": "Age"},
    {"dimensions": (Dimension("Sex", SEX.domain),)},
    {"dimensions": (SEX, SEX)},
    {"dimensions": (Dimension("age", SEX.domain),)},
    {"version": 0},
    {"version": -1},
    {"version": 2**31},
    {"title": ""},
    {"title": "a" * 201},
    {"title": "two\nlines"},
    {"title": "\x1b[2J"},
    {"purpose": ""},
    {"purpose": "a" * 2_001},
    {"purpose": "\ud800"},
    {"mechanism": ""},
    {"mechanism": "GRR"},
    {"mechanism": "olh"},
    {"mechanism": "grr"},
    {"mechanism": "grr", "bins": 2},
    {"bins": 0},
    {"bins": -1},
    {"bins": 86},
    {"bins": 85, "minimums": Minimums(1, 0, 2)},
    {"bins": 43, "minimums": Minimums(1, 0, 2)},
    {"bins": 22},
    {"minimums": Minimums(1, 0, 1)},
    {"minimums": Minimums(1, 0, 0)},
    {"minimums": Minimums(1, 0, -4)},
    {"minimums": Minimums(1, 0, 6)},
    {"minimums": Minimums(0, 0, 4)},
    {"minimums": Minimums(1, 1, 4)},
    {"minimums": Minimums(1, -1, 4)},
    {"epsilons": ()},
    {"epsilons": (NanoEpsilon(3 * NANO), EPSILON)},
    {"epsilons": (EPSILON, EPSILON)},
    {"epsilons": tuple(NanoEpsilon(NANO + i) for i in range(17))},
    {"epsilons": (NanoEpsilon(NANO - 1),)},
    {"epsilon_floor": NanoEpsilon(2 * NANO + 1)},
    {"rounds": ()},
    {"rounds": (SECOND,)},
    {"rounds": (SECOND, FIRST)},
    {"rounds": (FIRST, FIRST)},
    {"rounds": (FIRST, replace(SECOND, number=3))},
    {"rounds": (replace(FIRST, closes=FIRST.opens),)},
    {"rounds": (replace(FIRST, closes=FIRST.opens - timedelta(days=1)),)},
    {"rounds": (FIRST, replace(SECOND, opens=FIRST.closes - timedelta(seconds=1)))},
    {"rounds": tuple(Round(i, moment(1) + timedelta(i), moment(2) + timedelta(i)) for i in range(1, 1_002))},
    {"expires": SECOND.closes - timedelta(seconds=1)},
    {"rounds": (Round(1, datetime(2026, 1, 1), datetime(2026, 1, 2)),)},
    {"rounds": (replace(FIRST, opens=datetime(2026, 1, 1)),)},
    {"expires": datetime(2027, 1, 1)},
    {"rounds": (replace(FIRST, opens=FIRST.opens + timedelta(microseconds=1)),)},
    {"expires": SURVEY.expires + timedelta(milliseconds=1)},
    {"quota": 0},
    {"quota": -1},
    {"quota": 2**53},
    {"dimensions": tuple(Dimension(f"d{i}", Categories(tuple("abcdefgh"))) for i in range(5))},
]


@pytest.mark.parametrize("change", BROKEN, ids=range(len(BROKEN)))
def test_a_survey_that_breaks_a_rule_is_refused(change: Json) -> None:
    with pytest.raises(ConfigurationError):
        replace(SURVEY, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a" * 63},
        {"bins": 21},
        {"bins": 42, "minimums": Minimums(1, 0, 2)},
        {"minimums": Minimums(1, 0, 5)},
        {"mechanism": "grr", "bins": 1, "domain": Categories(("f", "m"))},
        {"epsilons": (NanoEpsilon(NANO), EPSILON)},
        {"epsilons": (NanoEpsilon(16 * NANO),), "epsilon_floor": NanoEpsilon(16 * NANO)},
        {"expires": SECOND.closes},
        {"quota": 2**53 - 1},
        {
            "dimensions": tuple(Dimension(f"d{i}", Categories(tuple("abcdefgh"))) for i in range(4)),
            "domain": Categories(tuple(f"v{i}" for i in range(16))),
            "bins": 4,
        },
        {"expires": SURVEY.expires.astimezone(timezone(timedelta(hours=8)))},
    ],
)
def test_a_survey_at_the_edge_of_a_rule_is_made(change: Json) -> None:
    survey = replace(SURVEY, **change)
    assert survey_from_json(survey.to_json()) == survey


def test_cells_count_with_the_last_dimension_varying_fastest() -> None:
    assert SURVEY.cell_count == 1
    assert SURVEY.cells == ((),)
    assert crossed().cell_count == 6
    assert crossed().cells == (("f", "01"), ("f", "02"), ("f", "13"), ("m", "01"), ("m", "02"), ("m", "13"))


def test_a_round_is_found_by_its_number_only() -> None:
    assert SURVEY.round(1) == FIRST
    assert SURVEY.round(2) == SECOND
    assert SURVEY.round(0) is SURVEY.round(3) is SURVEY.round(-1) is None


def test_a_mechanism_is_made_at_a_permitted_epsilon_only() -> None:
    assert for_survey(SURVEY, EPSILON).name == "brr"
    with pytest.raises(ConfigurationError):
        for_survey(SURVEY, NanoEpsilon(EPSILON - 1))


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
        b"\xff\xfe",
        X25519PrivateKey.generate().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    ],
)
def test_bytes_that_are_no_key_are_refused(pem: bytes) -> None:
    for read in (VerifyingKey.from_pem, SigningKey.from_pem):
        with pytest.raises(ConfigurationError):
            read(pem)


def test_a_private_key_is_not_shown_and_not_taken_for_a_public_one() -> None:
    assert KEY.public.fingerprint in repr(KEY)
    assert KEY.to_pem().splitlines()[1].decode() not in repr(KEY)
    with pytest.raises(ConfigurationError):
        VerifyingKey.from_pem(KEY.to_pem())
    with pytest.raises(ConfigurationError):
        SigningKey.from_pem(KEY.public.to_pem())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("size", [4, 85, 128, 1000])
def test_no_batch_has_more_counts_than_a_survey_reckons_with(mechanism: str, size: int) -> None:
    if mechanism == "rappor" and size > 128:
        pytest.skip("rappor takes at most 128 candidates")
    for epsilon in (0.01, 1.0, 16.0):
        made = create(mechanism, domain_size=size, epsilon=epsilon, bins=2 if mechanism in BINNED else 1)
        assert made.law.outputs <= most_counts(mechanism, size)


def test_a_survey_whose_release_nobody_could_read_is_not_made() -> None:
    many = tuple(Dimension(f"d{i}", Categories(tuple("abcdefgh"))) for i in range(2))
    wide = Integers(0, 4_999)
    for change in (
        {"domain": wide, "dimensions": many},
        {"mechanism": "hcms", "bins": 1, "dimensions": many},
    ):
        with pytest.raises(ConfigurationError, match="are published"):
            replace(SURVEY, **change)  # type: ignore[arg-type]
