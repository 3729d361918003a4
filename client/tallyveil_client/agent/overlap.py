"""Two tables over the same people: what of one follows from the other by subtraction, and when that stops the agent.

Not here: the size of a single table's cells (`clear_cells`). Counts per clear cell are exact. Two binnings of one
domain that do not nest (41 and 42 bins of 85 values), two domains or two filters give exact counts of the pieces in
which they differ. No IO.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from tallyveil.errors import PolicyError
from tallyveil.survey import Survey
from tallyveil_client.agent.selection import label_of

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Shown:
    """A table that the aggregator has, or is about to get.

    Args:
        survey: Its definition.
        source: Name of the source the records came from.
        filter: The source's filter, as text.
    """

    survey: Survey
    source: str
    filter: str


def require_nested(new: Shown, earlier: Iterable[Shown]) -> None:
    """Stop where a table would give, with an earlier one over the same people, counts that neither shows.

    Raises:
        PolicyError: Naming the earlier survey and the difference.
    """
    for old in earlier:
        if (old.source, old.survey.attribute) != (new.source, new.survey.attribute):
            continue
        difference = _difference(old, new)
        if difference is not None:
            raise PolicyError(
                f"source '{new.source}' was counted for {label_of(old.survey)} before, with {difference}: together "
                "the two tables would show exact counts of smaller groups by subtraction",
                not_done="nothing was read, charged or sent",
                next_step="ask for a survey whose table is the same as the earlier one, or a part of it",
            )


def _difference(old: Shown, new: Shown) -> str | None:
    before, after = old.survey, new.survey
    if before.domain.to_json() != after.domain.to_json():
        return "another domain"
    if old.filter != new.filter:
        return "another filter"
    old_edges, new_edges = _edges(before), _edges(after)
    if not _nested(old_edges, new_edges):
        return f"{before.binning.describe()} where this one has {after.binning.describe()}"
    old_names, new_names = _dimensions(before), _dimensions(after)
    if not _nested(old_names, new_names):
        return "other dimensions"
    # Finer in one respect and coarser in the other: neither table is a part of the other.
    crossed = (new_edges - old_edges and old_names - new_names) or (old_edges - new_edges and new_names - old_names)
    return "other bins and dimensions" if crossed else None


def _edges(survey: Survey) -> set[int]:
    """Where the bins that are sent in clear begin."""
    return set(survey.binning.starts.tolist())


def _dimensions(survey: Survey) -> set[tuple[str, tuple[str, ...]]]:
    return {(dimension.name, dimension.domain.values) for dimension in survey.dimensions}


def _nested(one: set[_Part], other: set[_Part]) -> bool:
    return one <= other or other <= one
