"""The tables of the agent's store.

Not here: queries. Amounts are whole nano-epsilon, moments are texts in UTC. An account's total is the policy's and
what it has spent is the sum of its charges in the ledger, so that neither is kept a second time.
"""

from __future__ import annotations

APPLICATION_ID = 0x54_41_4C_59
"""Marks the file as an agent's store ("TALY")."""

SCHEMA_VERSION = 2

TABLES = """
CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    store_id TEXT NOT NULL
) STRICT;

CREATE TABLE approvals (
    survey_hash TEXT PRIMARY KEY,
    document BLOB NOT NULL,
    epsilon_nano INTEGER NOT NULL,
    approved_at TEXT NOT NULL
) STRICT;

CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    previous TEXT NOT NULL,
    entry BLOB NOT NULL,
    hash TEXT NOT NULL UNIQUE
) STRICT;

-- Identifiers announced to the aggregator before the charge, so that asking first never makes two submissions. One
-- for each epsilon: who goes back to the first must go back to what the aggregator may have taken down for it.
CREATE TABLE intents (
    survey_hash TEXT NOT NULL,
    round INTEGER NOT NULL,
    epsilon_nano INTEGER NOT NULL,
    submission_id BLOB NOT NULL UNIQUE CHECK (length(submission_id) = 16),
    PRIMARY KEY (survey_hash, round, epsilon_nano)
) STRICT;

CREATE TABLE submissions (
    submission_id BLOB PRIMARY KEY CHECK (length(submission_id) = 16),
    survey_hash TEXT NOT NULL,
    survey TEXT NOT NULL,
    round INTEGER NOT NULL,
    epsilon_nano INTEGER NOT NULL,
    source TEXT NOT NULL,
    selection TEXT NOT NULL,
    clear_counts TEXT NOT NULL,
    ledger_seq INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
    stored_at TEXT NOT NULL,
    completed_at TEXT NOT NULL DEFAULT '',
    refusal TEXT NOT NULL DEFAULT '',
    UNIQUE (survey_hash, round)
) STRICT;

CREATE TABLE outbox (
    batch_id BLOB PRIMARY KEY CHECK (length(batch_id) = 16),
    submission_id BLOB NOT NULL REFERENCES submissions (submission_id),
    nonce BLOB NOT NULL,
    cell INTEGER NOT NULL,
    records INTEGER NOT NULL,
    payload BLOB NOT NULL,
    digest BLOB NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'acknowledged')),
    UNIQUE (submission_id, cell, batch_id)
) STRICT;
"""
