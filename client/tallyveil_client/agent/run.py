"""One round from the records to the aggregator: check, perturb, ask, charge and store, send.

Not here: what each of these is. Until `Store.commit_round` nothing is charged and what was drawn is in memory only;
from then on the same bytes are sent until the aggregator holds them all, by this run or a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from tallyveil.batch import SubmissionKey
from tallyveil.errors import IntegrityError
from tallyveil.mechanisms import for_survey
from tallyveil.moments import moment_text
from tallyveil.randomness import Randomness
from tallyveil.survey import Round
from tallyveil_client.agent.approval import require_allowed
from tallyveil_client.agent.collect import collect, require_admissible, seal
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.department import Department, charge_for, shown_before
from tallyveil_client.agent.encode import Encoded
from tallyveil_client.agent.ledger import require_left
from tallyveil_client.agent.overlap import require_nested
from tallyveil_client.agent.scan import Summary
from tallyveil_client.agent.selection import Approved, require_open
from tallyveil_client.agent.store import AlreadyStoredError, Earlier, NewRound, Submission


@dataclass(frozen=True)
class Aids:
    """What a round needs from outside.

    Args:
        now: The agent's clock, aware.
        token: Draws 16 fresh bytes for identifiers and nonces.
        randomness: The coins' source; None for a secure one.
        ready: Raises where our certificate or key would not do, before anything is read.
        read: Reads a source for a survey (`scan`).
        announce: Asks the aggregator, before the charge; returns whether it holds anything of the submission.
        deliver: Sends a stored submission to its end.
    """

    now: Callable[[], datetime]
    token: Callable[[], bytes]
    randomness: Randomness | None
    ready: Callable[[], None]
    read: Callable[[SourceConfig, Approved], Generator[Encoded]]
    announce: Callable[[SubmissionKey], bool]
    deliver: Callable[[SubmissionKey], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Args:
        submission: As it is stored now: complete.
        was_complete: It was so before; nothing was done.
        resumed: It was stored before; only sending was left to do.
        summary: Of the records read, where they were.
    """

    submission: Submission
    was_complete: bool = False
    resumed: bool = False
    summary: Summary | None = None


def run_round(department: Department, item: Approved, window: Round, source: str | None, aids: Aids) -> Outcome:
    """Take part in one round, or go on where an earlier run ended.

    Raises:
        TallyveilError: With what was and was not done.
    """
    stored = department.store.submission(item.survey.hash, window.number)
    if stored is not None and stored.complete:
        return Outcome(stored, was_complete=True)
    summary = None if stored is not None else _store_round(department, item, window, source, aids)
    submission = _submission(department, item, window)
    aids.deliver(submission.key)
    department.store.complete(submission.key.submission_id, moment_text(aids.now()))
    return Outcome(_submission(department, item, window), resumed=stored is not None, summary=summary)


def _store_round(department: Department, item: Approved, window: Round, source: str | None, aids: Aids) -> Summary:
    require_open(item.survey, window, aids.now())
    limits = require_allowed(department, item.survey, item.epsilon, source)
    config = department.source(limits)
    cost = department.cost(item, limits)
    require_left(cost.account.name, cost.account.total_epsilon, cost.left, cost.charged)
    mechanism = for_survey(item.survey, item.epsilon, aids.randomness)
    aids.ready()
    with closing(aids.read(config, item)) as batches:
        collected = collect(batches, item.survey, mechanism)
    require_admissible(collected, config, item.survey, limits)
    store, shown = department.store, department.shown(item.survey, limits, collected.clear_counts)

    def admit(earlier: tuple[Earlier, ...]) -> None:
        require_nested(shown, shown_before(earlier), limits.allow_overlap)

    admit(store.earlier())  # before anybody is asked; and again in the transaction, where no other run can be faster
    key = store.reserve(item.survey.hash, window.number, item.epsilon, aids.token())
    if aids.announce(key):
        if store.submission(key.survey_hash, key.round) is not None:
            raise AlreadyStoredError(item.label, window.number)
        raise IntegrityError(
            "the aggregator says that it holds batches of this submission, and this store has never stored any: either "
            "the aggregator is mistaken or lying, or this store is an older copy of itself",
            not_done="nothing was charged, stored or sent",
            next_step="compare with the aggregator's operator what it holds and since when; leave the store as it is "
            "until that is known",
        )
    sealed = seal(collected, mechanism.law, key, aids.token)
    charge = charge_for(item, window.number, cost, key.submission_id, moment_text(aids.now()))
    total = cost.account.total_epsilon
    new = NewRound(key, charge, total, sealed, config.name, shown.selection, shown.counts or {})
    store.commit_round(new, admit)
    return collected.summary


def _submission(department: Department, item: Approved, window: Round) -> Submission:
    found = department.store.submission(item.survey.hash, window.number)
    if found is None:
        raise IntegrityError("a submission that was just stored is gone", next_step="check the agent's store")
    return found
