"""The agent's commands as they are typed: what they print, what they leave, and how they fail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_shell import Shell
from agent_world import DAY, KEY, NOW, SURVEY, Home, MemoryAggregator, aids_for, even_rows, with_bins
from certificates import TestAuthority
from tallyveil import errors
from tallyveil.batch import SubmissionKey
from tallyveil.cli import dispatch
from tallyveil.cli.failures import INTERRUPTED, NOT_CONFIRMED, READER_LEFT
from tallyveil.epsilon import to_nano
from tallyveil.errors import RefusedError, TallyveilError
from tallyveil.signing import SigningKey
from tallyveil.survey import Round, sign_survey
from tallyveil_client.agent.commands import app
from tallyveil_client.agent.config import load_config
from tallyveil_client.agent.department import open_department
from tallyveil_client.agent.policy_file import load_policy
from tallyveil_client.agent.run import run_round

COMMANDS = ("init", "approve", "check", "preview", "run", "status", "ledger")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    home = Home(tmp_path / "department").prepare()
    TestAuthority().client("tallyveil:department:health").save(home.folder)
    (home.folder / "private.key").chmod(0o600)
    return Shell(home, capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_speaks_json(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert f"Example: tallyveil agent {command}" in result.output
    assert "--json" in result.output


def test_init_writes_samples_that_can_be_read_and_never_touches_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "department"
    assert dispatch.run(["agent", "init", str(folder), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert written == [str(folder / "agent.toml"), str(folder / "policy.toml")]
    config, policy = load_config(folder / "agent.toml"), load_policy(folder / "policy.toml")
    assert {item.source for item in policy.collections} <= set(config.sources)
    before = (folder / "agent.toml").read_bytes()
    (folder / "policy.toml").unlink()
    assert dispatch.run(["agent", "init", str(folder)]) == 2
    assert (folder / "agent.toml").read_bytes() == before and not (folder / "policy.toml").exists()


# Approve


def test_approving_shows_the_survey_the_guarantee_and_what_is_not_protected(shell: Shell) -> None:
    code, out, _ = shell("approve", str(shell.home.survey_file), "--yes")
    assert code == 0
    for words in (
        SURVEY.hash,
        "2-LDP within a bin only",
        "NOT protected",
        "the bin of every record",
        "pinned authority",
    ):
        assert words in out
    assert "A round charges 2 to account 'people', which has 4 of 4 left." in out
    (first, _) = shell.json("status")["rounds"]
    assert (first["survey"], first["state"], first["epsilon"]) == ("ages@1", "open", 2.0)


def test_approving_needs_a_yes(shell: Shell) -> None:
    code, out, err = shell("approve", str(shell.home.survey_file))
    assert code == 2 and "add --yes" in err and SURVEY.hash in out
    assert shell.json("approve", str(shell.home.survey_file), code=2)["error"]["not_done"] == "nothing was approved"
    assert shell.json("status")["rounds"] == []


def test_approving_from_a_file_loads_neither_grpc_nor_arrow(shell: Shell) -> None:
    script = (
        "import sys\nfrom tallyveil.cli import dispatch\n"
        "code = dispatch.run(sys.argv[1:])\n"
        "print(code, sorted({'grpc', 'pyarrow', 'google'} & set(sys.modules)))"
    )
    arguments = ["agent", "approve", str(shell.home.survey_file), "--yes", "--config", str(shell.home.config)]
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_an_epsilon_is_chosen_among_those_permitted(shell: Shell) -> None:
    several = replace(SURVEY, epsilons=(to_nano(1), to_nano(1.5)))
    shell.home.prepare(survey=several)
    file = str(shell.home.survey_file)
    for typed, words in ((None, "several values"), ("2", "does not permit"), ("nan", "from 0.01 to 16")):
        code, _, err = shell("approve", file, "--yes", *(("--epsilon", typed) if typed else ()))
        assert code == 2 and words in err
    assert shell.json("approve", file, "--yes", "--epsilon", "1.5")["epsilon"] == 1.5


def refused(shell: Shell, code: int, *words: str, survey: Path | None = None) -> None:
    """Approving fails with this code and says this; nothing is approved."""
    found, _, err = shell("approve", str(survey or shell.home.survey_file), "--yes")
    assert found == code, err
    for word in words:
        assert word in err
    assert len(err.splitlines()) <= 4
    assert shell.json("status")["rounds"] == []


def test_a_survey_altered_after_signing_is_refused(shell: Shell) -> None:
    data = shell.home.survey_file.read_bytes()
    shell.home.survey_file.write_bytes(data.replace(b'"bins":4', b'"bins":2'))
    refused(shell, 5, "signature of the survey does not hold")
    shell.home.survey_file.write_bytes(data + b"\n")
    refused(shell, 5, "canonical")


def test_a_survey_of_another_authority_is_refused(shell: Shell) -> None:
    shell.home.survey_file.write_bytes(sign_survey(SURVEY, SigningKey.generate()))
    refused(shell, 5, "signed by another key", KEY.public.fingerprint)


def test_a_missing_survey_is_named(shell: Shell) -> None:
    refused(shell, 2, "nowhere.json", survey=shell.home.folder / "nowhere.json")


def test_an_expired_survey_is_refused(shell: Shell) -> None:
    past = replace(SURVEY, rounds=(Round(1, NOW - 3 * DAY, NOW - 2 * DAY),), expires=NOW - DAY)
    shell.home.prepare(survey=past)
    refused(shell, 4, "expired on")


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("max_epsilon = 1.5", "max_epsilon of one round is 1.5, the survey asks for 2"),
        ("dimensions = []", "dimensions is none, the survey asks for sex"),
        ("max_rounds = 1", "max_rounds is 1, the survey asks for 2"),
        ("min_bin_values = 30", "min_bin_values is 30, the survey asks for 21"),
        ('guarantees = ["epsilon-LDP"]', "guarantees is 'epsilon-LDP'"),
        ('attribute = "income"', "no collection of attribute 'age'"),
    ],
)
def test_a_survey_beyond_the_policy_is_refused_with_limit_and_value(shell: Shell, policy: str, words: str) -> None:
    shell.home.prepare(policy=policy)
    refused(shell, 4, words)


def test_the_first_digits_of_a_hash_are_not_taken_for_a_file(shell: Shell) -> None:
    for typed, digits in ((SURVEY.hash[:12], 12), (SURVEY.hash + "0", 65)):
        refused(shell, 2, "a survey's hash has 64 digits", f"this has {digits}", "whole hash", survey=Path(typed))
    refused(shell, 2, "the survey beef.survey cannot be read", survey=Path("beef.survey"))


def test_approving_warns_where_the_account_cannot_pay_for_the_rounds_to_come(shell: Shell) -> None:
    shell.home.prepare(total=to_nano(3))
    code, out, _ = shell("approve", str(shell.home.survey_file), "--yes")
    assert code == 0 and "Warning: only 1 of the 2 rounds to come of ages@1 can be charged" in out
    take_part(shell)
    other = replace(SURVEY, name="more")
    shell.home.prepare(total=to_nano(3), survey=other)
    code, out, _ = shell("approve", str(shell.home.survey_file), "--yes")
    last = out.splitlines()[-1]
    assert code == 0 and "Next: tallyveil agent check" not in out
    assert last.startswith("Approved more@1 at epsilon 2, but the next round of more@1 cannot be charged")
    assert "account 'people' has 1 of 3 left, and a round charges 2" in last
    assert shell.json("approve", str(shell.home.survey_file), "--yes")["warnings"] == [last.split(", but ")[1]]
    assert shell("check", "more")[0] == 4


def test_approving_and_checking_warn_where_no_round_is_to_come(shell: Shell) -> None:
    over = replace(SURVEY, rounds=(Round(1, NOW - 3 * DAY, NOW - 2 * DAY),))
    shell.home.prepare(survey=over)
    code, out, _ = shell("approve", str(shell.home.survey_file), "--yes")
    assert code == 0 and "but no round of ages@1 is to come: its last round closed on" in out.splitlines()[-1]
    assert "next round" not in shell("ledger")[1] and shell.json("ledger")["next_round"] == []
    code, out, err = shell("check")
    assert code == 7 and "would go ahead" not in out and "round 1 of ages@1 closed on" in err
    assert shell("run")[0] == 7


def test_a_survey_without_warnings_is_approved_without_any(shell: Shell) -> None:
    approved = shell.json("approve", str(shell.home.survey_file), "--yes")
    assert approved["warnings"] == []
    # nothing was counted yet: what holds for the smallest cell that the policy lets go
    assert (approved["histogram"]["records"], approved["histogram"]["counted"]) == (10, False)
    assert "n = 10, the smallest histogram of one bin" in shell("approve", str(shell.home.survey_file), "--yes")[1]


# Check, preview


def take_part(shell: Shell, number: int = 1) -> None:
    """Store and deliver a round of the only approved survey."""
    with open_department(shell.home.config) as department:
        (item,) = department.approved()
        run_round(department, item, item.survey.rounds[number - 1], None, aids_for(department, MemoryAggregator()))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("no certificate", "certificate.pem cannot be read"),
        ("other key", "the private key does not belong to the certificate"),
        ("expired", "the certificate expired on"),
        ("other role", "consumer newsroom"),
    ],
)
def test_check_finds_connection_files_that_a_run_would_stop_at(shell: Shell, damage: str, words: str) -> None:
    folder = shell.home.folder
    match damage:
        case "no certificate":
            (folder / "certificate.pem").unlink()
        case "other key":
            (folder / "private.key").write_bytes(TestAuthority().client("tallyveil:department:health").key)
        case "expired":
            TestAuthority().client("tallyveil:department:health", days=-1).save(folder)
        case _:
            TestAuthority().client("tallyveil:consumer:newsroom").save(folder)
    shell.approve()
    code, out, err = shell("check")
    assert code == 2 and words in err and "would go ahead" not in out and "read" in out
    found = shell.json("check", code=2)
    assert found["problem"] == found["connection"] and words in found["problem"]["what"]
    assert shell("run")[0] == 2
    shell.home.write_rows([*even_rows(2), ("14", "F")])
    code, out, err = shell("check")  # of two faults the records' is the error, and the other is shown too
    assert code == 3 and words in out and words not in err


def test_check_says_that_the_files_fit_and_that_the_aggregator_was_not_asked(shell: Shell) -> None:
    shell.approve()
    code, out, err = shell("check")
    assert (code, err) == (0, "") and "Certificate, key and CA fit: department health, until 20" in out
    assert "The aggregator was not asked. A run would go ahead: tallyveil agent run ages@1" in " ".join(out.split())


def test_check_is_about_the_next_round_once_the_open_one_is_charged(shell: Shell) -> None:
    shell.approve()
    take_part(shell)
    code, out, _ = shell("check")
    assert code == 0 and "A run would go ahead when round 2 opens on" in out
    assert shell.json("check")["next_round"] == 2


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_private_key_that_others_may_read_is_warned_of(shell: Shell, mode: int) -> None:
    key = shell.home.folder / "private.key"
    shell.approve()
    assert shell.json("check")["warnings"] == []
    key.chmod(mode)
    (warning,) = shell.json("check")["warnings"]
    assert f"chmod 600 {key}" in warning
    assert warning in shell("check")[1]


def test_what_a_histogram_adds_is_said_with_its_n_and_never_for_a_small_cell(shell: Shell) -> None:
    shell.home.prepare(even_rows(60))
    shell.approve()
    words = "within a bin with one record's value replaced by another of its bin, and for replacement only (n = 1260,"
    for command in ("check", "preview"):
        assert words in shell(command)[1]
        found = shell.json(command)["histogram"]
        assert (found["records"], found["counted"]) == (1260, True) and 0 < found["epsilon"] < 1.5
    shell.home.prepare([*even_rows(60)[:-2520], *[("98", "F")] * 7])
    code, out, _ = shell("check")
    assert code == 4 and "n = " not in out
    assert shell.json("check", code=4)["histogram"] is None and shell.json("preview")["histogram"] is None


def test_noise_at_the_department_is_not_amplified(shell: Shell) -> None:
    noisy = replace(SURVEY, mechanism="histogram-laplace", bins=1)
    shell.home.prepare(survey=noisy, policy='guarantees = ["epsilon-DP at the department"]')
    shell.approve()
    assert shell.json("check")["histogram"] is None and "n = " not in shell("preview")[1]


def test_check_counts_here_and_draws_charges_and_sends_nothing(shell: Shell) -> None:
    shell.home.prepare([*even_rows(3), ("14", "F"), ("", "M")], config='on_invalid = "reject"')
    shell.approve()
    found = shell.json("check")
    assert (found["read"], found["accepted"], found["filtered"], found["charged"]) == (506, 504, 0, 0)
    assert found["rejected"] == {"missing": 1, "out-of-domain": 1}
    assert found["first_rejected"] == {"missing": 506, "out-of-domain": 505}
    assert found["cells"] == [{"cell": {"sex": "F"}, "records": 252}, {"cell": {"sex": "M"}, "records": 252}]
    assert found["clear_cells"] == {
        "not_empty": 8,
        "min_clear_cell": 10,
        "min_clear_cell_reason": "",
        "below_min_clear_cell": 0,
        "below_ten": 0,
        "of_one_record": 0,
    }
    assert found["cost"] == {"account": "people", "max_rows_per_person": 1, "charge": 2.0, "left": 4.0, "total": 4.0}
    assert found["problem"] is None
    code, out, _ = shell("check")
    assert code == 0 and "rejected: missing" in out and "nothing drawn, charged or sent" in out
    assert shell.nothing_happened()


def test_check_and_approve_show_what_an_allowed_overlap_gives_away(shell: Shell) -> None:
    shell.home.prepare(even_rows(3))
    shell.approve()
    with open_department(shell.home.config) as department:
        (item,) = department.approved()
        run_round(department, item, SURVEY.rounds[0], None, aids_for(department, MemoryAggregator()))
    other, cell = with_bins(3), "age from 36 to 42 (7 of 84 values) in one cell of sex"
    shell.home.prepare(even_rows(3), survey=other)
    code, _, err = shell("approve", str(shell.home.survey_file), "--yes")
    assert code == 4 and cell in err and "allow_overlap" in err
    shell.home.prepare(even_rows(3), survey=other, policy='allow_overlap = "the minister asked"')
    code, out, _ = shell("approve", str(shell.home.survey_file), "--yes")
    assert code == 0 and cell in out and "the minister asked" in out
    approved = shell.json("approve", str(shell.home.survey_file), "--yes")
    checked = shell.json("check", other.name)
    assert (
        approved["overlaps"]
        == checked["overlaps"]
        == [
            {"survey": "ages@1", "difference": "4 bins of 21 values where this one has 3 bins of 28 values"}
            | {"smallest_cell": cell}
        ]
    )
    code, out, _ = shell("check", other.name)
    assert code == 0 and cell in out and "the minister asked" in out
    shell.home.prepare(even_rows(3), survey=other)
    assert shell("check", other.name)[0] == 4


def test_check_reports_first_and_fails_then(shell: Shell) -> None:
    shell.home.prepare([*even_rows(3), ("14", "F")])
    shell.approve()
    code, out, err = shell("check")
    assert code == 3 and "out-of-domain" in out and "cannot be used" in err
    assert shell.json("check", code=3)["problem"]["kind"] == "input"


def test_preview_is_marked_made_up_and_has_the_real_shape(shell: Shell) -> None:
    shell.home.prepare([("20", "F")] * 40 + [("70", "M")] * 60)
    shell.approve()
    shown = shell.json("preview")
    assert shown["made_up"] is True
    assert (shown["header"]["department"], shown["header"]["round"]) == ("health", 1)
    assert [(batch["dimensions"], batch["records"]) for batch in shown["batches"]] == [
        ({"sex": "F"}, 40),
        ({"sex": "M"}, 60),
    ]
    for batch in shown["batches"]:
        assert sum(batch["made_up_counts"]) == batch["records"]
        assert max(batch["made_up_counts"]) < 20  # the records all have one value
        assert batch["message_bytes"] > batch["payload_bytes"] >= 84
    code, out, _ = shell("preview")
    assert code == 0 and out.count("MADE-UP") == 2 and "NOT protected" in out
    assert shell.nothing_happened()


# Status, ledger


def test_status_and_ledger_say_what_is_next(shell: Shell) -> None:
    assert "No survey is approved here. Next: tallyveil agent approve FILE" in shell("status")[1]
    shell.approve()
    code, out, _ = shell("status")
    assert (
        code == 0 and "Next for ages@1, round 1: tallyveil agent check ages@1, then tallyveil agent run ages@1" in out
    )
    first, second = shell.json("status")["rounds"]
    assert (first["state"], second["state"]) == ("open", "not open yet")
    assert "The next round of ages@1 would charge 2 to account 'people'." in shell("ledger")[1]
    assert shell.json("ledger")["next_round"] == [
        {"survey": "ages@1", "round": 1, "account": "people", "charge": 2.0, "possible": True}
    ]
    assert shell.json("ledger")["accounts"][0]["left"] == 4.0


def test_the_ledger_says_what_was_overspent_and_that_no_round_is_possible(shell: Shell) -> None:
    shell.approve()
    take_part(shell)
    assert "OVERSPENT" not in shell("ledger")[1]
    shell.home.prepare(total=to_nano(0.5))
    code, out, _ = shell("ledger")
    assert code == 0
    assert "OVERSPENT: account 'people' has spent 1.5 more than the policy's total of 0.5" in out
    assert "The next round of ages@1 is not possible: it would charge 2 to account 'people', with 0 left." in out
    found = shell.json("ledger")
    assert (found["accounts"][0]["overspent"], found["next_round"][0]["possible"]) == (1.5, False)


def test_a_survey_without_a_further_round_has_no_next_one_in_the_ledger(shell: Shell) -> None:
    shell.home.prepare(survey=replace(SURVEY, rounds=SURVEY.rounds[:1]))
    shell.approve()
    take_part(shell)
    assert "next round" not in shell("ledger")[1] and shell.json("ledger")["next_round"] == []
    code, out, _ = shell("check")
    assert code == 0 and "A run would charge nothing" in out and "every round of it is charged" in out


@pytest.mark.parametrize(
    ("code", "state", "step"),
    [
        ("round-closed", "stored, refused", "ask the aggregator's operator"),
        ("a-new-code", "stored, refused", "ask the aggregator's operator"),
        ("too-busy", "stored, not complete", "sends the stored batches, charges nothing"),
    ],
)
def test_status_shows_the_last_refusal_and_whether_it_is_final(shell: Shell, code: str, state: str, step: str) -> None:
    shell.approve()
    with open_department(shell.home.config) as department:
        (item,) = department.approved()

        def refuse(key: SubmissionKey) -> None:
            department.store.note_refusal(key.submission_id, code)
            raise RefusedError("no")

        with pytest.raises(RefusedError):
            run_round(
                department,
                item,
                SURVEY.rounds[0],
                None,
                replace(aids_for(department, MemoryAggregator()), deliver=refuse),
            )
    first, _ = shell.json("status")["rounds"]
    assert (first["state"], first["last_refusal"]) == (state, code) and step in first["next"]
    out = shell("status")[1]
    assert f"{state}: {code}" in out and ("(the round is closed)" in out) == (code == "round-closed")


def test_damage_to_the_store_stops_every_command(shell: Shell) -> None:
    shell.approve()
    shell.home.store.write_bytes(b"x" * 5000)
    for command in ("status", "ledger", "check", "run"):
        code, _, err = shell(command)
        assert code == 5 and "damaged or not a store" in err


def test_several_approved_surveys_need_a_name(shell: Shell) -> None:
    shell.approve()
    other = shell.home.folder / "other.survey"
    other.write_bytes(sign_survey(with_bins(8), KEY))
    assert shell("approve", str(other), "--yes")[0] == 0
    code, _, err = shell("check")
    assert code == 2 and "ages@1" in err and "ages-8@1" in err
    assert shell.json("check", "ages-8")["survey"] == "ages-8@1"


def test_the_documented_exit_codes_are_the_ones_there_are() -> None:
    text = (Path(__file__).parents[2] / "docs" / "agent.md").read_text("utf-8").split("## Exit codes")[1]
    documented = {int(line.split("|")[1]) for line in text.splitlines() if re.match(r"\| \d", line)}
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TallyveilError)]
    kinds = {kind.exit_code for kind in found}
    assert documented == kinds - {TallyveilError.exit_code} | {0, NOT_CONFIRMED, INTERRUPTED, READER_LEFT}
