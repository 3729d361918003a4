"""The policy's TOML file.

Not here: what its limits mean (`policy`). The file is local; nothing the aggregator sends changes it.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

from tallyveil.epsilon import NANO, NanoEpsilon, to_nano
from tallyveil.errors import ConfigurationError
from tallyveil.guarantee import KIND_LDP
from tallyveil.survey import LEAST_BIN_VALUES
from tallyveil_client.agent.policy import (
    USUAL_MIN_BIN_VALUES,
    USUAL_MIN_CLEAR_CELL,
    Account,
    Collection,
    Policy,
)
from tallyveil_client.agent.toml import Table, read_toml

_MAX_TOTAL = Decimal(10_000)


def load_policy(path: Path) -> Policy:
    """Read the policy file.

    Raises:
        ConfigurationError: It is missing, not TOML, holds an unknown key or a wrong value, or contradicts itself.
    """
    root = read_toml(path, "policy")
    accounts, collections = root.tables("accounts"), root.tables("collections")
    policy = Policy(tuple(map(_account, accounts)), tuple(map(_collection, collections)))
    for table in (root, *accounts, *collections):
        table.finish()
    return policy


def _account(table: Table) -> Account:
    total = table.number("total_epsilon")
    if not 0 < total <= _MAX_TOTAL:
        raise table.fault("total_epsilon", f"must be above 0 and at most {_MAX_TOTAL}")
    return Account(
        name=table.text("name"),
        person=table.text("person"),
        max_rows_per_person=table.integer("max_rows_per_person", low=1, high=1_000_000),
        total_epsilon=NanoEpsilon(int((total * NANO).to_integral_value(ROUND_FLOOR))),
    )


def _collection(table: Table) -> Collection:
    try:
        max_epsilon = to_nano(table.number("max_epsilon"))
    except ConfigurationError as error:
        raise table.fault("max_epsilon", f"is wrong: {error.what}") from None
    return Collection(
        source=table.text("source"),
        attribute=table.text("attribute"),
        account=table.text("account"),
        max_epsilon=max_epsilon,
        guarantees=table.texts("guarantees", (KIND_LDP,)),
        min_bin_values=table.integer("min_bin_values", USUAL_MIN_BIN_VALUES, low=LEAST_BIN_VALUES),
        min_clear_cell=table.integer("min_clear_cell", USUAL_MIN_CLEAR_CELL, low=1),
        min_clear_cell_reason=table.raw_text("min_clear_cell_reason", ""),
        dimensions=table.texts("dimensions", ()),
        max_rounds=table.integer("max_rounds", 1, low=1),
        allow_overlap=table.optional_text("allow_overlap") or "",
    )
