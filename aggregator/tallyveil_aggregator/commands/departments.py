"""`tallyveil aggregator departments`: who may submit.

Not here: certificates, which say who somebody is (`tallyveil pki`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli import console
from tallyveil_aggregator.commands.common import DEFAULT_CONFIG, AsJson, Config, command_line, now_utc, opened_store

if TYPE_CHECKING:
    from tallyveil_aggregator.intake import DepartmentState

app = typer.Typer(help="Register departments, and block them.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="ID", help="The department, as in its certificate.", show_default=False)]
Names = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Departments, as in their certificates.", show_default=False)
]


@app.command(epilog="Example: tallyveil aggregator departments add health education")
def add(ids: Names, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Register departments: from then on they may fetch surveys and submit."""
    from tallyveil.identity import Identity, Role

    names = [Identity(Role.DEPARTMENT, name).name for name in dict.fromkeys(ids)]
    with opened_store(config) as store, store.writing() as transaction:
        added = [name for name in names if transaction.departments.add(name, now_utc())]
    there = [name for name in names if name not in added]
    if as_json:
        console.print_json({"added": added, "already_there": there})
        return
    if added:
        print(f"Registered: {', '.join(added)}.")
    if there:
        print(f"Registered before, unchanged: {', '.join(there)}.")


@app.command(name="list", epilog="Example: tallyveil aggregator departments list")
def list_(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """List the registered departments."""
    with opened_store(config) as store, store.reading() as transaction:
        found = transaction.departments.all()
    if as_json:
        console.print_json({"departments": [asdict(item) for item in found]})
    elif found:
        rows = [(item.name, item.state.value, item.added_at) for item in found]
        console.print_table(("department", "state", "registered"), rows)
    else:
        print(f"No department is registered. Next: {command_line(config, 'departments add ID')}")


@app.command(epilog="Example: tallyveil aggregator departments block health")
def block(name: Name, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Refuse everything a department asks from now on; what it completed before stays in its rounds."""
    from tallyveil_aggregator.intake import DepartmentState

    _set(name, DepartmentState.BLOCKED, config, as_json)


@app.command(epilog="Example: tallyveil aggregator departments unblock health")
def unblock(name: Name, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Serve a blocked department again."""
    from tallyveil_aggregator.intake import DepartmentState

    _set(name, DepartmentState.ACTIVE, config, as_json)


def _set(name: str, state: DepartmentState, config: Config, as_json: bool) -> None:
    from tallyveil.errors import ConfigurationError

    with opened_store(config) as store, store.writing() as transaction:
        before = transaction.departments.state(name)
        if before is None:
            raise ConfigurationError(
                "no department of that name is registered",
                not_done="nothing was changed",
                next_step=f"see {command_line(config, 'departments list')}",
            )
        transaction.departments.set_state(name, state)
    if as_json:
        console.print_json({"name": name, "state": state.value, "changed": before is not state})
    else:
        print(f"{name} is {state.value}{'' if before is not state else ' already'}.")
