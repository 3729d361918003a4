"""`tallyveil stats summary`: mean, quantiles, ranges and second columns of a verified release.

Not here: how they are worked out (`summary`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli import console
from tallyveil.errors import ConfigurationError
from tallyveil_client.consumer.options import AsJson

if TYPE_CHECKING:
    from tallyveil.derived import Statistic
    from tallyveil.release import Release
    from tallyveil_client.consumer.summary import SecondColumn, Summary

EXAMPLE = "Example: tallyveil stats summary age.release.json --key release.pub --range 60..99 --second"


def summary(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A signed release.", show_default=False)],
    key: Annotated[Path, typer.Option("--key", help="The release key, as you pinned it.", show_default=False)],
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="Values added up: 60..99, or labels A..B; repeat for more.", show_default=False),
    ] = None,
    cells: Annotated[bool, typer.Option("--cells", help="Every dimension cell too.")] = False,
    second: Annotated[
        bool, typer.Option("--second", help="Second columns beside the raw one: norm-sub, and EM where it can be.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Mean, quartiles and ranges of a release, each with its own error; verified first."""
    from tallyveil.cli.guarantees import guarantee_json, guarantee_text
    from tallyveil_client.consumer.rendering import guarantees_of
    from tallyveil_client.consumer.summary import second_columns, summarise
    from tallyveil_client.consumer.verification import verify_file

    wanted = [_ends(text) for text in ranges or ()]
    verified = verify_file(file, key).verified
    release = verified.release
    found = summarise(release, wanted, wide=cells)
    columns: Sequence[SecondColumn] = ()
    if second:
        with console.progress("drawing the second columns' errors") as advance:
            columns = second_columns(release, advance=advance)
    if as_json:
        console.print_json(
            {
                "survey": release.survey.name,
                "release_hash": verified.hash,
                "summaries": [item.to_json() for item in found],
                "second_columns": _columns_json(release, columns),
                "guarantees": [guarantee_json(item) for item in guarantees_of(verified)],
            }
        )
        return
    headers = ("of", "what", "estimate", "± se", "95 % from", "to")
    title = f"{release.survey.title}: {release.survey.name} version {release.survey.version}, round {release.round}"
    console.print_table(headers, [row for item in found for row in _rows(item)], title=title, right=headers[2:])
    print("Errors and bounds are the perturbation's only. The estimates are unbiased, and may lie outside the bounds.")
    print(guarantee_text(guarantees_of(verified)))
    if columns:
        print()
        _print_columns(release, columns)


def _ends(text: str) -> tuple[str, str]:
    first, dots, last = text.partition("..")
    if not dots:
        raise ConfigurationError(
            "a range is written FIRST..LAST",
            not_done="nothing was computed",
            next_step="write for example --range 60..99",
        )
    return first.strip(), last.strip()


def _rows(item: Summary) -> list[tuple[object, ...]]:
    named = ", ".join(f"{name} = {value}" for name, value in item.cell or ()) or "all records"
    rows: list[tuple[object, ...]] = [(named, "records", f"{item.records:,}", "", "", "")]
    if item.mean is not None:
        rows.append((named, "mean", *_numbers(item.mean, 3)))
    rows += [
        (named, f"quantile {float(found.share):g}", found.value, "", found.low, found.high) for found in item.quantiles
    ]
    rows += [(named, f"{found.first} to {found.last}", *_numbers(found.total, 1)) for found in item.ranges]
    return rows


def _numbers(found: Statistic, places: int) -> tuple[str, str, str, str]:
    value, error, low, high = (
        f"{number:,.{places}f}" for number in (found.value, found.standard_error, found.low, found.high)
    )
    return value, error, low, high


def _print_columns(release: Release, columns: Sequence[SecondColumn]) -> None:
    raw = release.tables[0].rows
    headers = ("value", "raw", "± se", *(part for column in columns for part in (column.name, f"{column.name} ± se")))
    rows = [
        (
            row.value,
            f"{row.estimate:,.1f}",
            f"{row.standard_error:,.1f}",
            *(f"{numbers[place]:,.1f}" for column in columns for numbers in (column.values, column.standard_error)),
        )
        for place, row in enumerate(raw)
    ]
    title = "Second columns are biased, and often nearer; their errors are drawn as if they were the truth."
    console.print_table(headers, rows, title=title, right=headers[1:])


def _columns_json(release: Release, columns: Sequence[SecondColumn]) -> list[dict[str, object]]:
    labels = release.survey.domain.labels
    return [
        {
            "name": column.name,
            "rows": [
                {"value": label, "estimate": value, "standard_error": error, "low": low, "high": high}
                for label, value, error, low, high in zip(
                    labels,
                    column.values.tolist(),
                    column.standard_error.tolist(),
                    column.low.tolist(),
                    column.high.tolist(),
                    strict=True,
                )
            ],
        }
        for column in columns
    ]
