"""Registered departments and their standing.

Not here: what a standing permits (`tallyveil_aggregator.intake`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from tallyveil.moments import moment_text
from tallyveil_aggregator.intake import DepartmentState
from tallyveil_aggregator.store.schema import departments


@dataclass(frozen=True)
class Department:
    """One registered department; `added_at` is a moment's text."""

    name: str
    state: DepartmentState
    added_at: str


class Departments:
    """The departments, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def state(self, name: str) -> DepartmentState | None:
        """The standing, or None for a name that is not registered."""
        found = self._connection.execute(select(departments.c.state).where(departments.c.name == name)).scalar()
        return None if found is None else DepartmentState(found)

    def add(self, name: str, now: datetime) -> bool:
        """Register a department as active; False where it is registered already, whatever its standing."""
        if self.state(name) is not None:
            return False
        row = {"name": name, "state": DepartmentState.ACTIVE.value, "added_at": moment_text(now)}
        self._connection.execute(insert(departments).values(row))
        return True

    def set_state(self, name: str, state: DepartmentState) -> None:
        """Change the standing of a registered department."""
        self._connection.execute(update(departments).where(departments.c.name == name).values(state=state.value))

    def all(self) -> tuple[Department, ...]:
        """Every department, by name."""
        rows = self._connection.execute(
            select(departments.c.name, departments.c.state, departments.c.added_at).order_by(departments.c.name)
        )
        return tuple(Department(name, DepartmentState(state), added_at) for name, state, added_at in rows)
