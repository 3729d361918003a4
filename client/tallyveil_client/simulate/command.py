"""`tallyveil simulate`: what a survey's mechanism would do to a column of a local file.

Not here: the repeats (`simulation`) and reading (`records`).
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli import console

if TYPE_CHECKING:
    from tallyveil.mechanisms import Mechanism
    from tallyveil_client.simulate.records import Counted
    from tallyveil_client.simulate.simulation import Simulation

app = typer.Typer()


class OnInvalid(StrEnum):
    """What a record that cannot be used does."""

    REFUSE = "refuse"
    REJECT = "reject"


@app.command(
    epilog="Example: tallyveil simulate --input heads.csv --column age --domain 15..99 --bins 16 --epsilon 2 "
    "--mechanism brr --repeat 100"
)
def simulate(
    input: Annotated[Path, typer.Option(help="CSV, Parquet or SQLite (with --table).", show_default=False)],
    column: Annotated[str, typer.Option(help="The column of the sensitive value.", show_default=False)],
    domain: Annotated[
        str, typer.Option(help="15..99, 0..100:5 (with a step), a,b,c or [0,1000,5000].", show_default=False)
    ],
    epsilon: Annotated[str, typer.Option(help="From 0.01 to 16.", show_default=False)],
    mechanism: Annotated[
        str, typer.Option(help="grr, ss, sue, oue; or brr, which discloses the bin.", show_default=False)
    ],
    bins: Annotated[int, typer.Option(help="Bins of equal width (the paper's fxs); for brr.")] = 1,
    repeat: Annotated[int, typer.Option(help="How often to perturb and estimate.")] = 100,
    table: Annotated[str | None, typer.Option(help="The table of an SQLite file.", show_default=False)] = None,
    filter: Annotated[
        str | None, typer.Option(help="Use these records only: 'income >= 200000'.", show_default=False)
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="A text that stands for a missing value; repeat.", show_default="empty")
    ] = None,
    on_invalid: Annotated[
        OnInvalid, typer.Option(help="A record that cannot be used stops everything, or is left out and counted.")
    ] = OnInvalid.REFUSE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Try a mechanism on a column of a local file: no network, nothing charged, nothing stored.

    What it prints is about your records: keep it where they are.
    """
    from tallyveil.domain import parse_domain
    from tallyveil.epsilon import NANO, to_nano
    from tallyveil.mechanisms import create
    from tallyveil_client.simulate import records, simulation

    values = parse_domain(domain)
    made = create(mechanism, domain_size=values.size, epsilon=to_nano(epsilon) / NANO, bins=bins)
    source = records.source_of(input, column, table=table, filter=filter, missing=missing or (), on_invalid=on_invalid)
    simulation.check_repeats(repeat)
    with console.progress("reading") as advance:
        counted = records.count(source, values, lambda _: advance(1))
    with console.progress("simulating", repeat) as advance:
        result = simulation.simulate(made, counted.counts, repeat, advance)
    if as_json:
        console.print_json(_document(made, bins, counted, result))
    else:
        _print(made, bins, counted, result)


def _document(mechanism: Mechanism, bins: int, counted: Counted, result: Simulation) -> dict[str, object]:
    from tallyveil.binning import Binning
    from tallyveil.cli.guarantees import guarantee_json

    binning, guarantee = Binning(mechanism.domain_size, bins), guarantee_json(mechanism.guarantee)
    return {
        "mape_mean": result.mape_mean,
        "mape_sd": result.mape_sd,
        "mape_standard_error": result.mape_error,
        "negative_share": result.negative_share,
        "repeats": result.mape.size,
        "records": result.records,
        "cells": result.cells,
        "values": result.values,
        "bins": binning.bins,
        "smallest_bin": binning.smallest,
        "mechanism": mechanism.name,
        "epsilon": guarantee["epsilon"],
        "read": counted.summary.read,
        "filtered": counted.summary.filtered,
        "rejected": dict(sorted((reason.value, number) for reason, number in counted.summary.rejected.items())),
        "guarantee": guarantee,
    }


def _print(mechanism: Mechanism, bins: int, counted: Counted, result: Simulation) -> None:
    from tallyveil.binning import Binning
    from tallyveil.cli.guarantees import guarantee_text
    from tallyveil.epsilon import epsilon_text

    summary = counted.summary
    error = "" if result.mape_error is None else f" ± {result.mape_error:.4f} (standard error of the mean)"
    spread = "one repeat tells nothing" if result.mape_sd is None else f"{result.mape_sd:.4f}"
    left_out = f"{summary.filtered} left out by the filter, {summary.rejected.total()} rejected"
    rows = [
        ("records", f"{result.records} of {summary.read} read; {left_out}"),
        ("values", f"{result.values} in the domain, {result.cells} with a true count above 0"),
        ("mechanism", f"{mechanism.name}, epsilon {epsilon_text(mechanism.epsilon)}"),
        ("bins", Binning(mechanism.domain_size, bins).describe()),
        ("repeats", f"{result.mape.size}"),
        ("MAPE, mean", f"{result.mape_mean:.4f}{error}; a fraction, over the {result.cells} values with a true count"),
        ("MAPE, sd of one", spread),
        ("negative", f"{100 * result.negative_share:.2f} % of all estimates"),
    ]
    console.print_table(("simulation", "on your records: keep it where they are"), rows)
    print(guarantee_text([mechanism.guarantee]))
