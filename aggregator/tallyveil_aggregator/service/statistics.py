# pyright: standard
"""Handing on releases: the signed file itself, which whoever receives it verifies.

Not here: the messages (`servicers`) and how a release is made (`tallyveil_aggregator.publication`).
"""

from __future__ import annotations

import grpc

from tallyveil.identity import Identity
from tallyveil_aggregator.service.access import check_reader
from tallyveil_aggregator.service.refusals import Declined
from tallyveil_aggregator.store import Store
from tallyveil_aggregator.store.releases import StoredRelease

MAX_LISTED = 10_000


class Statistics:
    """The releases of a store, for its callers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self, caller: Identity | None) -> tuple[StoredRelease, ...]:
        """The newest releases, at most `MAX_LISTED`, newest first."""
        with self._store.reading() as transaction:
            check_reader(transaction, caller)
            return transaction.releases.newest(MAX_LISTED)

    def get(self, caller: Identity | None, name: str, version: int, round_number: int, revision: int) -> bytes:
        """The signed file of a release; a 0 means the newest there is.

        Raises:
            Declined: There is no such release.
        """
        with self._store.reading() as transaction:
            check_reader(transaction, caller)
            found = transaction.releases.find(name, version, round_number, revision)
            document = None if found is None else transaction.releases.document(found.sequence)
        if document is None:
            raise Declined(grpc.StatusCode.NOT_FOUND, "no such release is published here")
        return document
