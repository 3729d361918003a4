"""`tallyveil bench`: print the performance figures of this machine, and how accurate the estimates are.

Not here: how each figure is measured.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

app = typer.Typer(
    help="Measure on this machine: mechanisms, bytes on the wire, the agent on a large table; and accuracy.",
    no_args_is_help=False,
)

Machine = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@app.callback(invoke_without_command=True)
def everything(context: typer.Context, json: Machine = False) -> None:
    """Measure all of it.

    Example: tallyveil bench
    """
    if context.invoked_subcommand is None:
        _report(("mechanisms", "wire", "agent"), json)


@app.command()
def mechanisms(json: Machine = False) -> None:
    """Records a second of perturb + tally on one core, beside counting alone, the keystream and other libraries.

    pure-ldp, multi-freq-ldpy and ldp-toolbox are measured where they are installed.

    Example: tallyveil bench mechanisms
    """
    _report(("mechanisms",), json)


@app.command()
def wire(json: Machine = False) -> None:
    """Bytes on the wire per record.

    Example: tallyveil bench wire
    """
    _report(("wire",), json)


@app.command()
def agent(
    json: Machine = False,
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the Parquet file.")] = 10_000_000,
) -> None:
    """The agent on a Parquet file, without sending: time and peak memory, beside pyarrow counting the column.

    Example: tallyveil bench agent --rows 10000000
    """
    _report(("agent",), json, rows)


@app.command()
def accuracy(
    json: Machine = False,
    repeats: Annotated[int, typer.Option(min=2, help="Times each raw column is drawn.")] = 100,
    cells: Annotated[int, typer.Option(min=1, help="Cells whose intervals are looked at, at least.")] = 200_000,
) -> None:
    """Bias and variance of every raw column, how often 95 % intervals cover, and what norm-sub brings.

    Every report is drawn by the mechanism itself; `make nightly` asserts on the same figures over 4,000 repeats.

    Example: tallyveil bench accuracy --repeats 100
    """
    from tallyveil.cli.console import print_json
    from tallyveil_bench.accuracy import accuracy_report, measure_accuracy, show_accuracy

    found = measure_accuracy(repeats, cells)
    if json:
        print_json({"accuracy": accuracy_report(found)})
    else:
        show_accuracy(found)


def _report(parts: tuple[str, ...], json: bool, rows: int = 10_000_000) -> None:
    from tallyveil.cli.console import print_json
    from tallyveil_bench import agent, mechanisms, peers, timing, wire

    timing.pin_to_one_core()
    report: dict[str, object] = {}
    if "mechanisms" in parts:
        speeds = mechanisms.measure_speeds()
        beside = peers.measure_peers(
            dict.fromkeys((speed.mechanism, speed.domain_size) for speed in speeds), mechanisms.EPSILON
        )
        report["mechanisms"] = [asdict(speed) for speed in speeds]
        report["peers"] = [asdict(peer) for peer in beside]
        if not json:
            mechanisms.show_speeds(speeds)
            mechanisms.show_peers(speeds, beside)
    if "wire" in parts:
        sizes = wire.measure_sizes()
        report["wire"] = [asdict(size) for size in sizes]
        if not json:
            wire.show_sizes(sizes)
    if "agent" in parts:
        measured = agent.measure_agent(rows)
        report["agent"] = asdict(measured)
        if not json:
            agent.show_agent(measured)
    if json:
        print_json(report)
