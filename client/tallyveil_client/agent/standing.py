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
from tallyveil.refusal import Refusal
from tallyveil.survey import Round
from tallyveil_client.agent.department import Department
from tallyveil_client.agent.ledger import Ledger, remaining
from tallyveil_client.agent.outlook import Outlook, outlook
from tallyveil_client.agent.policy import Account
from tallyveil_client.agent.selection import Approved
from tallyveil_client.agent.store import Submission


class RoundState(StrEnum):
    """Where a department stands in one round."""

    COMPLETE = "complete"
    STORED = "stored, not complete"
    REFUSED = "stored, refused"
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
            case RoundState.REFUSED:
                return f"ask the aggregator's operator; once that is settled, {run}: it charges nothing"
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
        state = item.state.value + (f": {_refusal_text(stored.refusal)}" if stored and stored.refusal else "")
        rows.append((item.item.label, item.window.number, state, outbox, moment_text(item.window.closes)))
    if rows:
        print_table(("survey", "round", "state", "outbox", "closes"), rows, right=("round",))
    else:
        print("No survey is approved here. Next: tallyveil agent approve FILE")
    if any(item.state is RoundState.OPEN for item in rounds):
        print(
            "Open by the survey and this machine's clock; the aggregator was not asked, and may have closed it early."
        )
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
                "overspent": _overspent(ledger, account) / NANO,
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
            {
                "survey": item.item.label,
                "round": item.ahead[0].number,
                "account": item.cost.account.name,
                "charge": item.cost.charged / NANO,
                "possible": item.next_is_payable,
            }
            for item in _outlooks(department, now)
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
    for account in department.policy.accounts:
        if over := _overspent(ledger, account):
            print(
                f"OVERSPENT: account '{account.name}' has spent {epsilon_text(over)} more than the policy's total of "
                f"{epsilon_text(account.total_epsilon)}, which was larger when it was charged. Nothing more can be "
                "charged to it."
            )
    entries = [
        (n, c.at, c.account, c.survey, c.round, epsilon_text(c.epsilon), c.max_rows_per_person, epsilon_text(c.charged))
        for n, c in enumerate(ledger.charges, 1)
    ]
    headers = ("entry", "at", "account", "survey", "round", "epsilon", "rows", "charged")
    if entries:
        print_table(headers, entries, right=("entry", "round", "epsilon", "rows", "charged"))
    else:
        print("Nothing was charged yet.")
    for ahead in _outlooks(department, now):
        charge = f"{epsilon_text(ahead.cost.charged)} to account '{ahead.cost.account.name}'"
        if ahead.next_is_payable:
            print(f"The next round of {ahead.item.label} would charge {charge}.")
        else:
            has = epsilon_text(ahead.cost.left)
            print(f"The next round of {ahead.item.label} is not possible: it would charge {charge}, with {has} left.")
    print(f"The chain of {ledger.head.seq} entries holds; its last hash is {ledger.head.hash}.")


def _outlooks(department: Department, now: datetime) -> list[Outlook]:
    """Of each approved survey with a round to come whose attribute the policy knows."""
    found = list[Outlook]()
    for item in department.approved():
        try:
            cost = department.cost(item, department.limits(item.survey, None))
        except TallyveilError:
            continue
        ahead = outlook(department, item, cost, now)
        if ahead.ahead:
            found.append(ahead)
    return found


def _overspent(ledger: Ledger, account: Account) -> int:
    """Nano-epsilon spent beyond a total that was lowered afterwards."""
    return max(ledger.spent(account.name) - account.total_epsilon, 0)


def _refusal_text(code: str) -> str:
    """The aggregator's last refusal; a code that this version does not know stands alone."""
    known = next((item for item in Refusal if item == code), None)
    return f"{code} ({known.sentence})" if known else code


def _is_final(code: str) -> bool:
    return code != "" and not any(item == code and item.retryable for item in Refusal)


def _state(window: Round, submission: Submission | None, now: datetime) -> RoundState:
    if submission is not None:
        if submission.complete:
            return RoundState.COMPLETE
        return RoundState.REFUSED if _is_final(submission.refusal) else RoundState.STORED
    if now < window.opens:
        return RoundState.LATER
    return RoundState.OPEN if now < window.closes else RoundState.MISSED
