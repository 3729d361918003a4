"""One pass over a source: every batch encoded, every record accounted for.

Not here: what the values are used for. Nothing is decided until the pass is over: `Summary` adds up, and
`refuse_rejected` says whether the run may go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tallyveil.errors import InputError, InternalError, TallyveilError
from tallyveil.survey import Survey
from tallyveil_client.agent.cells import Reason
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.encode import Encoded, Encoder
from tallyveil_client.agent.sources import open_source
from tallyveil_client.agent.sources.source import UNSENT, Source, guarded


@dataclass(frozen=True)
class Progress:
    """How far a scan is.

    Args:
        records: Read so far.
        fraction: From 0 to 1; None where the whole is unknown.
    """

    records: int
    fraction: float | None


@dataclass(repr=False)
class Summary:
    """What a whole pass came to; local, like everything counted here."""

    read: int = 0
    accepted: int = 0
    filtered: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter[Reason])
    first_rejected: dict[Reason, int] = field(default_factory=dict[Reason, int])

    def add(self, encoded: Encoded) -> None:
        """Count one more batch, in order."""
        self.read += encoded.read
        self.accepted += len(encoded.values)
        self.filtered += encoded.filtered
        self.rejected.update(encoded.rejected)
        self.first_rejected = {**encoded.first_rejected, **self.first_rejected}


def scan(
    source: SourceConfig, survey: Survey, on_progress: Callable[[Progress], None] | None = None
) -> Iterator[Encoded]:
    """Read a source from its beginning to its end.

    Args:
        source: Where from.
        survey: What for.
        on_progress: Called after each batch.

    Yields:
        One `Encoded` for each batch; none where the source has no record.

    Raises:
        ConfigurationError: A column that is needed is not in the source or not in its configuration.
        InputError: The source cannot be read to its end.
        UnavailableError: The database cannot be reached.
    """
    encoder = Encoder(survey, source)
    records = 0
    with open_source(source) as opened:
        for batch in opened.batches(encoder.columns):
            encoded = guarded(partial(encoder.encode, batch), _unforeseen)
            records += encoded.read
            if on_progress is not None:
                on_progress(Progress(records, _fraction(opened, records)))
            yield encoded


def refuse_rejected(source: SourceConfig, summary: Summary) -> None:
    """Stop where records were rejected and the source says so (``on_invalid = "refuse"``).

    Raises:
        InputError: With the number of records rejected for each reason and the first of them, never a cell.
    """
    if source.on_invalid == "reject" or not summary.rejected:
        return
    details = "; ".join(
        f"{reason.value}: {count} (first: record {summary.first_rejected[reason]})"
        for reason, count in sorted(summary.rejected.items(), key=lambda item: summary.first_rejected[item[0]])
    )
    raise InputError(
        f"source '{source.name}': {summary.rejected.total()} of {summary.read} records cannot be used: {details}",
        not_done=UNSENT,
        next_step='correct them, declare missing codes or recodes, or leave them out with on_invalid = "reject"',
    )


def _fraction(source: Source, records: int) -> float | None:
    return records / source.total_rows if source.total_rows else source.fraction_read


def _unforeseen(error: Exception) -> TallyveilError:
    return InternalError(
        f"records could not be encoded ({type(error).__name__})", not_done=UNSENT, next_step="report this as a fault"
    )
