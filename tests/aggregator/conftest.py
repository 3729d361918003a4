"""Fixtures of the aggregator's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator_world import Pki, World


@pytest.fixture(scope="session")
def pki() -> Pki:
    """One CA for all tests of a process."""
    return Pki()


@pytest.fixture
def world(tmp_path: Path, pki: Pki) -> World:
    """A folder with configuration, keys and certificates; no store yet."""
    return World(tmp_path, pki)
