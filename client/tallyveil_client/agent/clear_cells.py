"""Records per clear cell: a cell with few people is shown to the aggregator as it is, so it stops the agent.

Not here: counting (the agent's session) and the limit itself (`policy`). No IO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tallyveil.errors import PolicyError
from tallyveil.guarantee import ADD_OR_REMOVE, KIND_WITHIN_BIN
from tallyveil.survey import Survey
from tallyveil_client.agent.policy import Collection, guarantee_kind

Counts = Mapping[tuple[int, int], int]
"""Records by (dimension cell, bin)."""


def check_clear_cells(collection: Collection, survey: Survey, clear_counts: Counts) -> None:
    """Refuse to send a table with a clear cell that is not empty and holds fewer records than the policy asks.

    Args:
        collection: The policy's limits.
        survey: Its cells are dimension cell × bin for brr with bins, dimension cell alone otherwise.
        clear_counts: Accepted records by (cell index, bin index); cells that are absent are empty.

    Raises:
        PolicyError: Naming the smallest such cell and a coarser table. Nothing has been charged. How many records
            the cell holds is not said.
    """
    if survey.neighbours == ADD_OR_REMOVE:
        return  # no number of records is sent
    least = collection.min_clear_cell
    counts = visible_counts(survey, clear_counts)
    small = {key: count for key, count in counts.items() if 0 < count < least}
    if not small:
        return
    key = min(small, key=lambda item: (small[item], item))
    raise PolicyError(
        f"{len(small)} clear {'cell holds' if len(small) == 1 else 'cells hold'} fewer records than the policy's "
        f"min_clear_cell of {least}; the smallest is {_describe(survey, *key)}",
        not_done="nothing was charged or sent",
        next_step=_proposal(survey, counts, least),
    )


def visible_counts(survey: Survey, clear_counts: Counts) -> Counts:
    """The counts the aggregator would see: over all bins where the bin is not disclosed."""
    if guarantee_kind(survey) == KIND_WITHIN_BIN:
        return clear_counts
    merged: Counter[tuple[int, int]] = Counter()
    for (cell, _), count in clear_counts.items():
        merged[cell, 0] += count
    return merged


def _describe(survey: Survey, cell: int, number: int) -> str:
    parts = [
        f"{dimension.name} = {value}" for dimension, value in zip(survey.dimensions, survey.cells[cell], strict=True)
    ]
    if guarantee_kind(survey) == KIND_WITHIN_BIN:
        binning = survey.binning
        first = int(binning.starts[number])
        labels = survey.domain.labels[first : first + int(binning.sizes[number])]
        parts.append(f"{survey.attribute} from {labels[0]} to {labels[-1]} (bin {number + 1} of {binning.bins})")
    return ", ".join(parts) or "the whole table"


def _proposal(survey: Survey, counts: Counts, least: int) -> str:
    if sum(counts.values()) < least:
        return f"no coarser table helps: there are fewer than {least} records in all"
    tables = _coarser(survey, counts)
    words = next(words for words, table in tables if all(count == 0 or count >= least for count in table.values()))
    return f"ask the survey authority for a coarser table: {words}"


def _coarser(survey: Survey, counts: Counts) -> Iterator[tuple[str, Counts]]:
    """Tables whose cells are unions of this one's, from the least change to one cell for everybody."""
    bins = survey.bins if guarantee_kind(survey) == KIND_WITHIN_BIN else 1
    fewer = [divisor for divisor in range(bins, 0, -1) if bins % divisor == 0]
    names = [dimension.name for dimension in survey.dimensions]
    for left_out in [None, *names, *([] if len(names) < 2 else ["all"])]:
        kept = [name for name in names if left_out not in (name, "all")]
        for divisor in fewer:
            words = [] if divisor == bins else [f"{divisor} {'bin' if divisor == 1 else 'bins'}"]
            if left_out is not None:
                dropped = "dimensions" if left_out == "all" else f"dimension {left_out}"
                words.append(f"without {dropped}")
            yield " ".join(words), _merged(survey, counts, kept, bins // divisor)


def _merged(survey: Survey, counts: Counts, kept: list[str], bins_to_one: int) -> Counts:
    places = [place for place, dimension in enumerate(survey.dimensions) if dimension.name in kept]
    numbers: dict[tuple[str, ...], int] = {}
    merged: Counter[tuple[int, int]] = Counter()
    for (cell, number), count in counts.items():
        values = tuple(survey.cells[cell][place] for place in places)
        merged[numbers.setdefault(values, len(numbers)), number // bins_to_one] += count
    return merged
