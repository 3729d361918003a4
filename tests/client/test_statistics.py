# pyright: standard
"""What a consumer gets: verified releases only, whatever the server sends.

Not here: how they are shown and exported (`test_stats_commands`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from certificates import TestAuthority
from consumer_scene import Scene, release_of, summary
from tallyveil.canonical import Json
from tallyveil.cli import dispatch
from tallyveil.errors import ConfigurationError, IntegrityError, PeerError, TallyveilError
from tallyveil.release import sign_release
from tallyveil.signing import SigningKey, seal
from tallyveil.wire.v1 import statistics_pb2 as pb
from tallyveil_client.consumer import Statistics


def test_a_release_is_returned_once_it_is_verified(scene: Scene) -> None:
    with scene.consumer() as statistics:
        verified = statistics.get("age", round=1)
        assert verified.release == release_of()
        assert verified.document == scene.stand_in.document
        assert statistics.get("age", 1, version=1, revision=1).hash == verified.hash
    asked = [pb.GetReleaseRequest(survey_name="age", round=1)]
    asked += [pb.GetReleaseRequest(survey_name="age", survey_version=1, round=1, revision=1)]
    assert scene.stand_in.requests == asked


def test_without_a_with_statement_the_first_call_connects(scene: Scene) -> None:
    statistics = scene.consumer()
    assert statistics.get("age").release.round == 1
    statistics.close()
    statistics.close()
    assert statistics.get("age").release.round == 1
    statistics.close()


UNTRUE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda document: b"",
    "garbage": lambda document: b"\xff\x00garbage",
    "cut": lambda document: document[:-1],
    "longer": lambda document: document + b"\n",
    "one digit changed": lambda document: document.replace(b'"support":30', b'"support":31'),
    "reformatted": lambda document: json.dumps(json.loads(document), indent=1).encode(),
    "signed by another": lambda document: sign_release(release_of(), SigningKey.generate()),
    "unsigned": lambda document: json.dumps(release_of().to_json(), sort_keys=True, separators=(",", ":")).encode(),
}


@pytest.mark.parametrize("kind", UNTRUE)
def test_what_does_not_verify_is_never_returned_shown_or_kept(
    scene: Scene, kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scene.stand_in.document = UNTRUE[kind](scene.stand_in.document)
    with scene.consumer() as statistics, pytest.raises(IntegrityError):
        statistics.get("age")
    output = tmp_path / "kept.json"
    assert dispatch.run(["stats", "get", "age", "--output", str(output), *scene.connection]) == IntegrityError.exit_code
    assert capsys.readouterr().out == ""
    assert not output.exists()


def test_a_signed_release_with_a_number_that_does_not_follow_is_refused(scene: Scene) -> None:
    body: Json = json.loads(json.dumps(release_of().to_json()))
    tables: Any = body["tables"]
    tables[0]["rows"][0]["estimate"] = "31.000000"
    scene.stand_in.document = seal("release", body, scene.key)
    with scene.consumer() as statistics, pytest.raises(IntegrityError, match="do not follow"):
        statistics.get("age")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"survey": "income"}, "another survey"),
        ({"survey": "age", "round": 2}, "another round"),
        ({"survey": "age", "version": 3}, "another version"),
        ({"survey": "age", "revision": 2}, "another revision"),
        ({"survey": "income", "round": 2}, "another survey and round"),
    ],
)
def test_a_good_release_that_is_not_the_one_asked_for_is_refused(
    scene: Scene, asked: dict[str, Any], says: str
) -> None:
    with scene.consumer() as statistics, pytest.raises(PeerError, match=says):
        statistics.get(**asked)


@pytest.mark.parametrize(
    "asked",
    [{"survey": ""}, {"survey": "Age"}, {"survey": "../age"}, {"survey": "\ud800"}]
    + [{"survey": "age", what: number} for what in ("round", "version", "revision") for number in (0, -1, 2**31)],
)  # fmt: skip
def test_an_argument_that_makes_no_sense_is_refused_before_any_call(scene: Scene, asked: dict[str, Any]) -> None:
    with scene.consumer() as statistics, pytest.raises(ConfigurationError):
        statistics.get(**asked)
    assert scene.stand_in.requests == []


def test_the_list_is_what_the_server_says(scene: Scene) -> None:
    scene.stand_in.releases = [summary(round=2), summary()]
    with scene.consumer() as statistics:
        assert [(item.survey, item.round, item.hash) for item in statistics.list()] == [
            ("age", 2, "01" * 32),
            ("age", 1, "01" * 32),
        ]


@pytest.mark.parametrize(
    "changes",
    [{"survey_name": "\x1b[2J"}, {"survey_hash": b""}, {"release_hash": bytes(31)}, {"released_at": "yesterday"}],
)
def test_a_list_with_a_malformed_entry_is_not_used(scene: Scene, changes: dict[str, Any]) -> None:
    scene.stand_in.releases = [summary(), summary(**changes)]
    with scene.consumer() as statistics, pytest.raises(PeerError):
        statistics.list()


@pytest.mark.parametrize("role", ["department", "operator"])
def test_a_certificate_of_another_role_is_told_at_once(tmp_path: Path, scene: Scene, role: str) -> None:
    folder = TestAuthority().client(f"tallyveil:{role}:a").save(tmp_path / "other")
    statistics = Statistics(scene.server, credentials=folder, trusted_key=scene.folder / "release.pub")
    with pytest.raises(ConfigurationError, match=f"for {role} a where one for a consumer"):
        statistics.list()


def test_a_missing_or_foreign_release_key_is_refused(scene: Scene) -> None:
    with pytest.raises(ConfigurationError, match="release key"):
        Statistics(scene.server, credentials=scene.folder, trusted_key=scene.folder / "absent.pub")
    with pytest.raises(ConfigurationError, match="public key"):
        Statistics(scene.server, credentials=scene.folder, trusted_key=scene.folder / "private.key")


def test_every_failure_is_one_of_ours(scene: Scene) -> None:
    scene.stand_in.before = lambda context: (_ for _ in ()).throw(RuntimeError("oops"))
    with scene.consumer() as statistics, pytest.raises(TallyveilError):
        statistics.list()
