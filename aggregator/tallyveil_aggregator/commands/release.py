"""`tallyveil aggregator release`: publish a closed round.

Not here: how a release is made (`tallyveil_aggregator.publication`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil_aggregator.commands.common import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    RoundNumber,
    SurveyName,
    called,
    now_utc,
    opened_config,
    opened_surveys,
)

Output = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write the signed release here too.")]


def release(
    survey: SurveyName,
    number: RoundNumber,
    output: Output = None,
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Publish a closed round: correct the counts, sign the table, append it to the chain of releases."""
    from tallyveil.cli import console
    from tallyveil.moments import moment_text
    from tallyveil_aggregator.enrolment import files
    from tallyveil_aggregator.keys import read_release_key
    from tallyveil_aggregator.publication import publish

    key = read_release_key(opened_config(config).release_key)
    if output is not None:
        files.refuse_existing([output], "name another file with --output; nothing was released")
    with opened_surveys(config) as (store, known):
        with store.reading() as transaction:
            found = known.choose(transaction, survey)
        verified = publish(store, found, number, key, now_utc)
    if output is not None:
        files.write_file(output, verified.document, secret=False)
    made = verified.release
    facts = {
        "survey": found.name,
        "version": found.version,
        "survey_hash": found.hash,
        "round": made.round,
        "revision": made.revision,
        "hash": verified.hash,
        "previous": made.previous,
        "released_at": moment_text(made.released_at),
        "departments": len(made.participants),
        "records": made.records,
        "signed_by": key.public.fingerprint,
        "file": None if output is None else str(output),
    }
    if as_json:
        console.print_json(facts)
        return
    rows = [(name.replace("_", " "), "-" if value is None else value) for name, value in facts.items()]
    console.print_table(("", ""), rows[2:], title=f"Released: {called(found)}, round {number}")
    print(f"Consumers read it with: tallyveil stats get {found.name} --round {number}")
