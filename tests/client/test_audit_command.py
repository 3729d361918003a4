# pyright: standard
"""`tallyveil audit`: what it prints, how it ends, and that an agent under audit risks nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from agent_shell import Shell
from agent_world import SURVEY, Home
from deterministic import Named
from tallyveil.audit import Claim, audit, claim_of, measure, share_coins
from tallyveil.binning import Binning
from tallyveil.cli import dispatch
from tallyveil.domain import Categories, Domain, Integers, Intervals
from tallyveil.epsilon import to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.mechanisms import create, for_survey
from tallyveil.survey import Survey
from tallyveil_client.agent.department import open_department
from tallyveil_client.agent.selection import select_survey
from tallyveil_client.audit.recipe import Recipe, in_fork, in_new_process, streams_of
from tallyveil_client.audit.through_agent import AgentWatcher
from tallyveil_client.audit.views import FAULT_FOUND, NOTHING_CONCLUDED, Audited

CANARY = "canary-4711"
SMALL = replace(SURVEY, domain=Integers(15, 26), bins=3)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Type `tallyveil audit`: exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "200")

    def go(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = dispatch.run(["audit", *map(str, arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return go


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(Home(tmp_path), capsys)


def of(mechanism: str, *more: object, size: int = 8, epsilon: float = 1, draws: int = 100_000) -> tuple[object, ...]:
    return "--mechanism", mechanism, "--domain-size", size, "--epsilon", epsilon, "--draws", draws, *more


# Mechanisms


def test_the_document_holds_the_bounds_beside_what_is_claimed_and_realised(run: Run) -> None:
    code, out, err = run(*of("ss", "--json"))
    found = json.loads(out)
    tested = found["tested"]
    assert (code, err, found["verdict"]) == (0, "", "nothing found")
    assert found["claimed_epsilon"] == 1 and 0.9999 < found["realised_epsilon"] <= 1
    assert found["exact_epsilon"] == pytest.approx(found["realised_epsilon"], abs=1e-8)
    assert 0.5 < tested["lower"] < tested["estimate"] < tested["upper"] < 1.5
    assert tested["half_width"] == pytest.approx((tested["upper"] - tested["lower"]) / 2)
    assert (found["confidence"], found["delta"], found["draws"]) == (0.99999, 0, 100_000)
    assert found["between_bins"] is None and not found["no_bound_between_bins"] and found["repeated_coins"] == []


def test_the_screen_ends_with_one_sentence_and_the_guarantee(run: Run) -> None:
    code, out, err = run(*of("oue", size=16))
    assert (code, err) == (0, "")
    assert "exact channel too large to write down" in out and "no audit shows that there is no worse one" in out
    assert "Nothing found against the claim of 1: within the whole domain, the worst event's epsilon lies" in out
    assert "Each report is 1-LDP over all 16 values" in out and "NOT protected" in out


def test_disclosed_bins_are_said_to_have_no_bound_between_them(run: Run) -> None:
    code, out, _ = run(*of("brr", "--bins", 2))
    assert code == 0 and "Nothing found against the claim of 1: within a bin," in out
    assert "There is no bound between bins: one event tells two values of different bins apart" in out
    found = json.loads(run(*of("brr", "--bins", 2, "--json"))[1])
    assert found["no_bound_between_bins"] and found["tested"]["scope"] == "within a bin"
    assert found["between_bins"]["upper"] is None and found["between_bins"]["lower"] > 4
    assert found["guarantee"]["kind"] == "epsilon-LDP within bin, bin disclosed"


def test_too_few_draws_say_so_and_end_with_a_code_of_their_own(run: Run) -> None:
    code, out, _ = run(*of("grr", size=200, draws=500))
    assert code == NOTHING_CONCLUDED and "Nothing can be concluded from 500 draws" in out
    assert json.loads(run(*of("grr", "--json", size=200, draws=500))[1])["verdict"] == "inconclusive"


def test_noise_at_the_department_is_audited_as_tables_of_one_record(run: Run) -> None:
    code, out, _ = run(*of("histogram-laplace", size=3, draws=60_000))
    assert code == 0 and "1-DP as it leaves the department" in out


def test_the_permanent_response_of_rappor_is_said_to_stay_unseen(run: Run) -> None:
    code, out, _ = run(*of("rappor", epsilon=4, draws=200_000))
    assert code == 0 and "one report has 1.88" in out and "realised 4.0000" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--mechanism", "grr", "--domain-size", 8),
        ("--mechanism", "grr", "--domain-size", 8, "--epsilon", 0),
        of("grr", draws=1),
        of("no-such"),
        of("brr", "--bins", 8),
        of("histogram-laplace", size=2_000),
        of("grr", "--survey", "ages"),
        ("--agent", "agent.toml", "--mechanism", "grr"),
        ("--agent", "no-such-file.toml"),
    ],
)
def test_what_cannot_be_audited_is_refused_before_a_draw(run: Run, arguments: tuple[object, ...]) -> None:
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and err.startswith("error: ")


def test_a_fault_ends_with_a_code_of_its_own_and_says_by_how_much() -> None:
    made = create("grr", domain_size=4, epsilon=2, randomness=Named("fault"))
    outcome = audit(lambda: made, Claim(1, Binning(4, 1)), 100_000)
    result = Audited("grr", {}, made.guarantee, None, outcome)
    assert result.exit_code == FAULT_FOUND and result.verdict == "more than claimed"
    assert result.sentence.startswith("More than claimed: within the whole domain, epsilon is at least 1.9")
    repeated = replace(result, audit=replace(outcome, claim=Claim(3, Binning(4, 1)), repeated=("two processes",)))
    assert repeated.exit_code == FAULT_FOUND and repeated.verdict == "repeated coins"
    assert repeated.sentence == "two processes shared their coins: reports repeat."


# Processes

ZEROS = np.zeros(4_096, dtype=np.int64)


def test_processes_and_forks_draw_coins_of_their_own() -> None:
    streams = streams_of(Recipe("oue", 6, 1.0, 1, bytes(16)), 0)
    assert set(streams) == {"two processes", "a process and its fork"}
    assert not any(share_coins(*pair) for pair in streams.values())


@dataclass(frozen=True)
class Seeded(Recipe):
    """The same coins in every process."""

    def create(self) -> Any:
        return create(self.mechanism, domain_size=self.domain_size, epsilon=self.epsilon, randomness=Named("seed"))


def test_a_fork_that_goes_on_with_its_parents_coins_is_found() -> None:
    box = Seeded("grr", 6, 1.0, 1, b"").make()
    box.perturb(ZEROS)
    assert share_coins(*in_fork(box, ZEROS))


def test_reports_of_a_new_process_come_back_as_they_were_drawn() -> None:
    reports: NDArray[Any] = in_new_process(Recipe("ss", 12, 1.0, 1, bytes(16)), ZEROS[:50])
    expected: ArrayLike = create("ss", domain_size=12, epsilon=1.0).perturb(ZEROS[:50])
    assert reports.shape == np.asarray(expected).shape


# Agents


@pytest.mark.parametrize(("mechanism", "bins"), [("brr", 3), ("grr", 1), ("oue", 1), ("hr", 1)])
def test_an_agent_is_audited_through_its_own_rounds(run: Run, shell: Shell, mechanism: str, bins: int) -> None:
    survey = replace(SMALL, mechanism=mechanism, bins=bins)
    shell.home.prepare(survey=survey)
    shell.approve()
    people = shell.home.folder / "people.csv"
    people.write_text(f"age,sex\n{CANARY},{CANARY}\n")
    before = {path: path.read_bytes() for path in shell.home.folder.iterdir()}
    code, out, err = run("--agent", shell.home.config, "--draws", 100_000, "--json")
    found = json.loads(out)
    assert (code, err, found["verdict"], found["survey"]) == (0, "", "nothing found", "ages@1")
    assert found["tested"]["lower"] > 0.5 and found["tested"]["upper"] < 2.7 and CANARY not in out
    assert found["no_bound_between_bins"] == (mechanism == "brr")
    assert bool(found["note"]) == (mechanism == "oue")
    assert shell.nothing_happened()
    assert {path: path.read_bytes() for path in before} == before
    assert not list(shell.home.folder.glob("tallyveil-audit-*"))


def test_without_an_approved_survey_an_agent_is_not_audited(run: Run, shell: Shell) -> None:
    shell.home.prepare(survey=SMALL)
    code, _, err = run("--agent", shell.home.config)
    assert code == 4 and "no survey is approved here" in err


def department_of(shell: Shell, survey: Survey) -> Any:
    shell.home.prepare(survey=survey)
    shell.approve()
    return open_department(shell.home.config)


def test_an_agent_that_realises_more_than_its_claim_is_found(shell: Shell) -> None:
    survey = replace(SMALL, mechanism="grr", bins=1)
    with department_of(shell, survey) as department:
        watcher = AgentWatcher(department, select_survey(department.approved(), None))
        outcome = measure(watcher, Claim(1, survey.binning), 100_000)
    assert outcome.exceeded and outcome.main.bounds[0] > 1.5


def test_an_agent_with_a_fixed_seed_is_found(shell: Shell) -> None:
    with department_of(shell, replace(SMALL, mechanism="ss", bins=1)) as department:
        item = select_survey(department.approved(), None)
        assert AgentWatcher(department, item).repeated() == ()
        assert AgentWatcher(department, item, coins=lambda: Named("fixed")).repeated() == ("runs of the agent",)


def test_a_small_quota_is_kept_by_each_run(shell: Shell) -> None:
    with department_of(shell, replace(SMALL, quota=700)) as department:
        runs = list[int]()
        watcher = AgentWatcher(department, select_survey(department.approved(), None), runs.append)
        counts = watcher.watch(3, [4], 1_500)[0][0]
    assert runs == [700, 700, 100] and counts.sum() == 1_500 and counts[:4].sum() == 1_500


@pytest.mark.parametrize(
    "domain",
    [
        Integers(-3, 9, 4),
        Categories(("a, b", 'with "quotes"', "007", "x")),
        Intervals(("-1.5", "0", "1e3", "2000", "3e3")),
    ],
)
def test_made_up_records_are_read_as_the_values_they_stand_for(shell: Shell, domain: Domain) -> None:
    survey = replace(SMALL, domain=domain, mechanism="grr", bins=1, epsilons=(to_nano(16),))
    shell.home.prepare(survey=survey, policy="max_epsilon = 16", total=16 * 10**9)
    shell.approve()
    with open_department(shell.home.config) as department:
        watcher = AgentWatcher(department, select_survey(department.approved(), None))
        for value in range(domain.size):
            counts = watcher.watch(value, [0], 500)[0][0]
            assert counts.argmax() == value and counts.sum() == 500


def test_a_noisy_histogram_is_no_sample_to_count(shell: Shell) -> None:
    survey = replace(SMALL, mechanism="histogram-laplace", bins=1)
    shell.home.prepare(survey=survey, policy='guarantees = ["epsilon-DP at the department"]')
    shell.approve()
    with open_department(shell.home.config) as department, pytest.raises(ConfigurationError, match="one draw"):
        AgentWatcher(department, select_survey(department.approved(), None))
    assert claim_of(for_survey(survey, survey.epsilons[0])).epsilon == 2
