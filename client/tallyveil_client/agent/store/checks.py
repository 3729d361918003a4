"""What must hold before a round is charged and stored, seen from inside the transaction that does it.

Not here: whether the account has enough left (`tallyveil_client.agent.ledger`) and other tables (`overlap`).
"""

from __future__ import annotations

import sqlite3

from tallyveil.batch import SubmissionKey
from tallyveil.epsilon import NanoEpsilon, epsilon_text
from tallyveil.errors import IntegrityError, InternalError, PolicyError
from tallyveil_client.agent.ledger import Ledger
from tallyveil_client.agent.store.records import AlreadyStoredError, NewRound


def refuse_changed(connection: sqlite3.Connection, key: SubmissionKey) -> None:
    """Stop where the operator consented to another epsilon since this run began, or another identifier was announced.

    Raises:
        PolicyError: Another epsilon.
        InternalError: Another identifier.
    """
    approved = connection.execute(
        "SELECT epsilon_nano FROM approvals WHERE survey_hash = ?", (key.survey_hash,)
    ).fetchone()
    if approved is not None and approved[0] != key.epsilon:
        raise PolicyError(
            f"the survey was approved at epsilon {epsilon_text(NanoEpsilon(approved[0]))} while this run was at work",
            not_done="nothing was charged, stored or sent",
            next_step="run again",
        )
    announced = connection.execute(
        "SELECT submission_id FROM intents WHERE survey_hash = ? AND round = ? AND epsilon_nano = ?",
        (key.survey_hash, key.round, key.epsilon),
    ).fetchone()
    if announced is not None and bytes(announced[0]) != key.submission_id:
        raise InternalError("another identifier was announced", not_done="nothing was charged or stored")


def check_new(new: NewRound) -> None:
    """What the caller has to see to.

    Raises:
        InternalError: The charge is for something else, or there is no batch.
    """
    key, charge = new.key, new.charge
    same = (key.survey_hash, key.round, key.epsilon, key.submission_id.hex())
    if same != (charge.survey_hash, charge.round, charge.epsilon, charge.submission) or not new.batches:
        raise InternalError("a charge does not belong to what it pays for", not_done="nothing was charged or stored")


def other_epsilon(number: int, epsilon: int) -> PolicyError:
    """The error of approving another epsilon than the one a round was charged at."""
    return PolicyError(
        f"round {number} of this survey was charged at epsilon {epsilon_text(epsilon)}, which cannot change any more",
        not_done="nothing was approved or charged",
        next_step=f"approve the survey at epsilon {epsilon_text(epsilon)}",
    )


def refuse_stored(connection: sqlite3.Connection, ledger: Ledger, survey_hash: str, number: int) -> None:
    """Stop where a round was charged before: stored by this run's neighbour or an earlier one, or lost since.

    Raises:
        AlreadyStoredError: It is stored.
        IntegrityError: It was charged, and is not stored.
    """
    row = connection.execute(
        "SELECT survey FROM submissions WHERE survey_hash = ? AND round = ?", (survey_hash, number)
    ).fetchone()
    if row is not None:
        raise AlreadyStoredError(str(row[0]), number)
    if ledger.charge_for(survey_hash, number) is not None:
        raise IntegrityError(
            f"the ledger holds a charge for round {number}, but the submission it paid for is gone",
            not_done="nothing was charged or drawn",
            next_step="put the newest copy of the agent's store back",
        )
