"""What several commands of the agent share: their options, the clock, and reading a source with a progress bar.

Not here: any command.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tallyveil_client.agent.config import AgentConfig, SourceConfig
    from tallyveil_client.agent.encode import Encoded
    from tallyveil_client.agent.selection import Approved

DEFAULT_CONFIG = Path("agent.toml")
Config = Annotated[Path, typer.Option("--config", metavar="FILE", help="The agent's configuration.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Source = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="Which source, where several have the attribute.")
]
Wanted = Annotated[
    str | None,
    typer.Argument(
        metavar="[SURVEY]",
        help="An approved survey: name, name@version or the first digits of its hash. Not needed where there is one.",
        show_default=False,
    ),
]
RoundNumber = Annotated[
    int | None,
    typer.Option("--round", metavar="N", help="Which round.", show_default="the open one, by this machine's clock"),
]


def now() -> datetime:
    """The agent's clock."""
    return datetime.now(UTC)


def warn_of_exposed(config: AgentConfig) -> None:
    """Say on standard error which secret files others may read."""
    from tallyveil.cli.console import plain
    from tallyveil_client.agent.connection import exposed_secrets

    for sentence in exposed_secrets(config):
        print(plain(f"warning: {sentence}"), file=sys.stderr)


def reading(source: SourceConfig, item: Approved) -> Generator[Encoded]:
    """Every record of a source, with a progress bar. Close it where it is not read to its end."""
    from tallyveil.cli.console import progress
    from tallyveil_client.agent.scan import Progress, scan

    steps, done = 1000, 0
    with progress(f"reading source '{source.name}'", steps) as advance:

        def show(state: Progress) -> None:
            nonlocal done
            reached = int(steps * (state.fraction or 0))
            advance(reached - done)
            done = reached

        yield from scan(source, item.survey, show)
