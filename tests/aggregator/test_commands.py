"""`tallyveil aggregator`, from an empty folder to a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from aggregator_world import DAY, LOW, NOW, SURVEY, World, make_upload, put
from tallyveil.cli import dispatch
from tallyveil.release import open_release
from tallyveil.signing import SigningKey
from tallyveil.survey import Round, sign_survey
from tallyveil_aggregator.store import Store

Run = Callable[..., Any]


def test_from_an_empty_folder_to_a_release(world: World, run: Run, fails: Run) -> None:
    made = run("init")
    assert made["store"] == str(world.config.store)
    assert fails("init")[0] == 2
    assert run("departments", "add", "health", "education", "health") == {
        "added": ["health", "education"],
        "already_there": [],
    }
    assert run("departments", "add", "health")["already_there"] == ["health"]
    added = run("surveys", "add", str(world.folder / "survey.json"))
    assert added == {"hash": SURVEY.hash, "name": "ages", "version": 1, "added": True}
    assert not run("surveys", "add", str(world.folder / "survey.json"))["added"]
    with world.store() as store:
        put(store, "health", make_upload("health"))
        put(store, "education", make_upload("education", epsilon=LOW, least=3), complete=False)
    listed = run("rounds", "list", "ages")["rounds"]
    assert [(item["state"], item["opened"], item["complete"]) for item in listed] == [
        ("open", 2, 1),
        ("not open yet", 0, 0),
        ("not open yet", 0, 0),
    ]
    code, error = fails("release", "ages", "1")
    assert (code, error["kind"]) == (8, "publication")
    assert "rounds close ages@1 1" in error["next"]
    assert run("rounds", "close", "ages", "1")["changed"]
    assert "at least 2" in fails("release", "ages", "1")[1]["what"]
    assert run("rounds", "open", "ages@1", "1") == {
        "survey": "ages",
        "version": 1,
        "round": 1,
        "state": "open",
        "changed": True,
    }
    with world.store() as store, store.writing() as transaction:
        stored = transaction.submissions.find("education", SURVEY.hash, 1)
        assert stored is not None
        transaction.submissions.mark_complete(stored.number, NOW)
    run("rounds", "close", SURVEY.hash[:8], "1")
    output = world.folder / "release.json"
    facts = run("release", SURVEY.hash, "1", "--output", str(output))
    verified = open_release(output.read_bytes(), world.pki.releases.public)
    assert (facts["hash"], facts["records"]) == (verified.hash, verified.release.records)
    assert (facts["revision"], facts["departments"], facts["previous"]) == (1, 2, None)
    assert facts["signed_by"] == world.pki.releases.public.fingerprint
    code, error = fails("release", "ages", "1")
    assert code == 8 and "revision 1" in error["what"]
    assert run("rounds", "list", "ages")["rounds"][0]["revision"] == 1
    assert "released" in fails("rounds", "open", "ages", "1")[1]["what"]


def test_people_see_tables_and_the_next_step(world: World, shown: Run) -> None:
    assert "departments add" in shown("init")
    assert "No department" in shown("departments", "list")
    assert "No survey" in shown("surveys", "list")
    assert "Registered: education, health." in shown("departments", "add", "education", "health")
    assert "active" in shown("departments", "list")
    assert SURVEY.hash in shown("surveys", "add", str(world.folder / "survey.json"))
    assert "ages@1" in shown("surveys", "list")
    survey = shown("surveys", "show", "ages")
    assert "bin disclosed" in survey and "Not protected: being in the table" in survey
    with world.store() as store:
        put(store, "health", make_upload("health"))
        put(store, "education", make_upload("education"))
    assert "not open yet" in shown("rounds", "list", "ages")
    assert "2 complete, 0 opened only" in shown("rounds", "close", "ages", "1")
    assert "is open." in shown("rounds", "open", "ages", "1")
    assert "not closed early" in shown("rounds", "open", "ages", "1")
    shown("rounds", "close", "ages", "1")
    assert "closed already" in shown("rounds", "close", "ages", "1")
    assert "stats get ages --round 1" in shown("release", "ages", "1")


def test_departments_are_blocked_and_unblocked(world: World, run: Run, fails: Run, shown: Run) -> None:
    world.set_up()
    assert run("departments", "block", "health") == {"name": "health", "state": "blocked", "changed": True}
    assert "already" in shown("departments", "block", "health")
    listed = {item["name"]: item["state"] for item in run("departments", "list")["departments"]}
    assert listed == {"education": "active", "health": "blocked"}
    assert run("departments", "unblock", "health")["state"] == "active"
    assert "no department of that name" in fails("departments", "block", "nobody")[1]["what"]


@pytest.mark.parametrize("name", ["Health", "a b", "", "x" * 64, "tallyveil:department:health"])
def test_a_name_no_certificate_could_hold_is_not_registered(world: World, fails: Run, name: str) -> None:
    world.set_up()
    assert fails("departments", "add", "good", name)[0] == 2
    with world.store() as store, store.reading() as transaction:
        assert transaction.departments.state("good") is None


def test_only_a_survey_of_the_authority_is_added(world: World, fails: Run) -> None:
    world.set_up(surveys=())
    forged = world.folder / "forged.json"
    forged.write_bytes(sign_survey(SURVEY, SigningKey.generate()))
    code, error = fails("surveys", "add", str(forged))
    assert code == 5 and "another key" in error["what"]
    altered = (world.folder / "survey.json").read_bytes().replace(b'"bins":2', b'"bins":1')
    forged.write_bytes(altered)
    assert fails("surveys", "add", str(forged))[0] == 5
    assert fails("surveys", "add", str(world.folder / "none"))[0] == 2


def test_a_changed_survey_under_an_old_version_is_refused(world: World, fails: Run) -> None:
    world.set_up()
    changed = world.folder / "changed.json"
    changed.write_bytes(sign_survey(replace(SURVEY, quota=7), world.pki.surveys))
    code, error = fails("surveys", "add", str(changed))
    assert code == 2 and "another survey is known here as ages@1" in error["what"]


def test_a_survey_is_named_without_doubt(world: World, run: Run, fails: Run) -> None:
    second = replace(SURVEY, version=2)
    world.set_up(surveys=(SURVEY, second))
    code, error = fails("surveys", "show", "ages")
    assert code == 2 and "ages@1" in error["what"] and "ages@2" in error["what"]
    assert run("surveys", "show", "ages@2")["hash"] == second.hash
    assert run("surveys", "show", second.hash[:10])["survey"]["version"] == 2
    for absent in ("other", "ages@3", second.hash[:5], "ff" * 32):
        assert "no survey of that name" in fails("surveys", "show", absent)[1]["what"]


def test_a_survey_signed_by_an_authority_that_was_replaced_is_not_used(world: World, run: Run, fails: Run) -> None:
    world.set_up()
    (world.folder / "authority.pub").write_bytes(SigningKey.generate().public.to_pem())
    assert run("surveys", "list") == {"surveys": []}
    assert "does not verify" in fails("rounds", "list", "ages")[1]["what"]


@pytest.mark.parametrize(
    ("expires", "said"),
    [(NOW - DAY, "expired at"), (NOW + DAY, "last round closed at")],
    ids=["expired", "no round to come"],
)
def test_a_survey_nothing_can_be_collected_for_is_not_added(
    world: World, run: Run, fails: Run, expires: datetime, said: str
) -> None:
    past = replace(SURVEY, rounds=(Round(1, NOW - 3 * DAY, NOW - 2 * DAY),), expires=expires)
    world.set_up(surveys=())
    file = world.folder / "past.json"
    file.write_bytes(sign_survey(past, world.pki.surveys))
    code, error = fails("surveys", "add", str(file))
    assert code == 2 and said in error["what"] and "new version" in error["next"]
    assert run("surveys", "list") == {"surveys": []}


def test_a_survey_known_since_before_it_expired_is_still_known(world: World, run: Run) -> None:
    past = replace(SURVEY, rounds=(Round(1, NOW - 3 * DAY, NOW - 2 * DAY),), expires=NOW - DAY)
    world.set_up(surveys=(past,))
    file = world.folder / "past.json"
    file.write_bytes(sign_survey(past, world.pki.surveys))
    assert not run("surveys", "add", str(file))["added"]


def test_lists_show_the_whole_hash_that_agents_approve_on_one_line(world: World, shown: Run) -> None:
    world.set_up()
    for command in (("surveys", "list"), ("surveys", "show", "ages")):
        assert SURVEY.hash in shown(*command)


def test_a_file_named_on_the_command_line_is_not_sought_in_the_configuration(world: World, fails: Run) -> None:
    world.set_up()
    code, error = fails("surveys", "add", "nofile")
    assert code == 2 and "nofile" in error["what"] and "configuration" not in error["next"]


def test_init_names_everything_that_is_missing_and_makes_no_store(world: World, fails: Run) -> None:
    names = ("server.pem", "ca.pem", "authority.pub", "release.key")
    for name in names:
        (world.folder / name).unlink()
    code, error = fails("init")
    assert code == 2 and not world.config.store.exists()
    for name in names:
        assert str(world.folder / name) in error["what"] and f"copy {name}" in error["next"]
    assert "tallyveil pki server" in error["next"] and "tallyveil pki init" in error["next"]


def test_init_with_an_impossible_place_for_the_store_is_no_temporary_fault(world: World, fails: Run) -> None:
    with world.config_file.open("a") as file:
        file.write('[store]\npath = "server.pem/store.sqlite"\n')
    code, error = fails("init")
    assert (code, error["kind"]) == (2, "configuration")


def test_next_steps_name_the_configuration_in_use(world: World, run: Run) -> None:
    for step in run("init")["next"]:
        assert step.endswith(f" --config {world.config_file}")


def test_without_a_store_every_command_says_how_to_make_one(world: World, fails: Run) -> None:
    for command in (("departments", "list"), ("surveys", "list"), ("release", "ages", "1"), ("serve",)):
        code, error = fails(*command)
        assert (code, error["kind"]) == (2, "configuration") and "aggregator init" in error["next"]
    assert not world.config.store.exists()


def test_every_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {
        (): ("init", "serve", "release"),
        ("departments",): ("add", "list", "block", "unblock"),
        ("surveys",): ("add", "list", "show"),
        ("rounds",): ("list", "open", "close"),
    }
    for group, names in commands.items():
        for name in names:
            assert dispatch.run(["aggregator", *group, name, "--help"]) == 0
            assert f"Example: tallyveil aggregator {' '.join((*group, name))}" in capsys.readouterr().out


def test_a_log_level_that_does_not_exist_stops_the_server_before_it_starts(world: World, fails: Run) -> None:
    Store.create(world.config.store).close()
    assert fails("serve", "--log-level", "LOUD")[0] == 2
