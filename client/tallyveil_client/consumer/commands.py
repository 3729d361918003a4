"""`tallyveil stats`: list, fetch, verify, export and summarise releases.

Not here: what a release must satisfy (`tallyveil.release`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli import console, files
from tallyveil.errors import ConfigurationError
from tallyveil_client.consumer import summarising
from tallyveil_client.consumer.options import (
    RELEASE_KEY,
    AsJson,
    Credentials,
    Force,
    Format,
    Key,
    Revision,
    Round,
    Server,
    ServerName,
    Timeout,
    Version,
)

if TYPE_CHECKING:
    from tallyveil_client.consumer.statistics import Statistics

app = typer.Typer(help="Read statistics, and verify them without trusting who served them.", no_args_is_help=True)

_CONNECTION = "--server stats.example.org:7443 --credentials ./newsroom"


@app.command("list", epilog=f"Example: tallyveil stats list {_CONNECTION}")
def list_releases(
    server: Server,
    credentials: Credentials,
    key: Key = None,
    server_name: ServerName = None,
    timeout_s: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """List what the server says it has released; `stats get` verifies."""
    from tallyveil.moments import moment_text

    with _statistics(server, credentials, key, server_name, timeout_s) as statistics:
        found = statistics.list()
    if as_json:
        listed = [
            {
                "survey": item.survey,
                "version": item.version,
                "survey_hash": item.survey_hash,
                "round": item.round,
                "revision": item.revision,
                "released_at": moment_text(item.released_at),
                "release_hash": item.hash,
            }
            for item in found
        ]
        console.print_json({"verified": False, "releases": listed})
        return
    rows = [
        (item.survey, item.version, item.round, item.revision, moment_text(item.released_at), item.hash)
        for item in found
    ]
    headers = ("survey", "version", "round", "revision", "released", "release")
    console.print_table(headers, rows, spare=("release", "revision", "released"))
    console.print_line("As the server says; tallyveil stats get fetches one and verifies it.")


@app.command(epilog=f"Example: tallyveil stats get high-income-age --round 1 --output age.release.json {_CONNECTION}")
def get(
    survey: Annotated[str, typer.Argument(metavar="SURVEY", help="Name of the survey.", show_default=False)],
    server: Server,
    credentials: Credentials,
    key: Key = None,
    round: Round = None,
    version: Version = None,
    revision: Revision = None,
    cell: Annotated[
        list[str] | None,
        typer.Option("--cell", help="Show these cells: sex=Female; repeat for more.", show_default="the total"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Keep the signed release in this file.", show_default="shown, not kept"),
    ] = None,
    force: Force = False,
    server_name: ServerName = None,
    timeout_s: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """Fetch a release, verify it, and show it with error bars; --output FILE keeps the signed file.

    Nothing is shown or kept that does not verify.
    """
    from tallyveil_client.consumer import export, rendering

    chosen = _cell(cell or ())
    with _statistics(server, credentials, key, server_name, timeout_s) as statistics:
        verified = statistics.get(survey, round, version=version, revision=revision)
    tables = rendering.choose_tables(verified, chosen)
    if output is not None:
        files.write_file(output, verified.document, force=force)
    if as_json:
        console.print_json(export.to_document(verified))
        return
    rendering.print_release(verified, tables)
    kept = "Not kept: --output FILE keeps the signed file." if output is None else f"Kept, as it was signed: {output}"
    console.print_line(kept)


@app.command(epilog="Example: tallyveil stats verify age.release.json --key release.pub --previous before.release.json")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A signed release.", show_default=False)],
    key: Annotated[Path, typer.Option("--key", help="The release key, as you pinned it.", show_default=False)],
    previous: Annotated[
        Path | None, typer.Option("--previous", help="The release that this one must follow.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify a release offline and say what was checked (exit code 5 where something does not hold)."""
    from tallyveil.cli.guarantees import guarantee_json, guarantee_text
    from tallyveil_client.consumer.rendering import guarantees_of
    from tallyveil_client.consumer.verification import verify_file

    found = verify_file(file, key, previous)
    release, guarantees = found.verified.release, guarantees_of(found.verified)
    if as_json:
        console.print_json(
            {
                "verified": True,
                "survey": release.survey.name,
                "version": release.survey.version,
                "round": release.round,
                "revision": release.revision,
                "release_hash": found.verified.hash,
                "signer": found.signer,
                "numbers": found.numbers,
                "chain": found.chain,
                "checks": [{"check": name, "outcome": outcome} for name, outcome in found.checks],
                "guarantees": [guarantee_json(guarantee) for guarantee in guarantees],
            }
        )
        return
    title = f"VERIFIED: {release.survey.name} version {release.survey.version}, round {release.round}"
    console.print_table(("checked", "outcome"), found.checks, title=f"{title}, revision {release.revision}")
    print(guarantee_text(guarantees))


