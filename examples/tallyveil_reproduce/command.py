"""`tallyveil reproduce`: the paper's figures 2 to 11 and the numeric note's tables, made again on this machine.

Not here: the experiments (`results`) and the files (`folder`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FIRST, LAST = 2, 11
QUICK_REPEATS, REPEATS = 3, 20

app = typer.Typer()


@app.command(epilog="Example: tallyveil reproduce --out figures --repeat 20")
def reproduce(
    out: Annotated[Path, typer.Option(help="A new or empty folder for CSV, SVG, PNG and one HTML page.")] = Path(
        "tallyveil-figures"
    ),
    repeat: Annotated[
        int | None,
        typer.Option(min=2, max=10_000, help=f"Runs of each experiment; {REPEATS} if not said.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_REPEATS} runs of each: a look, no more.")] = False,
    figure: Annotated[
        list[int] | None,
        typer.Option(min=FIRST, max=LAST, help="This figure only; repeat for several.", show_default="all"),
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Draw, or write the CSV tables alone.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Redraw the paper's figures 2 to 11, beside full epsilon-LDP and noise at the department, and the note's tables.

    Every run draws fresh secure coins: numbers differ from run to run within the printed standard deviations.
    """
    from time import monotonic

    from tallyveil.cli.console import print_json, progress
    from tallyveil_reproduce import folder, report, results
    from tallyveil_reproduce.pictures import require

    start = monotonic()
    if pictures:
        require()
    folder.prepare(out)
    numbers = sorted(set(figure or range(FIRST, LAST + 1)))
    repeats = repeat or (QUICK_REPEATS if quick else REPEATS)
    with progress("simulating", results.steps(numbers, repeats)) as advance:
        found = results.experiment(numbers, repeats, advance)
    with progress("drawing" if pictures else "writing", len(numbers)) as advance:
        files = folder.fill(out, found, pictures, advance)
    seconds = monotonic() - start
    if as_json:
        print_json({**found.to_json(), "out": str(out), "files": files, "seconds": round(seconds, 1)})
    else:
        report.show(found, out, files, seconds)
