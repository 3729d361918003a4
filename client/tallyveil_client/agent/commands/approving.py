"""`tallyveil agent approve`: the operator's consent to one survey.

Not here: what is checked (`tallyveil_client.agent.approval`). A survey from a file is approved without gRPC and
without the libraries that read records.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil_client.agent.commands.options import DEFAULT_CONFIG, AsJson, Config, Source, now, warn_of_exposed

if TYPE_CHECKING:
    from tallyveil_client.agent.department import Department


def approve(
    survey: Annotated[
        str,
        typer.Argument(
            metavar="SURVEY", help="A signed survey file, or a hash to fetch from the aggregator.", show_default=False
        ),
    ],
    config: Config = DEFAULT_CONFIG,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="Which of the permitted values.", show_default="the only one")
    ] = None,
    source: Source = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify a survey against the pinned authority and the policy, show it, and record your consent to it."""
    from tallyveil.cli import console
    from tallyveil.cli.guarantees import guarantee_json, guarantee_text
    from tallyveil.cli.survey_view import print_survey, survey_json
    from tallyveil.epsilon import NANO, epsilon_text
    from tallyveil.errors import ConfigurationError
    from tallyveil.mechanisms import for_survey
    from tallyveil.moments import moment_text
    from tallyveil_client.agent import approval
    from tallyveil_client.agent.costs import cost_json, cost_text
    from tallyveil_client.agent.department import open_department
    from tallyveil_client.agent.histogram import histogram_guarantee
    from tallyveil_client.agent.outlook import outlook
    from tallyveil_client.agent.overlap import overlaps
    from tallyveil_client.agent.selection import Approved
    from tallyveil_client.agent.store import Approval

    with open_department(config) as department:
        asked = None if Path(survey).exists() else approval.hash_in(survey)
        document = _read(survey) if asked is None else _fetched(department, asked)
        found = approval.verified(document, department.authority, asked)
        chosen = approval.chosen_epsilon(found, epsilon)
        limits = approval.require_approvable(department, found, chosen, source, now())
        item = Approved(found, chosen, moment_text(now()))
        cost, guarantee = department.cost(item, limits), for_survey(found, chosen).guarantee
        histogram = histogram_guarantee(found, limits, guarantee)
        warnings = outlook(department, item, cost, now()).warnings(now())
        overlapping = overlaps(department.shown(found, limits), department.shown_before())
        if not as_json:
            print_survey(found, f"signed by the pinned authority, {department.authority.fingerprint}")
            if len(found.epsilons) > 1:
                print(f"This department takes part at epsilon {epsilon_text(chosen)}:")
                print(guarantee_text([guarantee]))
            if histogram is not None:
                print(histogram.text)
            print(f"Records come from source '{limits.source}'. {cost_text(cost)}")
            for overlap in overlapping:
                print(console.plain(overlap.describe(limits.allow_overlap)))
            for warning in warnings:
                print(console.plain(f"Warning: {warning}"))
        if not yes:
            if as_json or not sys.stdin.isatty():
                raise ConfigurationError(
                    "approving needs an answer, and there is no terminal to ask on",
                    not_done="nothing was approved",
                    next_step="read the survey with tallyveil survey show, then add --yes",
                )
            typer.confirm(f"Approve {item.label} at epsilon {epsilon_text(chosen)}?", abort=True)
        department.store.approve(Approval(found.hash, document, chosen, item.at))
        if as_json:
            console.print_json(
                {
                    "approved": item.label,
                    "epsilon": chosen / NANO,
                    "source": limits.source,
                    "overlaps": [overlap.to_json() for overlap in overlapping],
                    "warnings": list(warnings),
                    "guarantee": guarantee_json(guarantee),
                    "histogram": None if histogram is None else histogram.to_json(),
                    "cost": cost_json(cost),
                    "survey": survey_json(found),
                }
            )
            return
    done = f"Approved {item.label} at epsilon {epsilon_text(chosen)}"
    if warnings:
        print(console.plain(f"{done}, but {' '.join(warnings)}"))
    else:
        print(f"{done}. Next: tallyveil agent check {item.label}")


def _read(path: str) -> bytes:
    from tallyveil.cli.files import read_file

    return read_file(Path(path), "the survey")


def _fetched(department: Department, survey_hash: str) -> bytes:
    from tallyveil_client.agent.upload import endpoint_of
    from tallyveil_client.surveys import fetch_survey
    from tallyveil_client.transport import connect

    warn_of_exposed(department.config)
    endpoint = endpoint_of(department.config.aggregator)
    with connect(endpoint) as channel:
        return fetch_survey(channel, survey_hash, endpoint)
