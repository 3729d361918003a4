"""`tallyveil aggregator release`: publish a closed round, and write the file of a release.

Not here: how a release is made (`tallyveil_aggregator.publication`). Publishing cannot be taken back, so the output is
tried before it; and a round that stays as it was released can be written again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil_aggregator.commands.common import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    RoundNumber,
    SurveyName,
    called,
    command_line,
    now_utc,
    opened_config,
    opened_surveys,
)

if TYPE_CHECKING:
    from tallyveil.release import VerifiedRelease
    from tallyveil.signing import SigningKey
    from tallyveil.survey import Survey
    from tallyveil_aggregator.store import Store

Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write the signed release here too, now or once it is published."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file that --output names.")]


def release(
    survey: SurveyName,
    number: RoundNumber,
    output: Output = None,
    force: Force = False,
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Publish a closed round: correct the counts, sign the table, append it to the chain of releases."""
    from tallyveil.cli import console
    from tallyveil.moments import moment_text
    from tallyveil_aggregator.enrolment import files
    from tallyveil_aggregator.keys import check_release_key, read_authority, read_release_key

    loaded = opened_config(config)
    key = read_release_key(loaded.release_key)
    check_release_key(key, read_authority(loaded.authority_key))
    if output is not None:
        files.check_writable(output, replace=force, not_done="nothing was released")
    with opened_surveys(config) as (store, known):
        with store.reading() as transaction:
            found = known.choose(transaction, survey)
        verified, is_new = _published(store, found, number, key, wanted=output is not None)
    if output is not None:
        _write(output, verified, force, command_line(config, f"release {called(found)} {number} --output FILE"))
    made = verified.release
    facts = {
        "survey": found.name,
        "version": found.version,
        "survey_hash": found.hash,
        "round": made.round,
        "revision": made.revision,
        "published_now": is_new,
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
    said = "Released" if is_new else f"Released before, as revision {made.revision}, and unchanged since"
    rows = [(name.replace("_", " "), _cell(value)) for name, value in facts.items()]
    console.print_table(("", ""), rows[2:], title=f"{said}: {called(found)}, round {number}")
    if not is_new:
        print(f"Nothing was published now; {output} holds revision {made.revision} as it was published.")
    print(f"Consumers read it with: tallyveil stats get {found.name} --round {number}")


def _published(
    store: Store, survey: Survey, number: int, key: SigningKey, *, wanted: bool
) -> tuple[VerifiedRelease, bool]:
    """The release, and whether it was made now; one made before, unchanged since, only where its file is wanted."""
    from tallyveil.release import open_release
    from tallyveil_aggregator.publication import AlreadyReleased, publish

    try:
        return publish(store, survey, number, key, now_utc), True
    except AlreadyReleased as error:
        if not wanted:
            raise
        with store.reading() as transaction:
            document = transaction.releases.document(error.standing.sequence)
        return open_release(document, key.public), False


def _write(output: Path, verified: VerifiedRelease, force: bool, again: str) -> None:
    from tallyveil.errors import ConfigurationError
    from tallyveil_aggregator.enrolment import files

    try:
        files.write_file(output, verified.document, secret=False, replace=force)
    except ConfigurationError as error:  # although it could be written a moment ago
        raise ConfigurationError(
            f"the round is released, as revision {verified.release.revision}; but {error.what}",
            not_done="the release's file was not written",
            next_step=f"write it elsewhere: {again}",
        ) from None


def _cell(fact: object) -> object:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return "-" if fact is None else fact
