"""The store's tables.

Not here: statements. Moments are texts in UTC (`tallyveil.moments`), which sort as they should; hashes are lower-case
hexadecimal texts; ids and digests are bytes. No raw value, report or nonce is kept: only counts of perturbed reports.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

FORMAT = 2

_ROW = BigInteger().with_variant(Integer, "sqlite")  # only an INTEGER numbers its rows there

metadata = MetaData()

store_format = Table("store_format", metadata, Column("format", Integer, primary_key=True))

departments = Table(
    "departments",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("added_at", String(20), nullable=False),
)

surveys = Table(
    "surveys",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("name", String(63), nullable=False),
    Column("version", Integer, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("added_at", String(20), nullable=False),
    UniqueConstraint("name", "version"),
)

rounds = Table(
    "rounds",
    metadata,
    Column("survey_hash", String(64), ForeignKey("surveys.hash"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("closed_at", String(20)),
)
"""One row for each round of each survey; `closed_at` is an operator's early close."""

submissions = Table(
    "submissions",
    metadata,
    Column("id", _ROW, primary_key=True),
    Column("department", String(63), ForeignKey("departments.name"), nullable=False),
    Column("survey_hash", String(64), nullable=False),
    Column("round", Integer, nullable=False),
    Column("submission_id", LargeBinary(16), nullable=False),
    Column("epsilon_nano", BigInteger, nullable=False),
    Column("choice_signature", LargeBinary(256), nullable=False),
    Column("certificate", LargeBinary, nullable=False),
    Column("opened_at", String(20), nullable=False),
    Column("completed_at", String(20)),
    ForeignKeyConstraint(["survey_hash", "round"], ["rounds.survey_hash", "rounds.number"]),
    UniqueConstraint("survey_hash", "round", "department"),
)

batches = Table(
    "batches",
    metadata,
    Column("batch_id", LargeBinary(16), primary_key=True),
    Column("submission", _ROW, ForeignKey("submissions.id"), nullable=False),
    Column("cell", Integer, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    UniqueConstraint("submission", "cell"),
)

strata = Table(
    "strata",
    metadata,
    Column("submission", _ROW, ForeignKey("submissions.id"), primary_key=True),
    Column("cell", Integer, primary_key=True),
    Column("counts", LargeBinary, nullable=False),
)
"""Support counts of each submission and dimension cell: K little-endian 64-bit integers in one value."""

releases = Table(
    "releases",
    metadata,
    Column("sequence", Integer, primary_key=True),
    Column("survey_hash", String(64), nullable=False),
    Column("round", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("previous", String(64)),
    Column("content", String(64), nullable=False),
    Column("released_at", String(20), nullable=False),
    Column("document", LargeBinary, nullable=False),
    ForeignKeyConstraint(["survey_hash", "round"], ["rounds.survey_hash", "rounds.number"]),
    UniqueConstraint("survey_hash", "round", "revision"),
)
"""`sequence` is the place in this aggregator's chain, from 1; `content` digests what the release is made from."""
