"""Canonical JSON and the reading of its objects: one byte string for one document, and everything else refused.

Not here: signatures over it (`test_survey`, `test_release`).
"""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyveil import canonical
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.fields import Fields

texts = st.text(st.characters(exclude_categories=["Cs"]))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | texts,
    lambda children: st.lists(children) | st.dictionaries(texts, children),
    max_leaves=30,
)


@given(documents)
def test_a_document_reads_back_from_its_canonical_bytes(document: object) -> None:
    data = canonical.encode(document)
    assert canonical.decode(data) == document
    assert canonical.encode(canonical.decode(data)) == data


@given(documents)
def test_any_other_writing_of_a_document_is_refused(document: object) -> None:
    data = canonical.encode(document)
    writings = {
        json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False),
        json.dumps(document, sort_keys=True, ensure_ascii=False),
        json.dumps(document, sort_keys=True, separators=(",", ":")),
        json.dumps(document, ensure_ascii=False, separators=(",", ":")),
    }
    for writing in writings:
        other = writing.encode()
        if other == data:
            continue
        with pytest.raises(IntegrityError):
            canonical.decode(other)
    for other in (b" " + data, data + b"\n", b"\xef\xbb\xbf" + data, data[:-1] + b"\x00"):
        with pytest.raises(IntegrityError):
            canonical.decode(other)


@given(st.binary())
def test_any_bytes_are_a_canonical_document_or_an_integrity_error(data: bytes) -> None:
    try:
        document = canonical.decode(data)
    except IntegrityError:
        return
    assert canonical.encode(document) == data


def test_the_canonical_form_is_this_one() -> None:
    document = {"ü": [True, False, None, -1], "a": {"z": 'é"\\\n', "Z": ""}, "😀": 0}
    assert canonical.encode(document) == '{"a":{"Z":"","z":"é\\"\\\\\\n"},"ü":[true,false,null,-1],"😀":0}'.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null ",
        b"1.0",
        b"1e2",
        b"-0",
        b"01",
        b"+1",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'{"a":1.5}',
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"b":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1,}',
        b"[1,2",
        b"'a'",
        b'"\\u0041"',
        b'"\\ud800"',
        b'"\\/"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\t"',
        b"1" * 5_000,
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
    ],
)
def test_bytes_that_are_not_canonical_are_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        canonical.decode(data)


@pytest.mark.parametrize(
    "document", [1.0, float("nan"), {"a": 0.5}, [[[2.0]]], {1: 2}, {"a": b"x"}, {"a": {1, 2}}, (0.5,), object()]
)
def test_what_json_cannot_hold_exactly_is_not_written(document: object) -> None:
    with pytest.raises(TypeError):
        canonical.encode(document)


def test_documents_nest_only_so_deep() -> None:
    """A stack is never filled by a stranger's file, whatever the interpreter's own limit."""
    for depth in range(1, 200):
        data = b"[" * depth + b"]" * depth
        if depth <= canonical.MAX_DEPTH:
            assert canonical.encode(canonical.decode(data)) == data
        elif depth > canonical.MAX_DEPTH + 1:
            with pytest.raises(IntegrityError):
                canonical.decode(data)
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(ValueError, match="too deeply"):
        canonical.encode(deep)


def test_a_text_that_is_not_unicode_is_not_written() -> None:
    with pytest.raises(UnicodeEncodeError):
        canonical.encode("\ud800")


def test_a_digest_is_bound_to_its_purpose() -> None:
    assert canonical.digest("survey", b"{}") != canonical.digest("release", b"{}")
    assert canonical.digest("survey", b"{}") == sha256(b"tallyveil/survey/1\n{}").hexdigest()


def test_fields_are_all_there_known_and_of_their_types() -> None:
    fields = Fields({"a": 1, "b": "x", "c": [1, 2], "d": ["x"]}, "the thing", ("a", "b", "c", "d"))
    assert (fields.integer("a"), fields.text("b"), fields.integers("c"), fields.texts("d")) == (1, "x", (1, 2), ("x",))
    for read, key in (
        (fields.integer, "b"),
        (fields.text, "a"),
        (fields.integers, "d"),
        (fields.texts, "c"),
        (fields.items, "a"),
    ):
        with pytest.raises(ConfigurationError, match=f"'{key}' of the thing"):
            read(key)
    materials: tuple[object, ...] = ({"a": 1}, {"a": 1, "b": 2, "x": 3}, [], None, "a")
    for material in materials:
        with pytest.raises(ConfigurationError):
            Fields(material, "the thing", ("a", "b"))


def test_a_boolean_is_no_whole_number() -> None:
    fields = Fields({"a": True, "b": [1, False]}, "the thing", ("a", "b"))
    with pytest.raises(ConfigurationError):
        fields.integer("a")
    with pytest.raises(ConfigurationError):
        fields.integers("b")
