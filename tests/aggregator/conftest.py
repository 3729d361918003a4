"""Fixtures of the aggregator's tests."""

from __future__ import annotations

import io
import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from aggregator_world import Pki, World
from tallyveil.cli import logs


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
