"""`tallyveil survey`: what it writes and says, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tallyveil.cli import dispatch
from tallyveil.cli.survey_files import read_any
from tallyveil.cli.survey_view import refinement
from tallyveil.errors import IntegrityError
from tallyveil.signing import SigningKey, seal
from tallyveil.survey import open_survey

NEW: dict[str, str | list[str]] = {
    "--name": "age",
    "--title": "Age of high-income heads",
    "--purpose": "Who heads high-income households",
    "--attribute": "age",
    "--domain": "15..99",
    "--bins": "16",
    "--mechanism": "brr",
    "--epsilon": "2",
    "--opens": "2026-12-01",
    "--closes": "2027-01-01T08:00:00Z",
}

Ran = tuple[int, Any]
Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `tallyveil survey …` in an empty folder: its exit code, and what it printed (as JSON where asked for)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def go(*arguments: str) -> Ran:
        code = dispatch.run(["survey", *arguments])
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if "--json" in arguments else printed.out + printed.err

    return go


def new(**changes: str | list[str] | None) -> list[str]:
    """The arguments of a survey that is fine, with changes; None leaves an option out."""
    options = NEW | {"--" + key.replace("_", "-"): value for key, value in changes.items()}
    arguments = ["new"]
    for option, value in options.items():
        for item in [value] if isinstance(value, str) else value or ():
            arguments += [option, item]
    return arguments


@pytest.fixture
def authority(tmp_path: Path) -> SigningKey:
    key = SigningKey.generate()
    (tmp_path / "authority.key").write_bytes(key.to_pem())
    (tmp_path / "authority.pub").write_bytes(key.public.to_pem())
    return key


def test_a_new_survey_says_how_many_bins_were_made_and_what_is_not_protected(run: Run) -> None:
    code, said = run(*new(dimension=["sex=Female,Male", "area=urban, rural"]))
    assert code == 0
    assert "16 bins of 5 or 6 values" in said
    assert "UNSIGNED" in said
    assert "NOT protected" in said
    assert "the bin of every record" in said
    assert "being in the table at all" in said
    survey = read_any(Path("age-v1.json")).survey
    assert survey.cells == (("Female", "urban"), ("Female", "rural"), ("Male", "urban"), ("Male", "rural"))
    assert survey.rounds[0].closes.hour == 8


def test_a_new_survey_as_json_holds_bins_hash_and_guarantee(run: Run) -> None:
    code, made = run(*new(epsilon=["2", "0.5"]), "--json")
    assert code == 0
    assert (made["bins"], made["smallest_bin"], made["largest_bin"], made["values"]) == (16, 5, 6, 85)
    assert made["epsilons"] == [0.5, 2.0]
    assert made["hash"] == read_any(Path(made["file"])).survey.hash
    for guarantee in made["guarantees"]:
        assert guarantee["kind"] == "epsilon-LDP within bin, bin disclosed"
        assert guarantee["epsilon"] - 1e-5 <= guarantee["realised_epsilon"] <= guarantee["epsilon"]
        assert len(guarantee["not_protected"]) == 2


def test_rounds_are_pairs_of_moments_in_order(run: Run) -> None:
    opens, closes = ["2026-12-01", "2027-01-01"], ["2027-01-01", "2027-02-01"]
    code, made = run(*new(opens=opens, closes=closes, expires="2027-03-01"), "--json")
    assert (code, made["rounds"]) == (0, 2)
    code, refused = run(*new(opens=opens), "--json")
    assert code == 2
    assert refused["error"]["what"] == "2 rounds open and 1 close"


BAD: dict[str, tuple[dict[str, str | list[str] | None], str]] = {
    "epsilon 0": ({"epsilon": "0"}, "0.01 to 16"),
    "epsilon below": ({"epsilon": "0.0099"}, "0.01 to 16"),
    "epsilon above": ({"epsilon": "16.000000001"}, "0.01 to 16"),
    "epsilon negative": ({"epsilon": "-1"}, "0.01 to 16"),
    "epsilon nan": ({"epsilon": "nan"}, "0.01 to 16"),
    "epsilon inf": ({"epsilon": "inf"}, "0.01 to 16"),
    "epsilon tiny": ({"epsilon": "1e-320"}, "0.01 to 16"),
    "epsilon 710": ({"epsilon": "710"}, "0.01 to 16"),
    "epsilon huge": ({"epsilon": "1e308"}, "0.01 to 16"),
    "epsilon astronomic": ({"epsilon": "1e99999999999999999999"}, "0.01 to 16"),
    "epsilon text": ({"epsilon": "two"}, "0.01 to 16"),
    "epsilon twice": ({"epsilon": ["2", "2.0"]}, "given twice"),
    "epsilon below its floor": ({"epsilon_floor": "3"}, "below the floor"),
    "a bin too small": (
        {"bins": "22"},
        "22 bins of 3 or 4 values leave a bin of 3, below the survey's own minimum of 4",
    ),
    "a bin of one value": ({"bins": "85", "min_bin_values": "1"}, "a bin of one value would show it"),
    "more bins than values": ({"bins": "86"}, "between 1 and the domain's 85 values"),
    "no bin": ({"bins": "0"}, "between 1 and"),
    "negative bins": ({"bins": "-3"}, "between 1 and"),
    "bins without binning": ({"mechanism": "grr"}, "grr does not bin"),
    "K = 1": ({"domain": "15..15"}, "low end below its high end"),
    "one category": ({"domain": "urban"}, "from 2 to 65536 values"),
    "a domain backwards": ({"domain": "99..15"}, "low end below its high end"),
    "a domain too large": ({"domain": "0..10000000000"}, "from 2 to 65536 values"),
    "a domain of words": ({"domain": "low..high"}, "LOW..HIGH"),
    "an unreachable high end": ({"domain": "0..10:3"}, "reached by its step"),
    "intervals that fall": ({"domain": "[0,5,3]"}, "rise strictly"),
    "intervals of nan": ({"domain": "[0,nan,3]"}, "finite"),
    "categories twice": ({"domain": "a,b,a,c"}, "distinct"),
    "unknown mechanism": ({"mechanism": "dump"}, "another mechanism"),
    "bins for what auto stands for": ({"mechanism": "auto"}, "does not bin"),
    "name with a path": ({"name": "../age"}, "lower-case letters"),
    "title with an escape": ({"title": "\x1b[2J"}, "printable"),
    "empty purpose": ({"purpose": ""}, "purpose"),
    "version 0": ({"version": "0"}, "version"),
    "dimension without values": ({"dimension": "sex"}, "NAME=VALUE,VALUE"),
    "dimension of one value": ({"dimension": "sex=Female"}, "from 2 to"),
    "dimension named as the attribute": ({"dimension": "age=a,b"}, "different names"),
    "dimension twice": ({"dimension": ["sex=F,M", "sex=F,M"]}, "different names"),
    "too many cells": ({"dimension": [f"d{n}=a,b" for n in range(13)]}, "at most 262144 are published"),
    "closes before it opens": ({"closes": "2026-11-30"}, "opens before it closes"),
    "rounds overlap": (
        {"opens": ["2026-12-01", "2026-12-15"], "closes": ["2027-01-01", "2027-02-01"]},
        "no earlier than the one before it closes",
    ),
    "no such day": ({"opens": "2026-02-30"}, "YYYY-MM-DDTHH:MM:SSZ"),
    "a moment without zone": ({"opens": "2026-12-01T08:00:00"}, "YYYY-MM-DDTHH:MM:SSZ"),
    "expires too early": ({"expires": "2026-12-15"}, "expires no earlier"),
    "expires beyond the calendar": ({"closes": "9999-12-31"}, "calendar"),
    "quota 0": ({"quota": "0"}, "quota"),
    "no department": ({"min_departments": "0"}, "at least one department"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_value_is_refused_in_words_and_nothing_is_written(run: Run, tmp_path: Path, case: str) -> None:
    changes, says = BAD[case]
    code, said = run(*new(**changes), "--json")
    assert code == 2
    assert says in said["error"]["what"]
    assert list(tmp_path.iterdir()) == []


def test_a_missing_option_is_a_usage_error(run: Run) -> None:
    code, said = run(*new(mechanism=None), "--json")
    assert (code, said["error"]["kind"]) == (2, "usage")


def test_more_digits_of_epsilon_than_nano_are_cut_never_rounded_up(run: Run) -> None:
    _, made = run(*new(epsilon="1.9999999999"), "--json")
    assert made["epsilons"] == [1.999999999]


def test_no_file_is_overwritten_without_force(run: Run, authority: SigningKey) -> None:
    assert run(*new())[0] == 0
    before = Path("age-v1.json").read_bytes()
    code, said = run(*new(bins="8"), "--json")
    assert code == 2
    assert "is there already" in said["error"]["what"]
    assert Path("age-v1.json").read_bytes() == before
    assert run(*new(bins="8"), "--force")[0] == 0
    assert read_any(Path("age-v1.json")).survey.bins == 8
    for code, force in ((0, ()), (2, ()), (0, ("--force",))):
        assert run("sign", "age-v1.json", "--key", "authority.key", *force)[0] == code


def test_a_folder_that_is_not_there_is_said_and_leaves_nothing(run: Run, tmp_path: Path) -> None:
    code, said = run(*new(), "--output", "absent/age.json", "--json")
    assert code == 2
    assert "cannot be written" in said["error"]["what"]
    assert list(tmp_path.iterdir()) == []


def test_a_signed_survey_verifies_and_is_the_draft_that_was_signed(run: Run, authority: SigningKey) -> None:
    _, made = run(*new(), "--json")
    code, signed = run("sign", "age-v1.json", "--key", "authority.key", "--output", "age.survey", "--json")
    assert (code, signed["hash"], signed["signer"]) == (0, made["hash"], authority.public.fingerprint)
    assert open_survey(Path("age.survey").read_bytes(), authority.public).hash == made["hash"]
    code, said = run("verify", "age.survey", "--key", "authority.pub")
    assert code == 0
    assert "VERIFIED: signed by" in said
    assert "NOT protected" in said


def test_a_draft_is_called_one_and_not_an_altered_survey(run: Run, authority: SigningKey) -> None:
    run(*new())
    draft = Path("age-v1.json").read_bytes()
    canonical = json.dumps(json.loads(draft), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    for data in (draft, canonical):
        with pytest.raises(IntegrityError, match="this is a draft: it is not signed") as caught:
            open_survey(data, authority.public)
        assert "tallyveil survey sign" in caught.value.next_step
    code, said = run("verify", "age-v1.json", "--key", "authority.pub")
    assert code == 5
    assert "this is a draft" in said
    assert "altered" not in said


@pytest.mark.parametrize("signed", [True, False])
def test_a_release_is_called_one_and_not_a_survey(run: Run, authority: SigningKey, signed: bool) -> None:
    body: dict[str, object] = {"format": "tallyveil-release/1", "round": 1}
    Path("r.json").write_bytes(seal("release", body, authority) if signed else json.dumps(body).encode())
    for arguments in (
        ("show", "r.json"),
        ("verify", "r.json", "--key", "authority.pub"),
        ("sign", "r.json", "--key", "authority.key"),
        ("diff", "r.json", "r.json"),
    ):
        code, said = run(*arguments, "--json")
        assert (code, said["error"]["what"]) == (5, "this is a release, not a survey")
        assert said["error"]["not_done"] and said["error"]["next"]


def test_only_the_authority_s_key_signs_where_its_public_key_lies_beside_it(
    run: Run, authority: SigningKey, tmp_path: Path
) -> None:
    run(*new())
    other = SigningKey.generate()
    Path("release.key").write_bytes(other.to_pem())
    code, said = run("sign", "age-v1.json", "--key", "release.key", "--json")
    assert code == 2
    assert "is not the survey authority's key" in said["error"]["what"]
    assert other.public.fingerprint in said["error"]["what"] and authority.public.fingerprint in said["error"]["what"]
    assert (said["error"]["not_done"], Path("age-v1.survey").exists()) == ("nothing was signed", False)
    code, said = run("sign", "age-v1.json", "--key", "authority.key")
    assert code == 0
    assert "the survey authority's, as authority.pub says" in said
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "authority.key").write_bytes(other.to_pem())
    code, said = run("sign", "age-v1.json", "--key", "alone/authority.key", "--output", "b.survey")
    assert code == 0
    assert "compare the fingerprint" in " ".join(said.split())
    (alone / "authority.pub").write_text("nonsense")
    assert run("sign", "age-v1.json", "--key", "alone/authority.key", "--output", "c.survey")[0] == 2


def test_what_cannot_sign_is_refused_with_what_to_do(run: Run, authority: SigningKey) -> None:
    run(*new())
    pem = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path("ca.key").write_bytes(pem)
    for key in ("authority.pub", "ca.key"):
        error = run("sign", "age-v1.json", "--key", key, "--json")[1]["error"]
        assert error["not_done"] == "nothing was signed"
        assert "authority.key" in error["next"]


@pytest.mark.parametrize("case", ["a bin of one value", "epsilon 0", "K = 1", "dimension of one value", "no such day"])
def test_a_mistake_in_a_new_survey_is_to_be_corrected_not_signed_anew(run: Run, case: str) -> None:
    error = run(*new(**BAD[case][0]), "--json")[1]["error"]
    assert error["not_done"] == "the survey was not made"
    assert error["next"] and "sign" not in error["next"]


@pytest.mark.parametrize("typed", ["15-99", "15 - 99", "15–99", "15:99", "15 to 99"])
def test_a_range_with_a_dash_is_understood_well_enough_to_be_corrected(run: Run, typed: str) -> None:
    error = run(*new(domain=typed), "--json")[1]["error"]
    assert error["next"] == "write 15..99 for a range"


def test_show_marks_what_nobody_has_checked(run: Run, authority: SigningKey) -> None:
    run(*new())
    run("sign", "age-v1.json", "--key", "authority.key", "--output", "age.survey")
    assert "UNSIGNED DRAFT" in run("show", "age-v1.json")[1]
    assert "NOT VERIFIED" in run("show", "age.survey")[1]
    code, shown = run("show", "age.survey", "--json")
    assert (code, shown["verified"], shown["claimed_signer"]) == (0, False, authority.public.fingerprint)


def test_an_altered_or_foreign_or_unsigned_survey_does_not_verify(run: Run, authority: SigningKey) -> None:
    run(*new())
    run("sign", "age-v1.json", "--key", "authority.key", "--output", "age.survey")
    good = Path("age.survey").read_bytes()
    Path("other.pub").write_bytes(SigningKey.generate().public.to_pem())
    Path("altered.survey").write_bytes(good.replace(b'"bins":16', b'"bins":17'))
    Path("reformatted.survey").write_text(json.dumps(json.loads(good), indent=1))
    Path("cut.survey").write_bytes(good[:-1])
    for file, key in (
        ("age.survey", "other.pub"),
        ("altered.survey", "authority.pub"),
        ("reformatted.survey", "authority.pub"),
        ("cut.survey", "authority.pub"),
        ("age-v1.json", "authority.pub"),
    ):
        code, said = run("verify", file, "--key", key, "--json")
        assert (code, said["error"]["kind"]) == (5, "integrity"), file


def test_only_a_draft_is_signed_and_only_with_a_private_key(run: Run, authority: SigningKey) -> None:
    run(*new())
    run("sign", "age-v1.json", "--key", "authority.key", "--output", "age.survey")
    assert "signed already" in run("sign", "age.survey", "--key", "authority.key", "--json")[1]["error"]["what"]
    code, said = run("sign", "age-v1.json", "--key", "authority.pub", "--json")
    assert code == 2
    assert "private key" in said["error"]["what"]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff\xfe", b'{"name":1,"name":2}', b'{"bins": NaN}', b"[" * 100_000, b'{"signature":1}',
     b'{"quota":' + b"9" * 5000 + b"}"],
    ids=["empty", "list", "cut", "not UTF-8", "key twice", "NaN", "deep", "half signed", "long number"],
)  # fmt: skip
@pytest.mark.parametrize("command", ["show", "sign"])
def test_what_is_no_survey_is_refused_without_a_traceback(
    run: Run, authority: SigningKey, content: bytes, command: str
) -> None:
    Path("file").write_bytes(content)
    key = ("--key", "authority.key") if command == "sign" else ()
    code, said = run(command, "file", *key, "--json")
    assert code in (2, 5)
    assert said["error"]["kind"] in ("configuration", "integrity")


def test_an_edited_draft_is_checked_again_when_signed(run: Run, authority: SigningKey) -> None:
    run(*new())
    draft = json.loads(Path("age-v1.json").read_text())
    for key, value in (("bins", 85), ("epsilons_nano", [2.0]), ("format", "tallyveil-survey/9"), ("extra", 1)):
        Path("edited.json").write_text(json.dumps(draft | {key: value}))
        assert run("sign", "edited.json", "--key", "authority.key", "--json")[0] == 2


def test_a_missing_file_is_named(run: Run) -> None:
    code, said = run("show", "absent.json", "--json")
    assert code == 2
    assert "absent.json" in said["error"]["what"]


def test_diff_lists_the_fields_that_differ(run: Run) -> None:
    run(*new())
    run(*new(version="2", epsilon=["1", "2"], title="Age"))
    code, same = run("diff", "age-v1.json", "age-v1.json", "--json")
    assert (code, same["same"], same["differences"]) == (0, True, [])
    code, changed = run("diff", "age-v1.json", "age-v2.json", "--json")
    assert (code, changed["same"]) == (0, False)
    assert {item["field"] for item in changed["differences"]} == {
        "version",
        "title",
        "epsilons_nano.1",
        "epsilons_nano.2",
        "epsilon_floor_nano",
    }
    assert changed["together"] is None
    assert "2 + 2 = 4" in changed["both"][0]
    assert "same counts in clear" in changed["both"][1]
    assert same["both"] == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epsilon": ["0.5", "1"]}, "2 + 1 = 3"),
        ({"domain": "18..99"}, "domains differ"),
        ({"dimension": "sex=Female,Male"}, "cells sent in clear differ"),
        ({"attribute": "income"}, "attributes differ"),
        ({"bins": "8"}, "sets of values by subtraction"),
        ({"opens": ["2027-02-01", "2027-03-01"], "closes": ["2027-03-01", "2027-04-01"]}, "all 1 + 2 rounds cost 6."),
        ({"mechanism": "histogram-laplace", "bins": "1", "neighbours": "add-or-remove"}, "2 + 4 = 6"),
    ],
)
def test_diff_says_what_both_together_cost_and_disclose(
    run: Run, changes: dict[str, str | list[str] | None], says: str
) -> None:
    run(*new())
    assert run(*new(version="2", **changes))[0] == 0
    _, said = run("diff", "age-v1.json", "age-v2.json")
    assert says in " ".join(said.split("Both together")[1].split())


def test_diff_says_what_two_binnings_of_the_same_people_disclose_by_subtraction(run: Run) -> None:
    run(*new(bins="41", min_bin_values="2"))
    run(*new(version="2", bins="42", min_bin_values="2"))
    code, said = run("diff", "age-v1.json", "age-v2.json")
    assert code == 0
    assert "28 of 85 values are alone" in said
    together = refinement(read_any(Path("age-v1.json")).survey, read_any(Path("age-v2.json")).survey)
    assert together is not None
    assert (together.smallest, together.singled_out) == (1, 28)
