"""Two tables over the same people: what of one follows from the other by subtraction, and when that stops the agent.

Not here: the size of a single table's cells (`clear_cells`). Counts per clear cell are exact. Two binnings of one
domain that do not nest (41 and 42 bins of 85 values), two domains or two selections of records give exact counts of
the pieces in which they differ. People are told apart by the policy's account, never by a source's name. No IO.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from tallyveil.canonical import Json
from tallyveil.errors import PolicyError
from tallyveil.guarantee import ADD_OR_REMOVE, KIND_WITHIN_BIN
from tallyveil.survey import Survey
from tallyveil_client.agent.clear_cells import Counts
from tallyveil_client.agent.fingerprint import difference, leaves_out, same_column
from tallyveil_client.agent.policy import guarantee_kind
from tallyveil_client.agent.selection import label_of

_Part = TypeVar("_Part")
_Dimension = tuple[str, tuple[str, ...]]
_UNKNOWN = "a group that may be a single record"


@dataclass(frozen=True, repr=False)
class Shown:
    """A table that the aggregator has, or is about to get.

    Args:
        survey: Its definition.
        account: The policy's account of the people in it.
        selection: The `fingerprint` of its records.
        counts: Records per clear cell, as the aggregator sees them; None where they were not counted yet.
    """

    survey: Survey
    account: str
    selection: str
    counts: Counts | None = None


@dataclass(frozen=True)
class Overlap:
    """What two tables show together and neither shows alone.

    Args:
        survey: ``name@version`` of the earlier one.
        difference: In what they differ, in words.
        smallest: The smallest cell of their common refinement, in words. Never a count.
    """

    survey: str
    difference: str
    smallest: str

    def to_json(self) -> Json:
        """For machines."""
        return {"survey": self.survey, "difference": self.difference, "smallest_cell": self.smallest}

    def describe(self, allow_overlap: str) -> str:
        """For people, with the policy's reason for letting it go."""
        return (
            f"With {self.survey}, which had {self.difference}, exact counts of smaller groups follow by subtraction; "
            f"the smallest cell of the common refinement is {self.smallest}. "
            f"The policy lets it go (allow_overlap): {allow_overlap}"
        )


def require_nested(new: Shown, earlier: Iterable[Shown], allow_overlap: str = "") -> None:
    """Stop where a table would give, with an earlier one over the same people, counts that neither shows.

    Args:
        new: About to go.
        earlier: What has gone.
        allow_overlap: The policy's reason for letting it go all the same; empty for none.

    Raises:
        PolicyError: Naming the earlier survey and the difference.
    """
    for found in () if allow_overlap else overlaps(new, earlier):
        raise PolicyError(
            f"the people of account '{new.account}' were counted for {found.survey} before, with {found.difference}: "
            f"together the two tables would show exact counts of smaller groups by subtraction, down to "
            f"{found.smallest}",
            not_done="nothing was charged, stored or sent",
            next_step="ask for a survey whose table is the same as the earlier one, or a part of it; put the source's "
            "settings back as they were; or allow it by name with allow_overlap in the policy",
        )


def overlaps(new: Shown, earlier: Iterable[Shown]) -> tuple[Overlap, ...]:
    """Every earlier table from which, with the new one, exact counts follow that neither shows."""
    return tuple(found for old in earlier if _same_people(old, new) and (found := _overlap(old, new)) is not None)


def _same_people(old: Shown, new: Shown) -> bool:
    if ADD_OR_REMOVE in (old.survey.neighbours, new.survey.neighbours):
        return False  # one of them shows no exact count
    if old.account != new.account:
        return False
    return old.survey.attribute == new.survey.attribute or same_column(old.selection, new.selection)


def _overlap(old: Shown, new: Shown) -> Overlap | None:
    before, after = old.survey, new.survey
    label = label_of(before)
    if before.domain.to_json() != after.domain.to_json():
        return Overlap(label, "another domain", _UNKNOWN)
    # The next round of a survey may come in a new file: its people have joined and left, as they would in the old one.
    selected = difference(old.selection, new.selection, same_survey=before.hash == after.hash)
    if selected is not None:
        return Overlap(label, selected, _UNKNOWN)
    if _accepted_others(old, new):
        return Overlap(label, "other records accepted", _UNKNOWN)
    tables = _different_tables(before, after)
    return None if tables is None else Overlap(label, tables, _smallest(before, after))


def _different_tables(before: Survey, after: Survey) -> str | None:
    old_edges, new_edges = _edges(before), _edges(after)
    if not _nested(old_edges, new_edges):
        return f"{before.binning.describe()} where this one has {after.binning.describe()}"
    old_names, new_names = _dimensions(before), _dimensions(after)
    if not _nested(old_names, new_names):
        return "other dimensions"
    # Finer in one respect and coarser in the other: neither table is a part of the other.
    crossed = (new_edges - old_edges and old_names - new_names) or (old_edges - new_edges and new_names - old_names)
    return "other bins and dimensions" if crossed else None


def _accepted_others(old: Shown, new: Shown) -> bool:
    """Whether a record without a usable dimension is in one table and not in the other.

    Where such records are left out, the numbers left out follow from two tables of other dimensions.
    """
    names = _dimensions(old.survey) & _dimensions(new.survey)
    if _dimensions(old.survey) == _dimensions(new.survey) or not leaves_out(new.selection):
        return False
    if old.counts is None or new.counts is None:
        return False
    edges = sorted(_edges(old.survey) & _edges(new.survey))
    return _merged(old.survey, old.counts, names, edges) != _merged(new.survey, new.counts, names, edges)


def _merged(survey: Survey, counts: Counts, names: set[_Dimension], edges: list[int]) -> Counter[tuple[object, ...]]:
    """Records by the values of these dimensions and the stretch between these edges, where there are any."""
    places = sorted(
        (dimension.name, place)
        for place, dimension in enumerate(survey.dimensions)
        if (dimension.name, dimension.domain.values) in names
    )
    starts = survey.binning.starts.tolist()
    merged = Counter[tuple[object, ...]]()
    for (cell, number), count in counts.items():
        if count:
            values = survey.cells[cell]
            merged[(*(values[place] for _, place in places), bisect_right(edges, starts[number]))] += count
    return merged


def _smallest(before: Survey, after: Survey) -> str:
    edges = [*sorted(_edges(before) | _edges(after)), after.domain.size]
    width, first = min((end - start, start) for start, end in pairwise(edges))
    labels = after.domain.labels[first : first + width]
    names = sorted({name for name, _ in _dimensions(before) | _dimensions(after)})
    within = f" in one cell of {' × '.join(names)}" if names else ""
    return f"{after.attribute} from {labels[0]} to {labels[-1]} ({width} of {after.domain.size} values){within}"


def _edges(survey: Survey) -> set[int]:
    """Where the bins that are sent in clear begin."""
    return set(survey.binning.starts.tolist()) if guarantee_kind(survey) == KIND_WITHIN_BIN else {0}


def _dimensions(survey: Survey) -> set[_Dimension]:
    return {(dimension.name, dimension.domain.values) for dimension in survey.dimensions}


def _nested(one: set[_Part], other: set[_Part]) -> bool:
    return one <= other or other <= one
