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
)

if TYPE_CHECKING:
    from tallyveil_client.agent.department import Department
    from tallyveil_client.agent.run import Aids


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
        outcome = run_round(department, item, window, source, _aids(department))
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


def _aids(department: Department) -> Aids:
    """The real clock, coins, source and aggregator."""
    import time

    from tallyveil.batch import SubmissionKey
    from tallyveil.cli.console import plain, progress
    from tallyveil.randomness import jitter, public_token
    from tallyveil_client.agent.run import Aids
    from tallyveil_client.agent.upload import Courier, Surroundings, endpoint_of, require_usable

    endpoint, store = endpoint_of(department.config.aggregator), department.store
    surroundings = Surroundings(time.sleep, jitter, lambda line: print(plain(line), file=sys.stderr, flush=True))

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
