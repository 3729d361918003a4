"""`tallyveil audit`: the empirical epsilon of a mechanism or of this agent, black box, with a confidence bound.

Not here: the audit (`tallyveil.audit`), an agent's part in it (`through_agent`) and what is printed (`views`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tallyveil_client.audit.views import Audited

app = typer.Typer()


@app.command(
    epilog="Example: tallyveil audit --mechanism oue --domain-size 16 --epsilon 2 --draws 10000000; or, where an agent "
    "has an approved survey: tallyveil audit --agent agent.toml. Exit code 0: nothing found; 8: more than claimed, or "
    "coins that repeat; 9: too few draws to conclude anything."
)
def audit(
    mechanism: Annotated[str | None, typer.Option(help="grr, brr, ss, oue …", show_default=False)] = None,
    domain_size: Annotated[int | None, typer.Option(help="K.", show_default=False)] = None,
    epsilon: Annotated[str | None, typer.Option(help="What is claimed, from 0.01 to 16.", show_default=False)] = None,
    bins: Annotated[int | None, typer.Option(help="Bins of equal width, for those that bin.", show_default="1")] = None,
    draws: Annotated[int, typer.Option(help="Records to perturb: more of them, closer bounds.")] = 1_000_000,
    agent: Annotated[
        Path | None,
        typer.Option(
            metavar="CONFIG",
            help="Audit this agent with a survey approved there, on made-up records and a throw-away store.",
            show_default=False,
        ),
    ] = None,
    survey: Annotated[
        str | None,
        typer.Option(help="Which approved survey, where there are several; with --agent.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the empirical epsilon of a mechanism from its reports alone, with a confidence bound."""
    from tallyveil.cli import console
    from tallyveil.errors import ConfigurationError

    named = {"--mechanism": mechanism, "--domain-size": domain_size, "--epsilon": epsilon, "--bins": bins}
    given = [option for option, value in named.items() if value is not None]
    if agent is not None:
        if given:
            raise ConfigurationError(
                f"with --agent the survey says what {' and '.join(given)} would",
                not_done="nothing was audited",
                next_step=f"leave out {' and '.join(given)}, or --agent",
            )
        result = _of_agent(agent, survey, draws)
    elif mechanism is None or domain_size is None or epsilon is None or survey is not None:
        raise ConfigurationError(
            "an audit is of --mechanism, --domain-size and --epsilon; or of an --agent, and there of a --survey",
            not_done="nothing was audited",
            next_step="see tallyveil audit --help",
        )
    else:
        result = _of_mechanism(mechanism, domain_size, epsilon, bins or 1, draws)
    if as_json:
        console.print_json(result.to_json())
    else:
        result.show()
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _of_mechanism(name: str, domain_size: int, epsilon: str, bins: int, draws: int) -> Audited:
    from tallyveil.audit import audit, claim_of, exact_epsilon
    from tallyveil.audit.measure import check_draws
    from tallyveil.cli.console import progress
    from tallyveil.epsilon import NANO, epsilon_text, to_nano
    from tallyveil.mechanisms.hash_tables import SEED_BYTES
    from tallyveil.mechanisms.rappor import Rappor
    from tallyveil.randomness import public_token
    from tallyveil_client.audit.recipe import Recipe, streams_of
    from tallyveil_client.audit.views import Audited

    check_draws(draws)
    recipe = Recipe(name, domain_size, to_nano(epsilon) / NANO, bins, public_token(SEED_BYTES))
    made = recipe.create()
    claim = claim_of(made)
    streams = streams_of(recipe, claim.compared[0])
    with progress("perturbing", draws) as advance:
        outcome = audit(recipe.make, claim, draws, streams=streams, advance=advance)
    made_bins = made.binning.bins
    binned = f", {made.binning.describe()}" if made_bins > 1 else ""
    title = f"{made.name}, {domain_size} values{binned}, epsilon {epsilon_text(made.epsilon)}"
    facts: dict[str, object] = {"mechanism": made.name, "domain_size": domain_size, "bins": bins}
    note = ""
    if isinstance(made, Rappor):
        note = (
            "What is claimed and realised is of the permanent response, which no report shows by itself: "
            f"one report has {made.report_epsilon:.4f}."
        )
    return Audited(title, facts, made.guarantee, exact_epsilon(made), outcome, note)


def _of_agent(config: Path, wanted: str | None, draws: int) -> Audited:
    from tallyveil.audit import claim_of, exact_epsilon, measure
    from tallyveil.cli.console import progress
    from tallyveil.epsilon import epsilon_text
    from tallyveil.mechanisms import for_survey
    from tallyveil_client.agent.department import open_department
    from tallyveil_client.agent.selection import select_survey
    from tallyveil_client.audit.through_agent import NOTE, AgentWatcher
    from tallyveil_client.audit.views import Audited

    with open_department(config) as department:
        item = select_survey(department.approved(), wanted)
        with progress("running the agent", draws) as advance:
            watcher = AgentWatcher(department, item, advance)
            made, survey = for_survey(item.survey, item.epsilon), item.survey
            outcome = measure(watcher, claim_of(made), draws, watcher.repeated())
    facts: dict[str, object] = {
        "survey": item.label,
        "survey_hash": survey.hash,
        "mechanism": made.name,
        "domain_size": survey.domain.size,
        "bins": survey.bins,
    }
    title = f"this agent with {item.label}: {made.name}, epsilon {epsilon_text(item.epsilon)}"
    return Audited(title, facts, made.guarantee, exact_epsilon(made), outcome, "" if watcher.exclusive else NOTE)
