"""A verified release as CSV or JSON, with its guarantee and its hash in every copy.

Not here: the signed file itself, which is the only form that others can verify.
"""

from __future__ import annotations

import csv
from io import StringIO

from tallyveil.canonical import Json
from tallyveil.cli.console import json_text
from tallyveil.cli.guarantees import guarantee_json
from tallyveil.epsilon import NANO, epsilon_text
from tallyveil.guarantee import Guarantee
from tallyveil.moments import moment_text
from tallyveil.release import COMPOSITION_NOTE, ERRORS_NOTE, ESTIMATOR, VerifiedRelease
from tallyveil.tables import Table
from tallyveil_client.consumer.rendering import guarantees_of

_BEFORE = ("survey", "version", "round", "revision")
_AFTER = ("value", "bin", "estimate", "standard_error", "low", "high", "quality", "n", "guarantee", "release_hash")


def to_csv(verified: VerifiedRelease) -> str:
    """One line for each value of each table.

    Columns: survey, version, round, revision, one for each dimension (empty in the total), value, bin, estimate,
    standard_error, low, high (of the 95 % interval), quality, n (records of the table), guarantee, release_hash.
    The last two are the same in every line, so that no line travels without them.
    """
    release = verified.release
    survey = release.survey
    dimensions = [item.name for item in survey.dimensions]
    guarantee = "; ".join(map(_short, guarantees_of(verified)))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_BEFORE, *dimensions, *_AFTER))
    for table in release.tables:
        cell = dict(table.cell or ())
        for row in table.rows:
            writer.writerow(
                (
                    *(survey.name, survey.version, release.round, release.revision),
                    *(_unspoken(cell.get(name, "")) for name in dimensions),
                    *(_unspoken(row.value), row.bin, row.estimate, row.standard_error, row.low, row.high, row.quality),
                    *(table.records, guarantee, verified.hash),
                )
            )
    return text.getvalue()


def to_document(verified: VerifiedRelease) -> Json:
    """The release for programs: numbers are numbers, and what they mean stands beside them."""
    release = verified.release
    survey = release.survey
    return {
        "survey": survey.name,
        "version": survey.version,
        "title": survey.title,
        "survey_hash": survey.hash,
        "round": release.round,
        "revision": release.revision,
        "released_at": moment_text(release.released_at),
        "release_hash": verified.hash,
        "previous": release.previous,
        "verified": True,
        "estimator": ESTIMATOR,
        "records": release.records,
        "participants": [
            {"department": item.department, "epsilon": item.epsilon / NANO} for item in release.participants
        ],
        "guarantees": [guarantee_json(guarantee) for guarantee in guarantees_of(verified)],
        "notes": [ERRORS_NOTE, COMPOSITION_NOTE],
        "tables": [_table(table) for table in release.tables],
    }


def to_json(verified: VerifiedRelease) -> str:
    """`to_document` as text."""
    return json_text(to_document(verified), indent=2) + "\n"


def _unspoken(label: str) -> str:
    """A label that no spreadsheet takes for a formula: an apostrophe stands before what looks like one."""
    return f"'{label}" if label.startswith(("=", "+", "-", "@")) and not _is_number(label) else label


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _table(table: Table) -> Json:
    return {
        "cell": None if table.cell is None else dict(table.cell),
        "records": table.records,
        "bins": [item.to_json() for item in table.bins],
        "rows": [
            {
                "value": row.value,
                "bin": row.bin,
                "support": row.support,
                "estimate": float(row.estimate),
                "standard_error": float(row.standard_error),
                "low": float(row.low),
                "high": float(row.high),
                "quality": row.quality,
            }
            for row in table.rows
        ],
    }


def _short(guarantee: Guarantee) -> str:
    return f"{guarantee.kind}, epsilon = {epsilon_text(guarantee.epsilon)}, being in the table not protected"
