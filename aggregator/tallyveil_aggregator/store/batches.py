"""Batches by id, and the support counts they brought.

Not here: histograms as they travel (`tallyveil.batch`); what is stored are fixed-width integers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, insert, select

from tallyveil.batch import Batch, BatchReference
from tallyveil.mechanisms import Tally
from tallyveil_aggregator.intake import HeldBatch, Holdings
from tallyveil_aggregator.store.schema import batches, strata

_PACKED = np.dtype("<i8")


class Batches:
    """The batches and strata of submissions, which go by their number in the store; within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def holdings(self, submission: int, batch: Batch) -> Holdings:
        """What is held that bears on a batch sent for that submission."""
        same_id = self._connection.execute(
            select(batches.c.digest, batches.c.submission).where(batches.c.batch_id == batch.batch_id)
        ).one_or_none()
        same_cell = self._connection.execute(
            select(batches.c.cell).where(batches.c.submission == submission, batches.c.cell == batch.cell)
        ).first()
        held = None
        if same_id is not None:
            held = HeldBatch(BatchReference(batch.batch_id, bytes(same_id.digest)), same_id.submission == submission)
        return Holdings(held, same_cell is not None, self.records(submission))

    def records(self, submission: int) -> int:
        """Records held of a submission."""
        total = select(func.coalesce(func.sum(batches.c.records), 0)).where(batches.c.submission == submission)
        return int(self._connection.execute(total).scalar_one())

    def references(self, submission: int) -> tuple[BatchReference, ...]:
        """Every batch held of a submission, by cell."""
        rows = self._connection.execute(
            select(batches.c.batch_id, batches.c.digest)
            .where(batches.c.submission == submission)
            .order_by(batches.c.cell)
        )
        return tuple(BatchReference(bytes(batch_id), bytes(digest)) for batch_id, digest in rows)

    def add(self, submission: int, batch: Batch, counts: NDArray[np.int64]) -> None:
        """Store a batch with its counts, shape (K,)."""
        row = {
            "batch_id": batch.batch_id,
            "submission": submission,
            "cell": batch.cell,
            "records": batch.records,
            "digest": batch.digest,
        }
        self._connection.execute(insert(batches).values(row))
        packed = counts.astype(_PACKED).tobytes()
        self._connection.execute(insert(strata).values(submission=submission, cell=batch.cell, counts=packed))

    def strata(self, submission: int) -> Iterator[tuple[int, Tally]]:
        """Cell and tally of each stratum of a submission, by cell; one at a time."""
        same = (batches.c.submission == strata.c.submission) & (batches.c.cell == strata.c.cell)
        rows = self._connection.execute(
            select(strata.c.cell, batches.c.records, strata.c.counts)
            .join_from(strata, batches, same)
            .where(strata.c.submission == submission)
            .order_by(strata.c.cell)
        )
        for cell, records, packed in rows:
            yield cell, Tally(records, np.frombuffer(packed, dtype=_PACKED).astype(np.int64))
