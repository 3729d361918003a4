"""`tallyveil aggregator surveys`: the signed surveys this aggregator collects for.

Not here: making and signing them (`tallyveil survey`), which happens away from the aggregator.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli import console
from tallyveil_aggregator.commands.common import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    SurveyName,
    called,
    command_line,
    now_utc,
    opened_surveys,
)

if TYPE_CHECKING:
    from tallyveil.survey import Survey

app = typer.Typer(help="Add signed surveys, and show them.", no_args_is_help=True)


@app.command(epilog="Example: tallyveil aggregator surveys add NAME-v1.survey")
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The signed survey.", show_default=False)],
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Add a survey that the configured authority has signed; departments can then fetch it."""
    from tallyveil_aggregator.keys import read_file

    next_step = "name the file that tallyveil survey sign wrote, and check its permissions"
    document = read_file(file, "the survey", next_step, "the survey was not added")
    with opened_surveys(config) as (store, known), store.writing() as transaction:
        survey, is_new = known.add(transaction, document, now_utc())
    if as_json:
        facts = {"hash": survey.hash, "name": survey.name, "version": survey.version, "added": is_new}
        console.print_json(facts)
        return
    print(f"{'Added' if is_new else 'Known before, unchanged:'} {called(survey)}, signature verified.")
    print(f"Hash, for departments to approve: {survey.hash}")


@app.command(name="list", epilog="Example: tallyveil aggregator surveys list")
def list_(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """List the surveys, the last added first."""
    from tallyveil.moments import moment_text

    with opened_surveys(config) as (store, known), store.reading() as transaction:
        found = known.all(transaction)
    if as_json:
        listed = [
            {
                "hash": survey.hash,
                "name": survey.name,
                "version": survey.version,
                "title": survey.title,
                "rounds": len(survey.rounds),
                "expires": moment_text(survey.expires),
            }
            for survey in found
        ]
        console.print_json({"surveys": listed})
    elif found:
        rows = [(called(item), item.title, len(item.rounds), moment_text(item.expires)) for item in found]
        console.print_table(("survey", "title", "rounds", "expires"), rows, right=("rounds",))
        print("Hashes, for departments to approve:")  # not in the table, which a narrow terminal would fold
        for item in found:
            print(f"  {item.hash} {called(item)}")
    else:
        print(f"No survey is known. Next: {command_line(config, 'surveys add FILE')}")


@app.command(epilog="Example: tallyveil aggregator surveys show hs-age@1")
def show(survey: SurveyName, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Show a survey, with what its mechanism protects and what not."""
    from dataclasses import asdict

    from tallyveil.mechanisms import for_survey

    with opened_surveys(config) as (store, known), store.reading() as transaction:
        found = known.choose(transaction, survey)
    guarantees = [for_survey(found, epsilon).guarantee for epsilon in found.epsilons]
    if as_json:
        shown = [asdict(item) for item in guarantees]
        console.print_json({"hash": found.hash, "survey": found.to_json(), "guarantees": shown})
        return
    console.print_table(("", ""), _facts(found), title=f"{called(found)}: {found.title}")
    print(f"Hash, for departments to approve: {found.hash}")
    for guarantee in guarantees:
        print(f"Guarantee: {guarantee.kind}. {guarantee.text}")
        print("".join(f"  Not protected: {phrase}.\n" for phrase in guarantee.not_protected), end="")


def _facts(survey: Survey) -> list[tuple[str, object]]:
    from tallyveil.epsilon import epsilon_text
    from tallyveil.moments import moment_text

    cells = ", ".join(f"{item.name} ({item.domain.size} values)" for item in survey.dimensions)
    return [
        ("purpose", survey.purpose),
        ("attribute", f"{survey.attribute}, {survey.domain.size} values"),
        ("mechanism", f"{survey.mechanism}, {survey.binning.describe()}"),
        ("epsilon", ", ".join(epsilon_text(epsilon) for epsilon in survey.epsilons)),
        ("in clear", cells or "no dimension"),
        ("quota", f"{survey.quota} records a department and round"),
        ("least departments", survey.minimums.departments),
        ("rounds", len(survey.rounds)),
        ("expires", moment_text(survey.expires)),
    ]
