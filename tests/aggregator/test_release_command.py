"""`tallyveil aggregator release` and its file: what cannot be taken back is tried first, and a file can be had later.

Not here: what is in a release (`test_publication`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aggregator_world import World, make_upload, put
from tallyveil.release import open_release
from tallyveil_aggregator import publication

Run = Callable[..., Any]


def make_releasable(world: World, run: Run) -> None:
    """Two complete submissions in a closed round."""
    world.set_up()
    with world.store() as store:
        put(store, "health", make_upload("health"))
        put(store, "education", make_upload("education"))
    run("rounds", "close", "ages", "1")


def lose_then(folder: Path, step: Callable[..., Any]) -> Callable[..., Any]:
    """A step before which a folder goes."""

    def go(*arguments: Any) -> Any:
        folder.rmdir()
        return step(*arguments)

    return go


def test_a_file_that_is_there_is_not_overwritten_and_nothing_is_released(world: World, run: Run, fails: Run) -> None:
    make_releasable(world, run)
    output = world.folder / "release.json"
    output.write_text("mine")
    assert fails("release", "ages", "1", "--output", str(output))[0] == 2
    assert output.read_text() == "mine"
    assert run("rounds", "list", "ages")["rounds"][0]["revision"] is None
    assert run("release", "ages", "1", "--output", str(output), "--force")["published_now"]
    assert open_release(output.read_bytes(), world.pki.releases.public).release.revision == 1


@pytest.mark.parametrize("place", ["none/x.json", "", "survey.json/x.json", "pipe"])
def test_where_no_file_can_be_written_nothing_is_released(world: World, run: Run, fails: Run, place: str) -> None:
    make_releasable(world, run)
    os.mkfifo(world.folder / "pipe")
    before = sorted(world.folder.iterdir())
    code, error = fails("release", "ages", "1", "--output", str(world.folder / place), "--force")
    assert code == 2 and error["not_done"] == "nothing was released" and error["next"]
    assert run("rounds", "list", "ages")["rounds"][0]["revision"] is None
    assert sorted(world.folder.iterdir()) == before and (world.folder / "pipe").is_fifo()


def test_the_file_of_a_release_that_was_made_before_is_written_and_said_to_be_that(
    world: World, run: Run, fails: Run, shown: Run
) -> None:
    make_releasable(world, run)
    made = run("release", "ages", "1")
    assert made["published_now"] and made["file"] is None
    code, error = fails("release", "ages", "1")
    assert code == 8 and "aggregator release ages@1 1 --output FILE" in error["next"]
    first, second = world.folder / "first.json", world.folder / "second.json"
    assert run("release", "ages", "1", "--output", str(first)) == {**made, "published_now": False, "file": str(first)}
    assert "Nothing was published now" in shown("release", "ages", "1", "--output", str(second))
    assert first.read_bytes() == second.read_bytes()
    assert open_release(first.read_bytes(), world.pki.releases.public).hash == made["hash"]


def test_a_file_that_fails_after_all_leaves_a_release_and_the_way_to_its_file(
    world: World, run: Run, fails: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_releasable(world, run)
    output = world.folder / "gone" / "release.json"
    output.parent.mkdir()

    with monkeypatch.context() as patched:
        patched.setattr(publication, "open_release", lose_then(output.parent, open_release))
        code, error = fails("release", "ages", "1", "--output", str(output))
    assert code == 2 and error["what"].startswith("the round is released, as revision 1; but cannot write")
    assert f"release ages@1 1 --output FILE --config {world.config_file}" in error["next"]
    assert run("release", "ages", "1", "--output", str(world.folder / "release.json"))["revision"] == 1


def test_a_release_is_never_signed_with_the_authority_s_key(world: World, run: Run, fails: Run) -> None:
    make_releasable(world, run)
    (world.folder / "release.key").write_bytes(world.pki.surveys.to_pem())
    code, error = fails("release", "ages", "1")
    assert code == 2 and "the survey authority's own key" in error["what"]
    assert run("rounds", "list", "ages")["rounds"][0]["revision"] is None
