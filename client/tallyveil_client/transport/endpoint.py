"""An aggregator's address and the files with which we connect to it.

Not here: connecting.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tallyveil.errors import ConfigurationError
from tallyveil.identity import Role

_ADDRESS_STEP = "write for example stats.example.org:7443, or [::1]:7443"


@dataclass(frozen=True)
class Endpoint:
    """An aggregator, and who we are to it.

    Args:
        address: ``host:port``; an IPv6 address in brackets.
        ca: PEM file of the CA that signed the server's certificate.
        certificate: PEM file of our own certificate.
        private_key: PEM file of its key, unencrypted.
        server_name: The name the server's certificate must hold, where it is not the host dialled.
        timeout_s: Longest wait for one answer.
        role: The role our certificate must state; None where the caller does not mind.

    Raises:
        ConfigurationError: The address or the timeout makes no sense.
    """

    address: str
    ca: Path
    certificate: Path
    private_key: Path
    server_name: str | None = None
    timeout_s: float = 30.0
    role: Role | None = None

    def __post_init__(self) -> None:
        split_address(self.address)
        if not 0 < self.timeout_s <= 86_400:
            raise ConfigurationError(
                "timeout_s is a number of seconds above 0, at most one day", not_done="no connection was tried"
            )

    @property
    def expected_name(self) -> str:
        """What the server's certificate must hold: `server_name`, else the host dialled."""
        return self.server_name or split_address(self.address)[0]


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``host:port``; brackets of an IPv6 address are taken off.

    Raises:
        ConfigurationError: Not of that form.
    """
    host, _, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    is_host = bare != "" and bare.isprintable() and not set(bare) & set(" /[]@") and (":" in bare) == bracketed
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65_536
    if not (is_host and is_port):
        raise ConfigurationError(
            "an address is written HOST:PORT", not_done="no connection was tried", next_step=_ADDRESS_STEP
        )
    return bare, int(port)
