# pyright: standard
"""Batches of raw records as domain indices, every record accepted, filtered out or rejected with a reason.

Not here: where batches come from (`sources`), one cell (`cells`) and what happens to the indices afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tallyveil.errors import ConfigurationError
from tallyveil.survey import Survey
from tallyveil_client.agent.cells import CellReader, CellRules, Reason, code_of, domain_reader, reason_of
from tallyveil_client.agent.columns import ColumnReader
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.filter import ConditionReader, combine

_MISSING = code_of(Reason.MISSING)


@dataclass(frozen=True, repr=False)
class Encoded:
    """One batch after reading; ``read == len(values) + filtered + rejected.total()``.

    Its repr shows none of it: values are raw, and counts of rejected records are sensitive too.

    Args:
        values: Domain index of each accepted record, shape (accepted,).
        cells: Its dimension cell, an index into `Survey.cells`, shape (accepted,).
        read: Records read.
        filtered: Records the source's filter leaves out.
        rejected: Records that cannot be used, by reason.
        first_rejected: For each reason the number of the first such record, counting from 1.
    """

    values: NDArray[np.int64]
    cells: NDArray[np.int64]
    read: int
    filtered: int
    rejected: Counter[Reason]
    first_rejected: dict[Reason, int]


@dataclass(frozen=True)
class _Column:
    """One logical column in one role."""

    source: str
    reader: ColumnReader
    missing: int = _MISSING
    otherwise: int | None = None

    def codes(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        codes = self.reader.codes(batch.column(self.source))
        if self.otherwise is not None and (wrong := codes < 0).any():
            codes[wrong] = np.where(codes[wrong] == _MISSING, self.missing, self.otherwise)
        return codes


@dataclass
class Encoder:
    """Encodes the batches of one source, in order, for one survey.

    Args:
        survey: What is collected.
        source: Where from: columns, missing codes, recodes, filter.

    Raises:
        ConfigurationError: The source names no column for the attribute, a dimension or the filter, or its rules
            make no sense for the survey's domains.
    """

    survey: Survey
    source: SourceConfig
    _records: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        survey = self.survey
        self._value = self._column(survey.attribute, domain_reader(survey.domain, self._rules(survey.attribute)))
        self._dimensions = [
            self._column(
                dimension.name,
                domain_reader(dimension.domain, self._rules(dimension.name)),
                Reason.DIMENSION_MISSING,
                Reason.DIMENSION_NOT_IN_CODEBOOK,
            )
            for dimension in survey.dimensions
        ]
        self._conditions = [
            self._column(
                condition.column,
                ConditionReader(condition, self._rules(condition.column)),
                Reason.FILTER_MISSING,
                Reason.FILTER_UNREADABLE,
            )
            for condition in self.source.conditions
        ]

    @property
    def columns(self) -> tuple[str, ...]:
        """The source's columns that are needed, each once."""
        used: Iterable[_Column] = (self._value, *self._dimensions, *self._conditions)
        return tuple(dict.fromkeys(column.source for column in used))

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """Read the next batch; it must hold `columns`.

        Raises:
            InputError: A column's type holds neither numbers nor text.
        """
        outcome = self._value.codes(batch)
        cells = np.zeros(batch.num_rows, dtype=np.int64)
        for dimension, column in zip(self.survey.dimensions, self._dimensions, strict=True):
            codes = column.codes(batch)
            cells = cells * dimension.domain.size + codes
            outcome = np.where((outcome >= 0) & (codes < 0), codes, outcome)
        filtered = 0
        kept = outcome >= 0
        if self._conditions:
            met = combine([column.codes(batch) for column in self._conditions])
            outcome = np.where(met < 0, met, outcome)
            out = met == 0
            filtered = int(np.count_nonzero(out))
            kept = (outcome >= 0) & ~out
            outcome[out] = 0
        rejected, first = self._count(outcome)
        self._records += batch.num_rows
        if kept.all():
            return Encoded(outcome, cells, batch.num_rows, filtered, rejected, first)
        return Encoded(outcome[kept], cells[kept], batch.num_rows, filtered, rejected, first)

    def _count(self, outcome: NDArray[np.int64]) -> tuple[Counter[Reason], dict[Reason, int]]:
        places = np.flatnonzero(outcome < 0)
        codes, firsts, counts = np.unique(outcome[places], return_index=True, return_counts=True)
        reasons = [reason_of(int(code)) for code in codes]
        rejected = Counter({reason: int(count) for reason, count in zip(reasons, counts, strict=True)})
        first = {
            reason: self._records + int(places[position]) + 1 for reason, position in zip(reasons, firsts, strict=True)
        }
        return rejected, first

    def _column(
        self, name: str, reader: CellReader, missing: Reason = Reason.MISSING, otherwise: Reason | None = None
    ) -> _Column:
        source = self.source.columns.get(name)
        if source is None:
            raise ConfigurationError(
                f"source '{self.source.name}' says no column for '{name}'",
                not_done="nothing was read",
                next_step=f'add {name} = "..." to [sources.{self.source.name}.columns]',
            )
        return _Column(
            source, ColumnReader(source, reader), code_of(missing), None if otherwise is None else code_of(otherwise)
        )

    def _rules(self, name: str) -> CellRules:
        source = self.source
        return CellRules(source.missing, source.recode.get(name, {}), source.csv.numbers)
