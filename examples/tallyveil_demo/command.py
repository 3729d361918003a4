"""`tallyveil demo`: the whole system on this machine, on real data; it ends by itself and cleans up.

Not here: the steps (`deployment`), the comparison (`outcome`) and what is shown (`report`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="The whole system on this machine, on real data, as separate processes; then it exits.")


@app.command()
def demo(
    keep: Annotated[
        Path | None, typer.Option(help="A new folder to keep: release.json, release.pub, and everything else.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """17 regional offices, one aggregator, one consumer: from CSV files to a verified release, over mutual TLS.

    Example: tallyveil demo --keep /tmp/demo
    """
    from tallyveil_demo.performance import perform

    perform(keep, json)
