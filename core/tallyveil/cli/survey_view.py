"""What is shown of a survey, for people and for machines, and how two of them differ.

Not here: reading and signing (`survey_files`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import cast

import numpy as np

from tallyveil.amplification import Amplified, amplified
from tallyveil.binning import Binning
from tallyveil.canonical import Json
from tallyveil.cli.console import print_table
from tallyveil.cli.guarantees import guarantee_json, guarantee_text
from tallyveil.domain import Domain, Integers
from tallyveil.epsilon import NANO, NanoEpsilon, epsilon_text
from tallyveil.guarantee import KIND_AT_DEPARTMENT, Guarantee
from tallyveil.mechanisms import for_survey
from tallyveil.moments import moment_text
from tallyveil.survey import Survey

_SHOWN_VALUES = 6
HISTOGRAMS = (100, 1_000, 10_000, 100_000)
"""Records of a histogram for which a survey says what counting adds; how many there will be nobody knows yet."""


def guarantees_of(survey: Survey) -> list[Guarantee]:
    """One for each permitted epsilon."""
    return [for_survey(survey, epsilon).guarantee for epsilon in survey.epsilons]


def survey_json(survey: Survey) -> dict[str, object]:
    """What a command's JSON says about a survey."""
    binning = survey.binning
    return {
        "name": survey.name,
        "version": survey.version,
        "hash": survey.hash,
        "values": survey.domain.size,
        "bins": survey.bins,
        "disclosed_bins": binning.bins,
        "smallest_bin": binning.smallest,
        "largest_bin": int(binning.sizes.max()),
        "mechanism": survey.mechanism,
        "neighbours": survey.neighbours,
        "epsilons": [epsilon / NANO for epsilon in survey.epsilons],
        "cells": survey.cell_count,
        "rounds": len(survey.rounds),
        "guarantees": [guarantee_json(guarantee) for guarantee in guarantees_of(survey)],
        "amplification": [
            {
                "epsilon": epsilon / NANO,
                "records": found.records,
                "histogram_epsilon": found.epsilon_prime,
                "delta": found.delta,
            }
            for epsilon, found in histograms_of(survey)
        ],
    }


def print_survey(survey: Survey, standing: str) -> None:
    """The survey as a table, its guarantee and what is not protected.

    Args:
        survey: What to show.
        standing: How far it may be believed, first of all.
    """
    floor = f"; none below {epsilon_text(survey.epsilon_floor)}"
    rows = [
        ("standing", standing),
        ("hash", survey.hash),
        ("title", survey.title),
        ("purpose", survey.purpose),
        ("attribute", f"{survey.attribute}: {_domain_text(survey.domain)}"),
        ("mechanism", _mechanism_text(survey)),
        ("epsilon", " or ".join(map(epsilon_text, survey.epsilons)) + floor),
        *((f"in clear: {item.name}", _domain_text(item.domain)) for item in survey.dimensions),
        ("cells", f"{survey.cell_count}"),
        *(
            (f"round {item.number}", f"{moment_text(item.opens)} until {moment_text(item.closes)}")
            for item in survey.rounds
        ),
        (
            "minimums",
            f"departments for a release: {survey.minimums.departments}; values in a bin: {survey.minimums.bin_values}",
        ),
        ("quota", f"{survey.quota} records per department and round"),
        ("expires", moment_text(survey.expires)),
    ]
    print_table(("survey", f"{survey.name} version {survey.version}"), rows)
    print(guarantee_text(guarantees_of(survey)))
    if gains := histograms_of(survey):
        print("What counting adds, where a department's smallest histogram has n records (replacement of one only):")
        headers = ("epsilon", "n", "epsilon of the histogram", "delta")
        print_table(headers, [_gain_row(item) for item in gains], right=headers)


def histograms_of(survey: Survey) -> list[tuple[int, Amplified]]:
    """The central guarantee of a histogram of 100 to 100,000 reports, for each permitted epsilon."""
    return [
        (guarantee.epsilon, amplified(guarantee.epsilon, records))
        for guarantee in guarantees_of(survey)
        if guarantee.kind != KIND_AT_DEPARTMENT
        for records in HISTOGRAMS
        if records <= survey.quota
    ]


def _gain_row(item: tuple[int, Amplified]) -> tuple[str, ...]:
    epsilon, found = item
    return epsilon_text(epsilon), f"{found.records:,}", epsilon_text(found.epsilon_nano), f"{found.delta:.1g}"


