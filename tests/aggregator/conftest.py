"""Fixtures of the aggregator's tests."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from aggregator_world import Pki, World
from tallyveil.cli import dispatch, logs

Run = Callable[..., Any]


@pytest.fixture(scope="session")
def pki() -> Pki:
    """One CA for all tests of a process."""
    return Pki()


@pytest.fixture
def world(tmp_path: Path, pki: Pki) -> World:
    """A folder with configuration, keys and certificates; no store yet."""
    return World(tmp_path, pki)


@pytest.fixture
def log() -> Generator[io.StringIO]:
    """What is logged during the test, as JSON lines."""
    root, ours = logging.getLogger(), logging.getLogger("tallyveil")
    before = root.handlers[:], root.level, ours.level
    text = io.StringIO()
    logs.configure("DEBUG", text)
    yield text
    root.handlers[:], level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)


@pytest.fixture
def fails(world: World, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must fail; its exit code and error."""

    def go(*arguments: str) -> tuple[int, dict[str, str]]:
        code = dispatch.run(["aggregator", *arguments, "--config", str(world.config_file), "--json"])
        return code, json.loads(capsys.readouterr().out)["error"]

    return go


@pytest.fixture
def run(world: World, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must succeed; its JSON."""

    def go(*arguments: str) -> Any:
        code = dispatch.run(["aggregator", *arguments, "--config", str(world.config_file), "--json"])
        out = capsys.readouterr().out
        assert code == 0, out
        return json.loads(out)

    return go


@pytest.fixture
def shown(world: World, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must succeed; what a person sees."""

    def go(*arguments: str) -> str:
        assert dispatch.run(["aggregator", *arguments, "--config", str(world.config_file)]) == 0
        return capsys.readouterr().out

    return go
