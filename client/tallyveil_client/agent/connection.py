"""Whether our own files would do for a connection, and whether others may read the secret ones: looked at, not used.

Not here: connecting (`tallyveil_client.transport`), and what the aggregator thinks of them.
"""

from __future__ import annotations

import stat
from datetime import datetime
from pathlib import Path

from tallyveil.errors import ConfigurationError
from tallyveil.identity import describe_certificate
from tallyveil.moments import moment_text
from tallyveil_client.agent.config import AgentConfig, AggregatorConfig


def connection_problem(config: AggregatorConfig, now: datetime) -> ConfigurationError | None:
    """What a run would stop at before it reads anything: a file, the key, the dates or the role of the certificate."""
    from tallyveil_client.agent.upload import endpoint_of, require_usable

    try:
        require_usable(endpoint_of(config), now)
    except ConfigurationError as error:
        return error
    return None


def certificate_text(config: AggregatorConfig) -> str:
    """Of a certificate without a problem: whom it names and how long."""
    facts = describe_certificate(config.certificate.read_bytes())
    return (
        f"Certificate, key and CA fit: department {facts.identity().name}, until {moment_text(facts.not_after)}. "
        "The aggregator was not asked."
    )


def exposed_secrets(config: AgentConfig) -> tuple[str, ...]:
    """A sentence for each secret file that its group or others may read or write."""
    secrets = [("private key", config.aggregator.private_key)]
    secrets += [("connection URI", s.uri_file) for s in config.sources.values() if s.uri_file is not None]
    return tuple(
        f"the {what} {path} may be read or written by others than its owner: chmod 600 {path}"
        for what, path in secrets
        if _is_exposed(path)
    )


def _is_exposed(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return bool(mode & (stat.S_IRWXG | stat.S_IRWXO))