@dataclass(frozen=True)
class Refinement:
    """The common refinement of two binnings of one domain: what subtraction of two collections would show.

    Args:
        cells: How many sets of values it has.
        smallest: Values in the smallest one.
        singled_out: Values that are alone in theirs: their exact count would follow.
        values: K.
    """

    cells: int
    smallest: int
    singled_out: int
    values: int

    def to_json(self) -> Json:
        return asdict(self)

    @property
    def text(self) -> str:
        return (
            f"The two collections together disclose {self.cells} sets of values by subtraction; "
            f"the smallest holds {self.smallest}, and {self.singled_out} of {self.values} values are alone in theirs."
        )


def differences(before: Survey, after: Survey) -> list[tuple[str, object, object]]:
    """Every field whose value differs, with both values; None where one has no such field."""
    old, new = _flat("", before.to_json()), _flat("", after.to_json())
    keys = [*old, *(key for key in new if key not in old)]
    return [(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)]


def together_text(before: Survey, after: Survey) -> list[str]:
    """What taking part in both costs and discloses, where they are about the same people; nothing for one survey."""
    if before.hash == after.hash:
        return []
    first, second = (item.epsilons[-1] * item.charge_factor for item in (before, after))
    lines = [
        f"epsilon adds up: one round of each costs every person {epsilon_text(NanoEpsilon(first))} + "
        f"{epsilon_text(NanoEpsilon(second))} = {epsilon_text(NanoEpsilon(first + second))}, at the highest values "
        f"permitted; all {len(before.rounds)} + {len(after.rounds)} rounds cost "
        f"{epsilon_text(NanoEpsilon(first * len(before.rounds) + second * len(after.rounds)))}."
    ]
    refined = refinement(before, after)
    if refined is not None:
        lines.append(refined.text)
    if before.attribute != after.attribute:
        lines.append("The attributes differ: what one discloses of a person stands beside what the other does.")
    elif before.domain != after.domain:
        lines.append(
            "The domains differ: subtracting one collection's counts in clear from the other's can show exactly how "
            "many have the values that one alone holds, few as they may be."
        )
    if before.dimensions != after.dimensions:
        lines.append(
            "The cells sent in clear differ: crossed by subtraction they can show groups smaller than the cells of "
            "either."
        )
    if len(lines) == 1:
        lines.append(
            "Both send the same counts in clear: by subtraction they show how many joined or left between the two, "
            "and in which cell or bin."
        )
    return lines


def refinement(before: Survey, after: Survey) -> Refinement | None:
    """Of the two binnings, where both bin the same domain of one attribute differently; else None."""
    same = before.attribute == after.attribute and before.domain == after.domain
    if not same or before.binning.bins == after.binning.bins:
        return None
    pairs = np.stack([before.binning.bin_of, after.binning.bin_of])
    _, counts = np.unique(pairs, axis=1, return_counts=True)
    alone = int(np.count_nonzero(counts == 1))
    return Refinement(counts.size, int(counts.min()), alone, before.domain.size)


def _mechanism_text(survey: Survey) -> str:
    if survey.mechanism == "brr-sealed":
        return f"brr-sealed, {Binning(survey.domain.size, survey.bins).describe()}, none of them disclosed"
    if survey.mechanism == "histogram-laplace":
        return f"histogram-laplace, neighbours: {survey.neighbours}"
    return f"{survey.mechanism}, {survey.binning.describe()}"


def _domain_text(domain: Domain) -> str:
    if isinstance(domain, Integers):
        step = f" in steps of {domain.step}" if domain.step != 1 else ""
        return f"{domain.low}..{domain.high}{step}, {domain.size} values"
    shown = list(domain.labels[:_SHOWN_VALUES])
    more = [f"… {domain.labels[-1]}"] if domain.size > _SHOWN_VALUES else []
    return f"{', '.join(shown + more)}, {domain.size} values"


def _flat(prefix: str, value: object) -> Json:
    """Nested objects and lists as one level of dotted names."""
    if isinstance(value, dict):
        items = list(cast(dict[str, object], value).items())
    elif isinstance(value, list):
        items = [(str(number), item) for number, item in enumerate(cast(list[object], value), start=1)]
    else:
        return {prefix: value}
    flat: Json = {}
    for key, item in items:
        flat |= _flat(f"{prefix}.{key}" if prefix else key, item)
    return flat
