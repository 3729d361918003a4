"""From a command line to the one subcommand it names, importing no other.

Subcommands are found in the entry-point group `tallyveil.commands`, so that a machine needs only what its own
role needs. Not here: what a failure looks like (`tallyveil.cli.failures`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Annotated

import typer
import typer.core
import typer.main

from tallyveil import __version__
from tallyveil.cli import encoding, failures

PROGRAM = "tallyveil"
GROUP = "tallyveil.commands"

Loader = Callable[[], typer.Typer]


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: What follows the program's name.

    Returns:
        The exit code. Whatever went wrong has been told by then.

    Raises:
        SystemExit: A shell asked for completions, and has them.
    """
    as_json = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    encoding.prepare_output(as_json=as_json)
    try:
        group = _group(arguments)
        if "_TALLYVEIL_COMPLETE" in os.environ:
            group.main(prog_name=PROGRAM)
        with group.make_context(PROGRAM, list(arguments)) as context:
            group.invoke(context)
        code = 0
    except BaseException as error:
        code = failures.report(error, as_json=as_json, command=_words(arguments))
    return failures.flush_output(code)


def installed() -> Mapping[str, Loader]:
    """The subcommands of what is installed here, by name; each imports its module only when called."""
    return {entry.name: entry.load for entry in sorted(entry_points(group=GROUP))}


def _group(arguments: Sequence[str]) -> typer.core.TyperGroup:
    """The root command with the one subcommand that is asked for, or with all, for help and suggestions."""
    root = typer.Typer(
        name=PROGRAM,
        help="Population statistics from records that never leave the department in the clear.",
        epilog="Every command explains itself with --help, and speaks JSON with --json.",
        no_args_is_help=True,
    )
    root.callback()(_root)
    group = typer.main.get_command(root)
    assert isinstance(group, typer.core.TyperGroup)
    loaders = installed()
    first = arguments[0] if arguments else ""
    if first in loaders:
        _add(group, first, loaders[first]())
    elif first != "--version":
        for name, load in loaders.items():
            try:
                _add(group, name, load())
            except ImportError as error:
                _add(group, name, _absent(error))
    return group


def _words(arguments: Sequence[str]) -> str:
    """The command that is asked for, without its options: ``agent run``."""
    return " ".join([word for word in arguments if not word.startswith("-")][:2])


def _add(group: typer.core.TyperGroup, name: str, app: typer.Typer) -> None:
    command = typer.main.get_command(app)
    command.name = name
    # The root alone offers to install completion.
    command.params = [p for p in command.params if p.name not in ("install_completion", "show_completion")]
    group.add_command(command, name)


def _absent(error: ImportError) -> typer.Typer:
    """What stands in the list for a command that cannot be imported here."""
    app = typer.Typer()
    advice = failures.remedy(error).replace("[", r"\[")  # help is markup

    @app.command(help=f"Not available here. {advice}")
    def _() -> None: ...

    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass
