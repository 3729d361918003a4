"""A release verifies as it was signed and not otherwise: every byte, every number, the chain, and without our code.

Not here: what is in it (`test_release_contents`), the arithmetic of estimates and intervals (`test_estimates`,
`test_intervals`) and the decision to publish.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature

import verify_release
from releases import KEY, TESTS, Body, crossed, national, signed
from tallyveil import canonical
from tallyveil.epsilon import NANO
from tallyveil.errors import IntegrityError
from tallyveil.release import PURPOSE, Release, check_chain, open_release, release_hash, sign_release
from tallyveil.signing import SigningKey, seal

PEM = KEY.public.to_pem()
SLICES = 8


def verifies_elsewhere(data: bytes, pem: bytes = PEM) -> bool:
    """Whether the independent script finds nothing."""
    try:
        verify_release.verify(data, pem)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("make", [national, crossed])
def test_a_signed_release_verifies_and_holds_what_it_was_made_from(make: Callable[[], Release]) -> None:
    release = make()
    data = sign_release(release, KEY)
    opened = open_release(data, KEY.public)
    assert opened.release == release
    assert opened.body == release.to_json()
    assert opened.hash == release_hash(release.to_json())
    assert opened.document == data
    assert verifies_elsewhere(data)


def others(byte: int) -> list[int]:
    """The next digit or letter, the other case, and a quote or bracket."""
    return [byte ^ 0x01, byte ^ 0x20, ord('"') if byte != ord('"') else ord("}")]


def with_byte(data: bytes, position: int, byte: int) -> bytes:
    return data[:position] + bytes([byte]) + data[position + 1 :]


@pytest.mark.parametrize("part", range(SLICES))
def test_no_byte_of_a_release_can_be_another(part: int) -> None:
    """Every position is tried through `open_release` with one replacement, and with all of them in the envelope."""
    data = signed()
    envelope = {*range(len(b'{"body":')), *range(data.rindex(b',"signature":'), len(data))}
    for position in range(part * len(data) // SLICES, (part + 1) * len(data) // SLICES):
        replacements = others(data[position])
        for byte in replacements if position in envelope else [replacements[position % len(replacements)]]:
            with pytest.raises(IntegrityError):
                open_release(with_byte(data, position, byte), KEY.public)


def test_no_byte_of_the_body_can_be_another_under_its_signature() -> None:
    """The step that fails, alone, for the replacements that the test above leaves out: canonical form makes the bytes
    of the file those that the signature covers."""
    data = signed()
    start, end = len(b'{"body":'), data.rindex(b',"signature":')
    body, signature = data[start:end], bytes.fromhex(json.loads(data)["signature"]["value"])
    prefix = f"tallyveil/{PURPOSE}/1\n".encode()
    KEY.public.key.verify(signature, prefix + body)
    for position in range(len(body)):
        replacements = others(body[position])
        replacements.pop((start + position) % len(replacements))
        for byte in replacements:
            with pytest.raises(InvalidSignature):
                KEY.public.key.verify(signature, prefix + with_byte(body, position, byte))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(SLICES))
def test_no_byte_of_a_release_can_be_any_of_three_others(part: int) -> None:
    data = signed()
    for position in range(part * len(data) // SLICES, (part + 1) * len(data) // SLICES):
        for byte in others(data[position]):
            with pytest.raises(IntegrityError):
                open_release(with_byte(data, position, byte), KEY.public)


def test_no_byte_of_a_release_can_be_missing_or_doubled() -> None:
    data = signed()
    for position in range(0, len(data), 61):
        for altered in (data[:position] + data[position + 1 :], data[: position + 1] + data[position:]):
            if altered != data:
                with pytest.raises(IntegrityError):
                    open_release(altered, KEY.public)


def upper_case_signature(data: bytes) -> bytes:
    value = json.loads(data)["signature"]["value"]
    return data.replace(value.encode(), value.upper().encode())


def upper_case_fingerprint(data: bytes) -> bytes:
    fingerprint = KEY.public.fingerprint
    return data.replace(fingerprint.encode(), fingerprint.upper().replace("ED", "ed", 1).encode())


def with_more_keys(data: bytes) -> bytes:
    return canonical.encode(json.loads(data) | {"comment": ""})


def indented(data: bytes) -> bytes:
    return json.dumps(json.loads(data), indent=1).encode()


ALTERATIONS: list[Callable[[bytes], bytes]] = [
    bytes.upper,
    upper_case_signature,
    upper_case_fingerprint,
    with_more_keys,
    indented,
    lambda data: b"",
    lambda data: data[:-1],
    lambda data: data[: len(data) // 2],
    lambda data: data + b"\n",
    lambda data: data + b" ",
    lambda data: data + b"\x00",
    lambda data: data + data,
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: b" " + data,
    lambda data: data.replace(b",", b", ", 1),
    lambda data: data.replace(b'"round":1,', b'"round":2,'),
    lambda data: data.replace(b'"previous":null', b'"previous":"' + b"0" * 64 + b'"'),
    lambda data: data.replace(b'"records":16685', b'"records":16685.0'),
    lambda data: data.replace(b'"body":{', b'"body":{"estimator":"x",'),
    lambda data: data.decode().encode("utf-16"),
]


@pytest.mark.parametrize("alter", ALTERATIONS, ids=range(len(ALTERATIONS)))
def test_an_altered_release_is_refused_here_and_by_the_independent_script(alter: Callable[[bytes], bytes]) -> None:
    altered = alter(signed())
    assert altered != signed()
    with pytest.raises(IntegrityError):
        open_release(altered, KEY.public)
    assert not verifies_elsewhere(altered)


def test_the_independent_script_agrees_on_altered_bytes() -> None:
    data = signed()
    assert verifies_elsewhere(data)
    for position in [*range(0, 400), *range(400, len(data) - 400, 97), *range(len(data) - 400, len(data))]:
        for flip in (0x01, 0x20):
            altered = data[:position] + bytes([data[position] ^ flip]) + data[position + 1 :]
            assert not verifies_elsewhere(altered)


def test_the_independent_script_runs_alone_and_answers_by_its_exit_code(tmp_path: Path) -> None:
    release, public, other = tmp_path / "release.json", tmp_path / "release.pub", tmp_path / "other.pub"
    release.write_bytes(signed())
    public.write_bytes(PEM)
    other.write_bytes(SigningKey.generate().public.to_pem())
    altered = tmp_path / "altered.json"
    altered.write_bytes(signed().replace(b"16685", b"16686"))
    script = TESTS / "verify_release.py"
    lines = script.read_text().splitlines()
    imported = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported == {"json", "sys", "cryptography"}
    cases = (((release, public), 0), ((altered, public), 1), ((release, other), 1), ((public, release), 1))
    for arguments, code in cases:
        done = subprocess.run([sys.executable, "-I", script, *arguments], capture_output=True, timeout=60, check=False)
        assert done.returncode == code
        assert (b"verified" in done.stdout) == (code == 0)


def test_a_release_of_another_key_is_refused() -> None:
    other = SigningKey.generate()
    with pytest.raises(IntegrityError, match="another key"):
        open_release(signed(), other.public)
    forged = sign_release(national(), other).replace(other.public.fingerprint.encode(), KEY.public.fingerprint.encode())
    with pytest.raises(IntegrityError, match="does not hold"):
        open_release(forged, KEY.public)
    assert not verifies_elsewhere(forged)


def test_a_survey_signed_with_the_release_key_is_no_release() -> None:
    with pytest.raises(IntegrityError):
        open_release(seal("survey", national().to_json(), KEY), KEY.public)


def bumped(number: str) -> str:
    """A decimal text with one more in its last place."""
    places = Decimal(1).scaleb(int(Decimal(number).as_tuple().exponent))
    return f"{Decimal(number) + places:f}"


def bump(body: Body, index: int, key: str) -> None:
    """One more in the last place of a number of a row."""
    row = body["tables"][0]["rows"][index]
    row[key] = bumped(row[key]) if isinstance(row[key], str) else row[key] + 1


def first(body: Body, name: str) -> Any:
    """The first item under a key."""
    return body[name][0]


def move_support(body: Body) -> None:
    support = first(body, "pools")["support"]
    support[3], support[4] = support[3] + 1, support[4] - 1


def flatter(body: Body) -> None:
    next(row for row in first(body, "tables")["rows"] if row["quality"] != "A")["quality"] = "A"


WRONG: dict[str, Callable[[Body], object]] = {
    "estimate": lambda body: bump(body, 40, "estimate"),
    "standard error": lambda body: bump(body, 0, "standard_error"),
    "lower bound": lambda body: bump(body, 40, "low"),
    "upper bound": lambda body: bump(body, 40, "high"),
    "quality": flatter,
    "row's support": lambda body: bump(body, 3, "support"),
    "bin's records": lambda body: first(body, "tables")["bins"][3].update(records=1),
    "table's records": lambda body: first(body, "tables").update(records=1),
    "records": lambda body: body.update(records=body["records"] + 1),
    "pool's records": lambda body: first(body, "pools").update(records=1),
    "pool's support": lambda body: first(body, "pools")["support"].__setitem__(3, 7),
    "support moved": move_support,
    "support below zero": lambda body: first(body, "pools")["support"].__setitem__(0, -1),
    "support beyond 64 bits": lambda body: first(body, "pools")["support"].__setitem__(0, 2**70),
    "support too short": lambda body: first(body, "pools")["support"].pop(),
    "pool's epsilon": lambda body: first(body, "pools").update(epsilon_nano=3 * NANO),
    "weight": lambda body: first(body, "parameters").update(keep_weight=1),
    "survey": lambda body: body["survey"].update(bins=15),
    "survey's hash": lambda body: body.update(survey_hash="0" * 64),
    "realised epsilon": lambda body: first(body, "guarantees").update(realised_epsilon="1.000000000000"),
    "kind": lambda body: first(body, "guarantees").update(kind="epsilon-LDP"),
    "what is not protected": lambda body: first(body, "guarantees").update(not_protected=[]),
    "no guarantee": lambda body: body.update(guarantees=[]),
    "no note": lambda body: body["notes"].pop(),
    "no row": lambda body: first(body, "tables")["rows"].pop(),
    "more keys": lambda body: first(body, "tables")["rows"][0].update(comment=""),
    "estimator": lambda body: body.update(estimator="tallyveil 0.0.1"),
    "false for 0": lambda body: first(body, "tables")["rows"][0].update(bin=False),
    "true for 1": lambda body: body.update(revision=True),
    "moment": lambda body: body.update(released_at="yesterday"),
    "digits of a moment": lambda body: body.update(released_at="２０２６-02-02T03:04:05Z"),
}


@pytest.mark.parametrize("part", WRONG)
def test_a_signed_release_with_a_wrong_part_is_refused(part: str) -> None:
    """The publisher's key does not make a number right: every one is computed again."""
    body = json.loads(canonical.encode(national().to_json()))
    WRONG[part](body)
    assert canonical.encode(body) != canonical.encode(national().to_json())
    with pytest.raises(IntegrityError, match="is signed, yet"):
        open_release(seal(PURPOSE, body, KEY), KEY.public)


