"""Fixtures of the client's tests."""

from hypothesis import settings

from postgres import postgres_database, postgres_execute, postgres_url

# How long an example takes depends on who else uses the machine.
settings.register_profile("tallyveil", deadline=None)
settings.load_profile("tallyveil")

__all__ = ["postgres_database", "postgres_execute", "postgres_url"]
