"""`tallyveil aggregator rounds`: how rounds stand, closing them early and opening them again.

Not here: their windows, which the signed survey fixes.
"""

from __future__ import annotations

import typer

from tallyveil.cli import console
from tallyveil_aggregator.commands.common import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    RoundNumber,
    SurveyName,
    called,
    command_line,
    now_utc,
    opened_surveys,
)

app = typer.Typer(help="See how rounds stand, close them early, open them again.", no_args_is_help=True)


@app.command(name="list", epilog="Example: tallyveil aggregator rounds list hs-age")
def list_(survey: SurveyName, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """List a survey's rounds with their progress."""
    from dataclasses import asdict

    from tallyveil.moments import moment_text
    from tallyveil_aggregator.rounds import state_of

    now = now_utc()
    listed: list[dict[str, object]] = []
    with opened_surveys(config) as (store, known), store.reading() as transaction:
        found = known.choose(transaction, survey)
        for window in found.rounds:
            if (state := transaction.rounds.state(found, window.number)) is None:
                continue
            release = transaction.releases.last_of(found.hash, window.number)
            facts = {
                "number": window.number,
                "state": state_of(state, now),
                "opens": moment_text(window.opens),
                "closes": moment_text(window.closes),
                "revision": release.revision if release else None,
            }
            listed.append({**facts, **asdict(transaction.rounds.progress(found.hash, window.number))})
    if as_json:
        console.print_json({"survey": found.name, "version": found.version, "hash": found.hash, "rounds": listed})
        return
    headers = ("number", "state", "opens", "closes", "opened", "complete", "records", "revision")
    rows = [["-" if row[header] is None else row[header] for header in headers] for row in listed]
    title = f"{called(found)}: departments that opened and completed their submission, and records held"
    console.print_table(headers, rows, title=title, right=("number", "opened", "complete", "records", "revision"))


@app.command(epilog="Example: tallyveil aggregator rounds close hs-age 1")
def close(survey: SurveyName, number: RoundNumber, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Close a round before its window ends; submissions not complete by then are left out."""
    from tallyveil_aggregator.rounds import close_round

    with opened_surveys(config) as (store, known), store.writing() as transaction:
        found = known.choose(transaction, survey)
        changed = close_round(transaction, found, number, now_utc())
        progress = transaction.rounds.progress(found.hash, number)
    if as_json:
        facts = {"survey": found.name, "version": found.version, "round": number, "state": "closed"}
        console.print_json({**facts, "changed": changed, "opened": progress.opened, "complete": progress.complete})
        return
    print(f"Round {number} of {called(found)} is closed{'' if changed else ' already'}.")
    print(
        f"Submissions: {progress.complete} complete, {progress.opened - progress.complete} opened only, which stay out."
    )
    print(f"Next: {command_line(config, f'release {called(found)} {number}')}")


@app.command(name="open", epilog="Example: tallyveil aggregator rounds open hs-age 1")
def open_(survey: SurveyName, number: RoundNumber, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Take back an early close, while the round's window lasts and nothing of it is released."""
    from tallyveil_aggregator.rounds import reopen_round, state_of

    with opened_surveys(config) as (store, known), store.writing() as transaction:
        found, now = known.choose(transaction, survey), now_utc()
        changed = reopen_round(transaction, found, number, now)
        state = transaction.rounds.state(found, number)
    named = state_of(state, now) if state else "unknown"
    if as_json:
        facts = {"survey": found.name, "version": found.version, "round": number, "state": named}
        console.print_json({**facts, "changed": changed})
    else:
        print(f"Round {number} of {called(found)} is {named}{'' if changed else '; it was not closed early'}.")
