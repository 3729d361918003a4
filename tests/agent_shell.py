"""Typing the agent's commands in a department's folder, for tests.

Not here: any test.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_world import Home
from tallyveil.cli import dispatch


class Shell:
    """Types commands in a department's folder."""

    def __init__(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        self._capsys.readouterr()
        code = dispatch.run(["agent", *arguments, "--config", str(self.home.config)])
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The one JSON document on standard output."""
        found, out, err = self(*arguments, "--json")
        assert (found, err) == (code, ""), (out, err)
        return json.loads(out)

    def approve(self) -> None:
        assert self("approve", str(self.home.survey_file), "--yes")[0] == 0

    def nothing_happened(self) -> bool:
        ledger = self.json("ledger")
        return ledger["entries"] == [] and all(item["batches"] is None for item in self.json("status")["rounds"])
