"""What the aggregator's commands share: the options, and the configuration, store and surveys behind them.

Not here: any command.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tallyveil.survey import Survey
    from tallyveil_aggregator.config import AggregatorConfig
    from tallyveil_aggregator.known_surveys import KnownSurveys
    from tallyveil_aggregator.store import Store

Config = Annotated[Path, typer.Option("--config", metavar="FILE", help="The configuration.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SurveyName = Annotated[
    str,
    typer.Argument(metavar="SURVEY", help="Name, name@version, or the first digits of its hash.", show_default=False),
]
RoundNumber = Annotated[int, typer.Argument(metavar="ROUND", help="Number of the round.", show_default=False)]

DEFAULT_CONFIG = Path("aggregator.toml")


def opened_config(path: Path) -> AggregatorConfig:
    """The configuration of that file."""
    from tallyveil_aggregator.config import load_config

    return load_config(path)


@contextmanager
def opened_store(config: Path) -> Generator[Store]:
    """The store of a configuration, for the time of a command."""
    from tallyveil_aggregator.store import Store

    store = Store.open(opened_config(config).store)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def opened_surveys(config: Path) -> Generator[tuple[Store, KnownSurveys]]:
    """The store of a configuration and its surveys, for the time of a command."""
    from tallyveil_aggregator.keys import read_authority
    from tallyveil_aggregator.known_surveys import KnownSurveys

    known = KnownSurveys(read_authority(opened_config(config).authority_key))
    with opened_store(config) as store:
        yield store, known


def command_line(config: Path, command: str) -> str:
    """A command of the aggregator as a person types it next, with the configuration in use."""
    option = "" if config == DEFAULT_CONFIG else f" --config {shlex.quote(str(config))}"
    return f"tallyveil aggregator {command}{option}"


def called(survey: Survey) -> str:
    """A survey as people name it, without doubt which version."""
    return f"{survey.name}@{survey.version}"


def now_utc() -> datetime:
    """The present moment, by this machine's clock."""
    return datetime.now(UTC)
