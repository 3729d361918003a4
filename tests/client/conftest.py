"""Fixtures of the client's tests."""

from postgres import postgres_database, postgres_execute, postgres_url

__all__ = ["postgres_database", "postgres_execute", "postgres_url"]
