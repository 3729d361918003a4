"""`tallyveil agent`: a department's side of a collection, from the first file to the last acknowledgement.

Not here: what the commands do. Each imports that when it is called, so that help, and approving a survey from a file,
come at once.
"""

from __future__ import annotations

import typer

from tallyveil_client.agent.commands.approving import approve
from tallyveil_client.agent.commands.looking import check, ledger, preview, status
from tallyveil_client.agent.commands.running import run
from tallyveil_client.agent.commands.starting import init

app = typer.Typer(
    help="A department's agent: perturbs records here, and sends only perturbed counts.", no_args_is_help=True
)
app.command(epilog="Example: tallyveil agent init health")(init)
app.command(epilog="Example: tallyveil agent approve ages.survey --epsilon 2 --config agent.toml")(approve)
app.command(epilog="Example: tallyveil agent check ages --config agent.toml")(check)
app.command(epilog="Example: tallyveil agent preview ages --config agent.toml")(preview)
app.command(epilog="Example: tallyveil agent run ages --round 1 --config agent.toml")(run)
app.command(epilog="Example: tallyveil agent status --config agent.toml")(status)
app.command(epilog="Example: tallyveil agent ledger --json")(ledger)
