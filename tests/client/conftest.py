# pyright: standard
"""Fixtures of the client's tests."""

from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from aggregator_stand_in import serving
from certificates import TestAuthority
from consumer_scene import Scene, release_of
from postgres import postgres_database, postgres_execute, postgres_url
from tallyveil.release import sign_release
from tallyveil.signing import SigningKey

# How long an example takes depends on who else uses the machine.
settings.register_profile("tallyveil", deadline=None)
settings.load_profile("tallyveil")

__all__ = ["postgres_database", "postgres_execute", "postgres_url"]


@pytest.fixture
def scene(tmp_path: Path) -> Generator[Scene]:
    """A consumer's folder, and a server with one good release."""
    ca, key = TestAuthority(), SigningKey.generate()
    folder = ca.client("tallyveil:consumer:newsroom").save(tmp_path / "newsroom")
    (folder / "release.pub").write_bytes(key.public.to_pem())
    with serving(ca.server()) as stand_in:
        stand_in.document = sign_release(release_of(), key)
        yield Scene(stand_in, folder, key)
