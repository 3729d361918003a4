"""What is still to come of a survey here: its next round, and whether the account pays for it.

Not here: what was done in earlier rounds (`standing`). No IO besides the store, and the moment is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tallyveil.epsilon import epsilon_text
from tallyveil.moments import moment_text
from tallyveil.survey import Round
from tallyveil_client.agent.costs import Cost
from tallyveil_client.agent.department import Department
from tallyveil_client.agent.ledger import require_left
from tallyveil_client.agent.selection import Approved, require_open


@dataclass(frozen=True)
class Outlook:
    """The rounds of one survey that could still be charged here.

    Args:
        item: The survey.
        cost: Of one round.
        ahead: Its rounds that are neither over nor charged, in order.
        charged: Numbers of those that are charged and stored.
    """

    item: Approved
    cost: Cost
    ahead: tuple[Round, ...]
    charged: frozenset[int]

    @property
    def next_is_payable(self) -> bool:
        """Whether there is a next round and the account has enough left for it."""
        return bool(self.ahead) and self.cost.charged <= self.cost.left

    def require_next(self, now: datetime) -> None:
        """Stop where a run would be refused: every round is over, or the account cannot pay for the next.

        Raises:
            RefusedError: No round is to come and none was charged.
            PolicyError: The account has not enough left.
        """
        if self.ahead:
            account = self.cost.account
            require_left(account.name, account.total_epsilon, self.cost.left, self.cost.charged)
        elif not self.charged:
            require_open(self.item.survey, self.item.survey.rounds[-1], now)

    def warnings(self, now: datetime) -> tuple[str, ...]:
        """What an operator who consents to the survey must know of its rounds, a sentence each."""
        cost, label = self.cost, self.item.label
        if not self.ahead:
            last = self.item.survey.rounds[-1].closes
            over = f"its last round closed on {moment_text(last)}" if now >= last else "every round of it is charged"
            return (f"no round of {label} is to come: {over}.",)
        has = f"account '{cost.account.name}' has {epsilon_text(cost.left)} of "
        has += f"{epsilon_text(cost.account.total_epsilon)} left, and a round charges {epsilon_text(cost.charged)}."
        if not self.next_is_payable:
            return (f"the next round of {label} cannot be charged: {has}",)
        if (payable := cost.left // cost.charged) < len(self.ahead):
            return (f"only {payable} of the {len(self.ahead)} rounds to come of {label} can be charged: {has}",)
        return ()


def outlook(department: Department, item: Approved, cost: Cost, now: datetime) -> Outlook:
    """What is still to come of a survey, approved or about to be."""
    survey = item.survey
    stored = (s.key for s in department.store.submissions())
    charged = frozenset(key.round for key in stored if key.survey_hash == survey.hash)
    ahead = tuple(r for r in survey.rounds if r.number not in charged and now < r.closes and now <= survey.expires)
    return Outlook(item, cost, ahead, charged)
