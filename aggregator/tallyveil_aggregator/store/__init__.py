"""The aggregator's store: departments, surveys, submissions as counts, releases. One transaction for each decision.

Not here: decisions. Nothing outside this package knows SQL, and nothing in it but `engine` knows which database.
"""

from __future__ import annotations

from tallyveil_aggregator.store.engine import StoreUnavailable
from tallyveil_aggregator.store.store import Store, Transaction

__all__ = ["Store", "StoreUnavailable", "Transaction"]