@app.command(epilog="Example: tallyveil stats export age.release.json --key release.pub --format csv --output age.csv")
def export(
    what: Annotated[
        str, typer.Argument(metavar="SURVEY|FILE", help="A survey to fetch, or a signed release.", show_default=False)
    ],
    form: Annotated[Format, typer.Option("--format", help="csv, json or table.")] = Format.CSV,
    output: Annotated[
        Path | None, typer.Option("--output", help="The file to write.", show_default="standard output")
    ] = None,
    key: Key = None,
    server: Annotated[str | None, typer.Option("--server", help="For a SURVEY: HOST:PORT.", show_default=False)] = None,
    credentials: Annotated[
        Path | None, typer.Option("--credentials", help="For a SURVEY: the consumer's folder.", show_default=False)
    ] = None,
    round: Round = None,
    version: Version = None,
    revision: Revision = None,
    force: Force = False,
    server_name: ServerName = None,
    timeout_s: Timeout = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write a release as CSV, JSON or a table, once it is verified."""
    from tallyveil_client.consumer import export, rendering
    from tallyveil_client.consumer.verification import verify_file

    if Path(what).is_file():
        if key is None:
            raise ConfigurationError(
                "a file is verified with --key",
                not_done="nothing was exported",
                next_step="add --key release.pub, the release key as you pinned it",
            )
        verified = verify_file(Path(what), key).verified
    else:
        if server is None or credentials is None:
            raise ConfigurationError(
                f"there is no file {what}, and a survey is fetched with --server and --credentials",
                not_done="nothing was exported",
                next_step="check the file's name, or add --server HOST:PORT --credentials FOLDER",
            )
        with _statistics(server, credentials, key, server_name, timeout_s) as statistics:
            verified = statistics.get(what, round, version=version, revision=revision)
    match Format.JSON if as_json else form:
        case Format.CSV:
            _deliver(export.to_csv(verified), output, force)
        case Format.JSON:
            _deliver(export.to_json(verified), output, force)
        case Format.TABLE if output is None:
            rendering.print_release(verified, verified.release.tables)
        case Format.TABLE:
            _deliver(rendering.release_text(verified, verified.release.tables), output, force)


app.command(epilog=summarising.EXAMPLE)(summarising.summary)


def _deliver(text: str, output: Path | None, force: bool) -> None:
    if output is not None:
        files.write_file(output, text.encode(), force=force)
    elif sys.stdout.isatty():
        print(text, end="")
    else:  # the bytes of the file, whatever encoding the terminal has: no label may change on the way
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())


def _statistics(
    server: str, credentials: Path, key: Path | None, server_name: str | None, timeout_s: float
) -> Statistics:
    from tallyveil_client.consumer.statistics import Statistics

    trusted = credentials / RELEASE_KEY if key is None else key
    return Statistics(
        server, credentials=credentials, trusted_key=trusted, server_name=server_name, timeout_s=timeout_s
    )


def _cell(texts: Sequence[str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in chosen:
            raise ConfigurationError(
                "a cell is chosen by NAME=VALUE, each name once",
                not_done="nothing was fetched",
                next_step="write for example --cell sex=Female",
            )
        chosen[name] = value
    return chosen
