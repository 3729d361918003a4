"""What may follow `tallyveil stats …`: options that several of its commands share.

Not here: the commands.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tallyveil.errors import ConfigurationError

RELEASE_KEY = "release.pub"
"""In the folder of a consumer's credentials."""

_DAY_S = 86_400


class Format(StrEnum):
    """What `stats export` writes."""

    CSV = "csv"
    JSON = "json"
    TABLE = "table"


def _seconds(value: float) -> float:
    if not 0 < value <= _DAY_S:
        raise ConfigurationError(
            "--timeout is a number of seconds above 0, at most one day",
            not_done="nothing was fetched",
            next_step="write for example --timeout 30",
        )
    return value


Server = Annotated[str, typer.Option("--server", help="The aggregator, HOST:PORT.", show_default=False)]
Credentials = Annotated[
    Path, typer.Option("--credentials", help="The folder that tallyveil pki consumer wrote.", show_default=False)
]
Key = Annotated[
    Path | None,
    typer.Option("--key", help="The release key, as you pinned it.", show_default="release.pub of --credentials"),
]
ServerName = Annotated[
    str | None, typer.Option("--server-name", help="The name in the server's certificate, if not HOST.")
]
Timeout = Annotated[
    float, typer.Option("--timeout", callback=_seconds, help="Longest wait for an answer, in seconds; at most a day.")
]
Round = Annotated[int | None, typer.Option("--round", help="Of the survey.", show_default="the newest")]
Version = Annotated[int | None, typer.Option("--version", help="Of the survey.", show_default="the newest")]
Revision = Annotated[int | None, typer.Option("--revision", help="Of the release.", show_default="the newest")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
