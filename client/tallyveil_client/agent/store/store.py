"""The agent's store: approvals, the ledger, and the outbox, each change in one transaction.

Not here: SQLite's own ways (`database`) and the ledger's rules (`tallyveil_client.agent.ledger`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from tallyveil.batch import Batch, SubmissionKey
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError, IntegrityError, TallyveilError
from tallyveil_client.agent.ledger import Entry, Head, Ledger, start_of, verify_chain, verify_reach
from tallyveil_client.agent.store.checks import check_new, other_epsilon, refuse_changed, refuse_stored
from tallyveil_client.agent.store.database import Database
from tallyveil_client.agent.store.earlier import counts_text, read_earlier
from tallyveil_client.agent.store.mark import mark_path, read_mark, write_mark
from tallyveil_client.agent.store.records import Approval, Earlier, NewRound, Outgoing, Submission

_SUBMISSIONS = """
SELECT s.submission_id, s.survey_hash, s.survey, s.round, s.epsilon_nano, s.source,
       coalesce(sum(o.records), 0), count(o.batch_id), count(o.batch_id) FILTER (WHERE o.state = 'acknowledged'),
       s.stored_at, s.completed_at, s.refusal
FROM submissions s LEFT JOIN outbox o ON o.submission_id = s.submission_id
GROUP BY s.submission_id ORDER BY s.ledger_seq
"""


class Store:
    """An open store; making it checks the ledger's chain. Close it after use, or use it in a ``with``.

    Args:
        path: The SQLite file, made where it is missing; its folder must exist.

    Raises:
        IntegrityError: The ledger was altered, or is an older copy of itself.
        TallyveilError: The file cannot be used: see `Database`.
    """

    def __init__(self, path: Path) -> None:
        self._mark = mark_path(path)
        if self._mark.exists() and not path.exists():  # in this order: a neighbour makes the store first
            raise IntegrityError(
                f"the agent's store {path} is gone, but {self._mark} says that there was one",
                not_done="nothing was charged or drawn; spending is stopped",
                next_step="put the newest copy of the store back; a new one would forget what was spent",
            )
        self._database = Database(path)
        try:
            with self._database.reading() as connection:
                self._store_id = str(connection.execute("SELECT store_id FROM identity").fetchone()[0])
            self.ledger()
            self._advance_mark()
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def approve(self, approval: Approval) -> None:
        """Record the operator's consent; a later one to the same survey replaces it.

        Raises:
            PolicyError: A round was charged at another epsilon.
        """
        with self._database.writing() as connection:
            query = "SELECT round, epsilon_nano FROM submissions WHERE survey_hash = ? AND epsilon_nano <> ?"
            found = connection.execute(query, (approval.survey_hash, approval.epsilon)).fetchone()
            if found is not None:
                raise other_epsilon(int(found[0]), int(found[1]))
            connection.execute(
                "INSERT INTO approvals VALUES (?, ?, ?, ?) ON CONFLICT (survey_hash) DO UPDATE SET document = "
                "excluded.document, epsilon_nano = excluded.epsilon_nano, approved_at = excluded.approved_at",
                (approval.survey_hash, approval.document, approval.epsilon, approval.approved_at),
            )

    def approvals(self) -> tuple[Approval, ...]:
        """All of them, in the order they were given."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT survey_hash, document, epsilon_nano, approved_at FROM approvals ORDER BY approved_at, rowid"
            ).fetchall()
        return tuple(Approval(h, bytes(d), NanoEpsilon(e), at) for h, d, e, at in rows)

    def ledger(self) -> Ledger:
        """The ledger, its chain checked anew.

        Raises:
            IntegrityError: It was altered, or is an older copy of itself.
        """
        seen = self._read_mark()  # before the snapshot: the ledger may grow in between, never shrink
        with self._database.reading() as connection:
            return self._ledger(connection, seen)

    def reserve(self, survey_hash: str, number: int, epsilon: NanoEpsilon, fresh_id: bytes) -> SubmissionKey:
        """The key under which a round will be submitted: drawn once for an epsilon, announced before the charge.

        Args:
            survey_hash: Of the survey.
            number: Of the round.
            epsilon: To be used.
            fresh_id: 16 random bytes, taken if the round has no identifier for this epsilon yet.

        Raises:
            AlreadyStoredError: The round was charged and stored.
        """
        round_key = (survey_hash, number, epsilon)
        with self._database.writing() as connection:
            refuse_stored(connection, self._ledger(connection, self._read_mark()), survey_hash, number)
            row = connection.execute(
                "SELECT submission_id FROM intents WHERE survey_hash = ? AND round = ? AND epsilon_nano = ?", round_key
            ).fetchone()
            if row is None:
                connection.execute("INSERT INTO intents VALUES (?, ?, ?, ?)", (*round_key, fresh_id))
        return SubmissionKey(survey_hash, number, epsilon, fresh_id if row is None else bytes(row[0]))

    def commit_round(self, new: NewRound, admit: Callable[[tuple[Earlier, ...]], None] | None = None) -> None:
        """Charge the ledger and store the perturbed batches: both, or neither.

        Args:
            new: What to store.
            admit: Raises where what is stored already forbids it; asked while nobody else can store anything.

        Raises:
            AlreadyStoredError: The round was charged and stored before.
            PolicyError: The account has not enough left, or the survey was approved at another epsilon meanwhile.
            IntegrityError: The ledger was altered, or is an older copy of itself.
            UnavailableError: The disk is full. Nothing was charged or stored.
            TallyveilError: The mark could not be written. All is charged and stored, and `outgoing` gives nothing
                until it is written.
        """
        key, charge = new.key, new.charge
        check_new(new)
        with self._database.writing() as connection:
            ledger = self._ledger(connection, self._read_mark())
            refuse_stored(connection, ledger, key.survey_hash, key.round)
            refuse_changed(connection, key)
            if admit is not None:
                admit(read_earlier(connection, ledger))
            entry = ledger.next_entry(charge, new.total)
            connection.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?)", (entry.seq, entry.previous, entry.content, entry.hash)
            )
            connection.execute(
                "INSERT INTO submissions (submission_id, survey_hash, survey, round, epsilon_nano, source, "
                "selection, clear_counts, ledger_seq, stored_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(key.submission_id, key.survey_hash, charge.survey, key.round, key.epsilon),
                    *(new.source, new.selection, counts_text(new.clear_counts), entry.seq, charge.at),
                ),
            )
            connection.executemany(
                "INSERT INTO outbox (batch_id, submission_id, nonce, cell, records, payload, digest) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((b.batch_id, key.submission_id, b.nonce, b.cell, b.records, b.payload, b.digest) for b in new.batches),
            )
        try:
            self._advance_mark()
        except TallyveilError as error:
            error.not_done = "nothing was sent; the round is charged and stored, and is not charged again"
            error.next_step += "; then run again: it writes the mark first, and sends what is stored"
            raise

    def earlier(self) -> tuple[Earlier, ...]:
        """The tables behind all submissions, in the order they were stored.

        Raises:
            IntegrityError: The store is damaged, or the ledger is an older copy of itself.
        """
        seen = self._read_mark()
        with self._database.reading() as connection:
            return read_earlier(connection, self._ledger(connection, seen))

    def submissions(self) -> tuple[Submission, ...]:
        """All of them, in the order they were stored."""
        with self._database.reading() as connection:
            rows = connection.execute(_SUBMISSIONS).fetchall()
        return tuple(
            Submission(SubmissionKey(row[1], row[3], NanoEpsilon(row[4]), bytes(row[0])), row[2], *row[5:])
            for row in rows
        )

    def submission(self, survey_hash: str, number: int) -> Submission | None:
        """The submission of a round, or None."""
        found = (s for s in self.submissions() if (s.key.survey_hash, s.key.round) == (survey_hash, number))
        return next(found, None)

    def outgoing(self, submission_id: bytes) -> tuple[Outgoing, ...]:
        """The batches of a submission, as stored, by cell: none before the mark beside the store is durable.

        Whatever was sent could be charged a second time if an older copy of the store were not noticed.

        Raises:
            TallyveilError: The mark cannot be written.
        """
        self._advance_mark()
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT batch_id, nonce, cell, records, payload, digest, state FROM outbox "
                "WHERE submission_id = ? ORDER BY cell, batch_id",
                (submission_id,),
            ).fetchall()
        return tuple(
            Outgoing(Batch(bytes(i), bytes(n), cell, records, bytes(p), bytes(d)), state == "acknowledged")
            for i, n, cell, records, p, d, state in rows
        )

    def mark_batches(self, acknowledged: Iterable[bytes] = (), queued: Iterable[bytes] = ()) -> None:
        """Record which batches the aggregator holds, and which it no longer does."""
        with self._database.writing() as connection:
            for state, ids in (("queued", queued), ("acknowledged", acknowledged)):
                connection.executemany("UPDATE outbox SET state = ? WHERE batch_id = ?", ((state, i) for i in ids))

    def complete(self, submission_id: bytes, at: str) -> None:
        """Record that the aggregator holds all of a submission; the first moment stays."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE submissions SET completed_at = ?, refusal = '' WHERE submission_id = ? AND completed_at = ''",
                (at, submission_id),
            )

    def note_refusal(self, submission_id: bytes, code: str) -> None:
        """Record why the aggregator last refused a submission; its batches stay."""
        with self._database.writing() as connection:
            connection.execute("UPDATE submissions SET refusal = ? WHERE submission_id = ?", (code, submission_id))

    def _ledger(self, connection: sqlite3.Connection, seen: Head | None) -> Ledger:
        rows = connection.execute("SELECT seq, previous, entry, hash FROM ledger ORDER BY seq")
        entries = [Entry(seq, previous, bytes(entry), digest) for seq, previous, entry, digest in rows]
        start = start_of(self._store_id)
        ledger = verify_chain(start, entries)
        if seen is not None:
            verify_reach(start, entries, seen)
        elif entries:
            raise IntegrityError(
                f"{self._mark} is missing: whether the ledger is its newest copy cannot be told",
                not_done="nothing was charged or drawn; spending is stopped",
                next_step="put the newest copies of the store and of its .head file back together",
            )
        return ledger

    def _read_mark(self) -> Head | None:
        try:
            return read_mark(self._mark, self._store_id)
        except OSError as error:
            raise self._unusable_mark(error) from None

    def _advance_mark(self) -> None:
        """Write down how far the ledger reaches; the store's own lock keeps two processes from going back."""
        with self._database.writing() as connection:
            seen = self._read_mark()
            row = connection.execute("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
            head = start_of(self._store_id) if row is None else Head(*row)
            if seen is not None and seen.seq >= head.seq:
                return
            try:
                write_mark(self._mark, self._store_id, head)
            except OSError as error:
                raise self._unusable_mark(error) from None

    def _unusable_mark(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"{self._mark} cannot be used: {error.strerror or type(error).__name__}",
            not_done="nothing was charged, stored or sent",
            next_step="check the folder's owner and permissions, and that the disk is neither full nor read-only",
        )
