"""The department's policy: its file, and surveys it forbids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inputs import survey
from tallyveil.domain import Integers
from tallyveil.epsilon import NanoEpsilon, to_nano
from tallyveil.errors import ConfigurationError, PolicyError
from tallyveil.guarantee import KIND_LDP, KIND_WITHIN_BIN
from tallyveil.survey import Survey
from tallyveil_client.agent.policy import Account, Collection, Policy, check_survey
from tallyveil_client.agent.policy_file import load_policy

DEPLOY = Path(__file__).parents[2] / "deploy"
ACCOUNT = """
[[accounts]]
name = "heads"
person = "the head of a household"
max_rows_per_person = 1
total_epsilon = 8
"""
COLLECTION = """
[[collections]]
source = "households"
attribute = "age"
account = "heads"
max_epsilon = 2.0
"""


def load(folder: Path, text: str) -> Policy:
    path = folder / "policy.toml"
    path.write_text(text, "utf-8")
    return load_policy(path)


def refused(folder: Path, text: str, *words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_sample_is_read_with_every_key() -> None:
    policy = load_policy(DEPLOY / "policy.toml")
    assert policy.accounts == (Account("household-heads", "the head of a household", 1, NanoEpsilon(8 * 10**9)),)
    assert policy.collections[0] == Collection(
        source="households",
        attribute="age",
        account="household-heads",
        max_epsilon=to_nano(2),
        guarantees=(KIND_LDP, KIND_WITHIN_BIN),
        dimensions=("sex",),
        max_rounds=4,
    )


def test_defaults_allow_the_least(tmp_path: Path) -> None:
    (collection,) = load(tmp_path, ACCOUNT + COLLECTION).collections
    assert collection.guarantees == (KIND_LDP,)
    assert (collection.min_bin_values, collection.min_clear_cell) == (4, 10)
    assert (collection.dimensions, collection.max_rounds) == ((), 1)


def test_an_overlap_is_allowed_with_a_reason_only(tmp_path: Path) -> None:
    assert load(tmp_path, ACCOUNT + COLLECTION).collections[0].allow_overlap == ""
    named = load(tmp_path, ACCOUNT + COLLECTION + 'allow_overlap = "the minister asked"\n')
    assert named.collections[0].allow_overlap == "the minister asked"
    for blank in ("", "  "):
        refused(tmp_path, ACCOUNT + COLLECTION + f'allow_overlap = "{blank}"\n', "allow_overlap")
    with pytest.raises(ConfigurationError, match="reason"):
        replace(named.collections[0], allow_overlap=" ")


def test_epsilon_is_cut_off_and_never_rounded_up(tmp_path: Path) -> None:
    text = (ACCOUNT + COLLECTION).replace("= 8", "= 0.1234567899").replace("2.0", "1.9999999999")
    policy = load(tmp_path, text)
    assert policy.accounts[0].total_epsilon == 123_456_789
    assert policy.collections[0].max_epsilon == 1_999_999_999


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("max_epsilon = 2.0", ""), ("[collections[1]] key 'max_epsilon' is missing",)),
        (("max_epsilon = 2.0", "max_epsilon = 17"), ("[collections[1]] key 'max_epsilon'", "from 0.01 to 16")),
        (("max_epsilon = 2.0", "max_epsilon = nan"), ("'max_epsilon' must be a number",)),
        (("max_epsilon = 2.0", "max_epsilon = true"), ("'max_epsilon' must be a number",)),
        (("max_epsilon = 2.0", 'max_epsilon = "2"'), ("'max_epsilon' must be a number",)),
        (("total_epsilon = 8", "total_epsilon = 0"), ("[accounts[1]] key 'total_epsilon'",)),
        (("total_epsilon = 8", "total_epsilon = inf"), ("[accounts[1]] key 'total_epsilon'",)),
        (("total_epsilon = 8", "total_epsilon = 8\ntotal = 8"), ("[accounts[1]] key 'total' is not a known key",)),
        (("max_rows_per_person = 1", "max_rows_per_person = 0"), ("'max_rows_per_person'",)),
        (("max_epsilon = 2.0", "max_epsilon = 2.0\nmin_bin_values = 1"), ("'min_bin_values'", "from 2")),
        (("max_epsilon = 2.0", "max_epsilon = 2.0\nmin_clear_cell = 0"), ("'min_clear_cell'",)),
        (("max_epsilon = 2.0", "max_epsilon = 2.0\nmin_clear_cell = 9"), ("needs a min_clear_cell_reason",)),
        (
            ("max_epsilon = 2.0", 'max_epsilon = 2.0\nmin_clear_cell = 9\nmin_clear_cell_reason = " "'),
            ("needs a min_clear_cell_reason",),
        ),
        (("max_epsilon = 2.0", 'max_epsilon = 2.0\nguarantees = ["LDP"]'), ("guarantees are among 'epsilon-LDP'",)),
        (("max_epsilon = 2.0", "max_epsilon = 2.0\nguarantees = []"), ("guarantees are among",)),
        (('account = "heads"', 'account = "others"'), ("unknown account 'others'",)),
        (("[[collections]]", "[collections]"), ("'collections' must be a list",)),
    ],
)
def test_faults_are_named(tmp_path: Path, change: tuple[str, str], words: tuple[str, ...]) -> None:
    refused(tmp_path, (ACCOUNT + COLLECTION).replace(*change), *words)


def test_one_attribute_of_one_source_and_one_account_name_occur_once(tmp_path: Path) -> None:
    refused(tmp_path, ACCOUNT + COLLECTION * 2, "subtraction")
    refused(tmp_path, ACCOUNT * 2 + COLLECTION, "the same name")


def test_a_lower_min_clear_cell_needs_its_reason(tmp_path: Path) -> None:
    reasoned = COLLECTION + 'min_clear_cell = 3\nmin_clear_cell_reason = "decided by the board, 2026-11-02"\n'
    assert load(tmp_path, ACCOUNT + reasoned).collections[0].min_clear_cell == 3


def policy(**changes: object) -> Policy:
    limits: dict[str, object] = {
        "source": "households",
        "attribute": "age",
        "account": "heads",
        "max_epsilon": to_nano(2),
        **changes,
    }
    return Policy((Account("heads", "a head", 3, NanoEpsilon(6 * 10**9)),), (Collection(**limits),))  # type: ignore[arg-type]


BRR = survey(Integers(15, 99), mechanism="brr", bins=16)


def test_a_survey_within_the_limits_is_allowed() -> None:
    check_survey(policy(), survey(), to_nano(2))
    within = policy(guarantees=(KIND_LDP, KIND_WITHIN_BIN), dimensions=("region", "sex"), max_rounds=2)
    check_survey(within, BRR, to_nano(2))
    check_survey(within, survey(dimensions={"sex": ["F", "M"]}, rounds=2), to_nano(2))
    check_survey(policy(), survey(mechanism="brr", bins=1), to_nano(2))
    check_survey(policy(min_bin_values=50), survey(Integers(0, 1)), to_nano(2))


@pytest.mark.parametrize(
    ("limits", "definition", "words"),
    [
        ({"attribute": "income"}, survey(), ("no collection of attribute 'age'",)),
        ({}, BRR, (f"guarantees is '{KIND_LDP}', the survey asks for '{KIND_WITHIN_BIN}'",)),
        ({"max_epsilon": to_nano("1.5")}, survey(), ("max_epsilon of one round is 1.5, the survey asks for 2",)),
        (
            {"max_epsilon": to_nano(4)},
            survey(epsilon=3),
            ("total_epsilon of account 'heads' is 6", "for 9 for one round"),
        ),
        (
            {"guarantees": (KIND_WITHIN_BIN,), "min_bin_values": 6},
            BRR,
            ("min_bin_values is 6, the survey asks for 5",),
        ),
        (
            {"dimensions": ("region",)},
            survey(dimensions={"sex": ["F", "M"], "region": ["a", "b"], "job": ["c", "d"]}),
            ("dimensions is region, the survey asks for sex, job",),
        ),
        ({}, survey(dimensions={"sex": ["F", "M"]}), ("dimensions is none, the survey asks for sex",)),
        ({}, survey(rounds=2), ("max_rounds is 1, the survey asks for 2",)),
    ],
)
def test_a_survey_beyond_a_limit_is_refused_naming_it_and_both_values(
    limits: dict[str, object], definition: Survey, words: tuple[str, ...]
) -> None:
    with pytest.raises(PolicyError) as caught:
        check_survey(policy(**limits), definition, definition.epsilons[0])
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_an_epsilon_the_survey_does_not_permit_is_refused() -> None:
    with pytest.raises(PolicyError, match="the survey permits epsilon 2, not 1"):
        check_survey(policy(), survey(), to_nano(1))


def test_an_attribute_of_two_sources_needs_the_source_named() -> None:
    first, second = policy().collections[0], policy(source="register", max_epsilon=to_nano(1)).collections[0]
    both = Policy(policy().accounts, (first, second))
    with pytest.raises(PolicyError, match="several sources: households, register"):
        both.collection_for(survey())
    assert both.collection_for(survey(), "register") is second
    check_survey(both, survey(), to_nano(2), "households")
    with pytest.raises(PolicyError, match="max_epsilon"):
        check_survey(both, survey(), to_nano(2), "register")
    with pytest.raises(PolicyError, match="of source 'nosuch'"):
        both.collection_for(survey(), "nosuch")
