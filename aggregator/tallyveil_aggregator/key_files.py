"""All key and certificate files of a configuration together: what is wrong with them, alone and beside each other.

Not here: the single checks (`tallyveil_aggregator.keys`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from tallyveil.errors import ConfigurationError
from tallyveil_aggregator import keys
from tallyveil_aggregator.config import AggregatorConfig

_Found = TypeVar("_Found")


def find_key_problems(config: AggregatorConfig, now: datetime) -> dict[str, ConfigurationError]:
    """What is wrong, by name; empty where the server can work with what is there.

    Args:
        config: Which files.
        now: The present moment, aware.
    """
    problems: dict[str, ConfigurationError] = {}

    def attempt(name: str, step: Callable[[], _Found]) -> _Found | None:
        try:
            return step()
        except ConfigurationError as error:
            problems[name] = error
            return None

    server = config.server
    pair = attempt("certificate", lambda: keys.read_server_files(server.certificate, server.private_key, now))
    trusted = attempt("client-ca", lambda: keys.read_ca(server.client_ca, "the clients' CA certificate"))
    vouching = "client-ca"
    if server.server_ca != server.client_ca:
        vouching = "server-ca"
        trusted = attempt(vouching, lambda: keys.read_ca(server.server_ca, "the CA certificate of the server"))
    if pair and trusted:
        attempt(vouching, lambda: keys.check_server_issuer(pair[0], trusted, server.server_ca, now))
    authority = attempt("authority-key", lambda: keys.read_authority(config.authority_key))
    release = attempt("release-key", lambda: keys.read_release_key(config.release_key))
    if authority and release:
        attempt("release-key", lambda: keys.check_release_key(release, authority))
    return problems


def check_key_files(config: AggregatorConfig, now: datetime) -> None:
    """Check every file, and name all that is wrong at once.

    Raises:
        ConfigurationError: Something is.
    """
    if problems := find_key_problems(config, now).values():
        raise ConfigurationError(
            "; ".join(error.what for error in problems),
            not_done="nothing was made or started",
            next_step="; ".join(dict.fromkeys(error.next_step for error in problems)),
        )
