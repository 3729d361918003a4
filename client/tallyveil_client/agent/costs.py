"""What one round costs, as a value, for machines and for people.

Not here: the charge itself (`ledger`, `store`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.canonical import Json
from tallyveil.epsilon import NANO, epsilon_text
from tallyveil_client.agent.policy import Account


@dataclass(frozen=True)
class Cost:
    """What one round takes from its account.

    Args:
        account: Which.
        charged: Nano-epsilon for one round.
        left: Nano-epsilon left now.
    """

    account: Account
    charged: int
    left: int


def cost_json(cost: Cost) -> Json:
    """Of one round, in nats."""
    return {
        "account": cost.account.name,
        "max_rows_per_person": cost.account.max_rows_per_person,
        "charge": cost.charged / NANO,
        "left": cost.left / NANO,
        "total": cost.account.total_epsilon / NANO,
    }


def cost_text(cost: Cost) -> str:
    """Of one round, as a sentence."""
    rows = cost.account.max_rows_per_person
    each = "" if rows == 1 else f" (epsilon × {rows} rows a person)"
    return (
        f"A round charges {epsilon_text(cost.charged)}{each} to account '{cost.account.name}', "
        f"which has {epsilon_text(cost.left)} of {epsilon_text(cost.account.total_epsilon)} left."
    )
