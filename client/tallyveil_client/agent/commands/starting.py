"""`tallyveil agent init`: sample files to begin with.

Not here: their meaning (`config`, `policy_file`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil_client.agent.commands.options import AsJson


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Made if it is missing.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write a sample agent.toml and policy.toml to edit. Files that are there are never touched."""
    from importlib.resources import files

    from tallyveil.cli import console
    from tallyveil.cli.files import write_file
    from tallyveil.errors import ConfigurationError

    names = ("agent.toml", "policy.toml")
    there = [str(folder / name) for name in names if (folder / name).exists()]
    if there:
        raise ConfigurationError(
            f"{there[0]} is there already", not_done="nothing was written", next_step="name another folder"
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the folder {folder} cannot be made: {error.strerror or type(error).__name__}",
            not_done="nothing was written",
        ) from None
    for name in names:
        write_file(folder / name, files("tallyveil_client.agent").joinpath("samples", name).read_bytes())
    pinned = ("ca.pem", "certificate.pem", "private.key", "authority.pub")
    lacking = [name for name in pinned if not (folder / name).exists()]
    steps = [
        f"edit {folder / 'agent.toml'}: the aggregator's address and the columns of your source",
        f"edit {folder / 'policy.toml'}: what your department allows",
        *([f"put {', '.join(lacking)} into {folder}"] if lacking else []),
        f"tallyveil agent approve SURVEY_FILE --config {folder / 'agent.toml'}",
    ]
    if as_json:
        console.print_json({"written": [str(folder / name) for name in names], "next": steps})
        return
    print(f"Wrote {folder / names[0]} and {names[1]}. Next:")
    for step in steps:
        print(f"  {step}")
