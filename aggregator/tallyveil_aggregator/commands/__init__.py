"""`tallyveil aggregator`: set up, serve, and run rounds to a release.

Not here: what the commands do; each imports that when it is called, so that help is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil_aggregator.commands import departments, rounds, surveys
from tallyveil_aggregator.commands.common import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    command_line,
    now_utc,
    opened_config,
)
from tallyveil_aggregator.commands.release import release

app = typer.Typer(
    help="The statistics office's server: takes in submissions, publishes signed releases.", no_args_is_help=True
)
app.add_typer(departments.app, name="departments")
app.add_typer(surveys.app, name="surveys")
app.add_typer(rounds.app, name="rounds")


@app.command(epilog="Example: tallyveil aggregator init --config aggregator.toml")
def init(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Check the keys and certificates that the configuration names, and make its store. One that is there is kept."""
    from tallyveil.cli import console
    from tallyveil_aggregator.key_files import check_key_files
    from tallyveil_aggregator.store import Store

    loaded = opened_config(config)
    check_key_files(loaded, now_utc())
    path = loaded.store
    Store.create(path).close()
    steps = [command_line(config, step) for step in ("departments add ID", "surveys add FILE", "serve")]
    if as_json:
        console.print_json({"store": str(path), "next": steps})
        return
    print(f"Keys and certificates fit. Made the store {path}. Next:")
    for step in steps:
        print(f"  {step}")


@app.command(epilog="Example: tallyveil aggregator serve --config aggregator.toml")
def serve(
    config: Config = DEFAULT_CONFIG,
    port_file: Annotated[
        Path | None,
        typer.Option("--port-file", metavar="PATH", help="Write the bound port here once calls are answered."),
    ] = None,
    log_level: Annotated[str, typer.Option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    as_json: Annotated[bool, typer.Option("--json", help="No effect: the log is JSON anyway.")] = False,
) -> None:
    """Serve departments and consumers over mutual TLS until SIGTERM or Ctrl-C; logs JSON lines on standard error."""
    from tallyveil.cli import logs
    from tallyveil.errors import ConfigurationError
    from tallyveil_aggregator.service import server

    loaded = opened_config(config)
    try:
        logs.configure(log_level)
    except ValueError:
        raise ConfigurationError(
            "there is no such log level",
            not_done="the server was not started",
            next_step="--log-level is DEBUG, INFO, WARNING or ERROR",
        ) from None
    server.serve(loaded, port_file)


app.command(epilog="Example: tallyveil aggregator release hs-age 1 --output release.json")(release)
