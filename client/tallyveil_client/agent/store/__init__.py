"""The agent's durable memory: approvals, ledger and outbox in one SQLite file, never a raw value.

Not here: the rules they follow (`tallyveil_client.agent.ledger`) and what is sent when (`session`).
"""

from __future__ import annotations

from tallyveil_client.agent.store.records import AlreadyStoredError, Approval, Earlier, NewRound, Outgoing, Submission
from tallyveil_client.agent.store.store import Store

__all__ = ["AlreadyStoredError", "Approval", "Earlier", "NewRound", "Outgoing", "Store", "Submission"]
