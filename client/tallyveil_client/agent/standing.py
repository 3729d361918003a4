"""Where every approved survey and its rounds stand, what is left in the accounts, and what to do next.

Not here: doing it. No IO besides the store, and the moment is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tallyveil.canonical import Json
from tallyveil.cli.console import print_table
from tallyveil.epsilon import NANO, epsilon_text
from tallyveil.errors import TallyveilError
from tallyveil.moments import moment_text
from tallyveil.survey import Round
from tallyveil_client.agent.department import Department
from tallyveil_client.agent.ledger import remaining
from tallyveil_client.agent.selection import Approved
from tallyveil_client.agent.store import Submission


class RoundState(StrEnum):
    """Where a department stands in one round."""

    COMPLETE = "complete"
    STORED = "stored, not complete"
    OPEN = "open"
    LATER = "not open yet"
    MISSED = "closed without us"


@dataclass(frozen=True)
class RoundStanding:
    """One round of one approved survey."""

    item: Approved
    window: Round
    state: RoundState
    submission: Submission | None

    @property
    def next_step(self) -> str:
        """What to do about it, or nothing."""
        run = f"tallyveil agent run {self.item.label} --round {self.window.number}"
        match self.state:
            case RoundState.OPEN:
                return f"tallyveil agent check {self.item.label}, then {run}"
            case RoundState.STORED:
                return f"{run}: sends the stored batches, charges nothing"
            case RoundState.LATER:
                return f"wait until {moment_text(self.window.opens)}"
            case _:
                return ""

    def to_json(self) -> Json:
        """For machines."""
        stored = self.submission
        return {
            "survey": self.item.label,
            "survey_hash": self.item.survey.hash,
            "epsilon": self.item.epsilon / NANO,
            "approved_at": self.item.at,
            "round": self.window.number,
            "opens": moment_text(self.window.opens),
            "closes": moment_text(self.window.closes),
            "state": self.state.value,
            "records": stored.records if stored else None,
            "batches": stored.batches if stored else None,
            "acknowledged": stored.acknowledged if stored else None,
            "last_refusal": (stored.refusal or None) if stored else None,
            "next": self.next_step,
        }


def standings(department: Department, now: datetime) -> list[RoundStanding]:
    """Every round of every approved survey."""
    stored = {(s.key.survey_hash, s.key.round): s for s in department.store.submissions()}
    found = list[RoundStanding]()
    for item in department.approved():
        for window in item.survey.rounds:
            submission = stored.get((item.survey.hash, window.number))
            found.append(RoundStanding(item, window, _state(window, submission, now), submission))
    return found


def show_standings(rounds: list[RoundStanding], unverified: tuple[str, ...]) -> None:
    """For people."""
    rows: list[tuple[object, ...]] = []
    for item in rounds:
        stored = item.submission
        outbox = f"{stored.acknowledged} of {stored.batches} batches held" if stored else ""
        refusal = f"; last refusal: {stored.refusal}" if stored and stored.refusal else ""
        state = f"{item.state.value}{refusal}"
        rows.append((item.item.label, item.window.number, state, outbox, moment_text(item.window.closes)))
    if rows:
        print_table(("survey", "round", "state", "outbox", "closes"), rows, right=("round",))
    else:
        print("No survey is approved here. Next: tallyveil agent approve FILE")
    for survey_hash in unverified:
        print(f"Approved before, but no longer signed by the pinned authority: {survey_hash}. Approve it anew.")
    for item in rounds:
        if item.next_step:
            print(f"Next for {item.item.label}, round {item.window.number}: {item.next_step}")


def ledger_json(department: Department, now: datetime) -> Json:
    """Entries and accounts, for machines."""
    ledger = department.store.ledger()
    return {
        "accounts": [
            {
                "account": account.name,
                "person": account.person,
                "max_rows_per_person": account.max_rows_per_person,
                "total": account.total_epsilon / NANO,
                "spent": ledger.spent(account.name) / NANO,
                "left": remaining(account.total_epsilon, ledger.spent(account.name)) / NANO,
            }
            for account in department.policy.accounts
        ],
        "entries": [
            {
                "seq": seq,
                "at": charge.at,
                "account": charge.account,
                "kind": charge.kind,
                "survey": charge.survey,
                "survey_hash": charge.survey_hash,
                "round": charge.round,
                "epsilon": charge.epsilon / NANO,
                "max_rows_per_person": charge.max_rows_per_person,
                "charged": charge.charged / NANO,
                "charged_nano": charge.charged,
            }
            for seq, charge in enumerate(ledger.charges, 1)
        ],
        "next_round": [
            {"survey": label, "account": account, "charge": charged / NANO}
            for label, account, charged in _next_charges(department, now)
        ],
        "head": {"seq": ledger.head.seq, "hash": ledger.head.hash},
    }


def show_ledger(department: Department, now: datetime) -> None:
    """Entries and accounts, for people."""
    ledger = department.store.ledger()
    accounts: list[tuple[object, ...]] = []
    for account in department.policy.accounts:
        spent = ledger.spent(account.name)
        left = remaining(account.total_epsilon, spent)
        accounts.append((account.name, account.person, *map(epsilon_text, (account.total_epsilon, spent, left))))
    print_table(("account", "person", "total", "spent", "left"), accounts, right=("total", "spent", "left"))
    entries = [
        (n, c.at, c.account, c.survey, c.round, epsilon_text(c.epsilon), c.max_rows_per_person, epsilon_text(c.charged))
        for n, c in enumerate(ledger.charges, 1)
    ]
    headers = ("entry", "at", "account", "survey", "round", "epsilon", "rows", "charged")
    if entries:
        print_table(headers, entries, right=("entry", "round", "epsilon", "rows", "charged"))
    else:
        print("Nothing was charged yet.")
    for label, name, charged in _next_charges(department, now):
        print(f"The next round of {label} would charge {epsilon_text(charged)} to account '{name}'.")
    print(f"The chain of {ledger.head.seq} entries holds; its last hash is {ledger.head.hash}.")


def _next_charges(department: Department, now: datetime) -> list[tuple[str, str, int]]:
    """For each approved survey with rounds to come that the policy allows: name, account and nano-epsilon a round."""
    ahead = {
        standing.item.survey.hash: standing.item
        for standing in standings(department, now)
        if standing.state in (RoundState.OPEN, RoundState.LATER)
    }
    found = list[tuple[str, str, int]]()
    for item in ahead.values():
        try:
            cost = department.cost(item, department.limits(item.survey, None))
        except TallyveilError:
            continue
        found.append((item.label, cost.account.name, cost.charged))
    return found


def _state(window: Round, submission: Submission | None, now: datetime) -> RoundState:
    if submission is not None:
        return RoundState.COMPLETE if submission.complete else RoundState.STORED
    if now < window.opens:
        return RoundState.LATER
    return RoundState.OPEN if now < window.closes else RoundState.MISSED
