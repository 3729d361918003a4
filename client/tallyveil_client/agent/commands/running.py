"""`tallyveil agent run`: one round, with the real clock, coins, source and aggregator.

Not here: its steps (`tallyveil_client.agent.run`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tallyveil_client.agent.commands.options import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    RoundNumber,
    Source,
    Wanted,
    now,
    reading,
    warn_of_exposed,
)

if TYPE_CHECKING:
    from tallyveil_client.agent.department import Department
    from tallyveil_client.agent.run import Aids
    from tallyveil_client.agent.selection import Approved


def run(
    survey: Wanted = None,
    config: Config = DEFAULT_CONFIG,
    number: RoundNumber = None,
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Take part in a round: check, perturb, charge and store, send. Run it again to go on where it ended."""
    from tallyveil.cli import console
    from tallyveil.epsilon import NANO, epsilon_text
    from tallyveil_client.agent.department import open_department
    from tallyveil_client.agent.run import run_round
    from tallyveil_client.agent.selection import round_to_run, select_survey

    with open_department(config) as department:
        item = select_survey(department.approved(), survey)
        stored = [s.key.round for s in department.store.submissions() if s.key.survey_hash == item.survey.hash]
        window = round_to_run(item.survey, now(), number, stored)
        warn_of_exposed(department.config)
        try:
            outcome = run_round(department, item, window, source, _aids(department))
        except KeyboardInterrupt:
            print(_interrupted(department, item, window.number), file=sys.stderr, flush=True)
            raise
        done = outcome.submission
        charge = department.store.ledger().charge_for(item.survey.hash, window.number)
    charged = charge.charged if charge else 0
    if as_json:
        console.print_json(
            {
                "survey": item.label,
                "survey_hash": item.survey.hash,
                "round": window.number,
                "state": "complete",
                "was_complete": outcome.was_complete,
                "resumed": outcome.resumed,
                "records": done.records,
                "batches": done.batches,
                "epsilon": done.key.epsilon / NANO,
                "charged": charged / NANO,
                "completed_at": done.completed_at,
            }
        )
        return
    if outcome.was_complete:
        print(f"Round {window.number} of {item.label} is complete since {done.completed_at}: nothing was done.")
        return
    how = "sent what an earlier run had stored" if outcome.resumed else "checked, perturbed, charged, stored and sent"
    print(f"Round {window.number} of {item.label} is complete: {how}.")
    print(f"{done.records} records in {done.batches} batches, all held by the aggregator.")
    print(f"Charged once: {epsilon_text(charged)}. See tallyveil agent ledger.")


def _interrupted(department: Department, item: Approved, number: int) -> str:
    """What an interrupted run has left behind, and what the next one does."""
    stored = department.store.submission(item.survey.hash, number)
    again = f"tallyveil agent run {item.label} --round {number}"
    round_ = f"Round {number} of {item.label}"
    if stored is None:
        return f"{round_} was not charged, and what was drawn is gone. To take part, from the start: {again}"
    if stored.complete:
        return f"{round_} is charged and complete: there is nothing left to do."
    return (
        f"{round_} is charged and its batches are stored. To go on where this ended, with the same bytes and no second "
        f"charge: {again}"
    )


def _aids(department: Department) -> Aids:
    """The real clock, coins, source and aggregator."""
    import time

    from tallyveil.batch import SubmissionKey
    from tallyveil.cli.console import plain, progress
    from tallyveil.randomness import jitter, public_token
    from tallyveil_client.agent.run import Aids
    from tallyveil_client.agent.upload import Courier, Surroundings, endpoint_of, require_usable

    endpoint, store = endpoint_of(department.config.aggregator), department.store

    def tell(line: str) -> None:
        print(plain(f"{line}; Ctrl-C is safe"), file=sys.stderr, flush=True)

    surroundings = Surroundings(time.sleep, jitter, tell)
    courier = Courier(endpoint, surroundings)

    def ready() -> None:
        require_usable(endpoint, now())

    def ask(key: SubmissionKey) -> bool:
        return bool(courier.announce(key).held)

    def send(key: SubmissionKey) -> None:
        total, done = len(store.outgoing(key.submission_id)), 0
        with progress("sending", total) as advance:

            def show(held: int) -> None:
                nonlocal done
                advance(held - done)
                done = held

            courier.deliver(store, key, show)

    return Aids(now, public_token, None, ready, reading, ask, send)