@pytest.mark.parametrize("body", [None, [], {}, "x", 1, {"format": "tallyveil-release/1"}])
def test_signed_material_that_is_no_release_is_refused(body: Any) -> None:
    with pytest.raises(IntegrityError):
        open_release(seal(PURPOSE, body, KEY), KEY.public)


def test_every_key_of_a_release_is_needed() -> None:
    body = national().to_json()
    for key in body:
        with pytest.raises(IntegrityError):
            open_release(seal(PURPOSE, {k: v for k, v in body.items() if k != key}, KEY), KEY.public)


def test_a_chain_holds_until_a_release_is_left_out_replaced_or_moved() -> None:
    opened = [open_release(signed(), KEY.public)]
    for revision in (2, 3, 4):
        before = opened[-1]
        release = replace(
            before.release,
            revision=revision,
            previous=before.hash,
            released_at=before.release.released_at + timedelta(hours=1),
        )
        opened.append(open_release(sign_release(release, KEY), KEY.public))
    check_chain(opened)
    check_chain(opened[1:])
    check_chain([])
    replaced = open_release(sign_release(replace(opened[1].release, round=2), KEY), KEY.public)
    broken = (
        [opened[0], *opened[2:]],
        [opened[0], replaced, *opened[2:]],
        list(reversed(opened)),
        [opened[0], opened[0]],
        [*opened, opened[0]],
    )
    for chain in broken:
        with pytest.raises(IntegrityError):
            check_chain(chain)


def test_a_file_without_its_rows_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred bytes must not set a reader to work for an hour."""
    body: Body = national().to_json()
    own: list[Any] = body["tables"]
    more: list[list[Any]] = [[], [*own, *own]]
    monkeypatch.setattr("tallyveil.release.build_tables", None)
    for tables in more:
        with pytest.raises(IntegrityError):
            open_release(seal("release", {**body, "tables": tables}, KEY), KEY.public)


def test_nothing_of_a_document_is_read_before_its_signature_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's gigabytes of nested lists cost their length alone."""
    read = list[int]()
    decode = canonical.decode

    def noting(data: bytes) -> object:
        read.append(len(data))
        return decode(data)

    monkeypatch.setattr("tallyveil.canonical.decode", noting)
    wicked = signed().replace(b'{"body":{', b'{"body":{"a":[' + b"{}," * 100_000 + b"{}],", 1)
    with pytest.raises(IntegrityError, match="does not hold"):
        open_release(wicked, KEY.public)
    assert max(read) < 1_000
