"""The aggregator's configuration file: TOML, unknown keys refused, paths relative to the file.

Not here: what the files it names hold (`tallyveil_aggregator.keys`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tallyveil.errors import ConfigurationError
from tallyveil.fields import Fields

MAX_STREAMS = 1_024
PERMITTED_PING_INTERVAL_S = 5
"""Agents may ping this often, calls or none, before the connection is closed on them."""

_MAX_PORT = 65_535
_PORT_DIGITS = 5

_REQUIRED = object()
_COMPARE = "compare it with the sample in deploy/"
_PLACE = re.compile(r"\(at (line \d+, column \d+|end of document)\)$")
_SECTIONS: Mapping[str, Mapping[str, object]] = {
    "server": {
        "listen": "0.0.0.0:7443",
        "certificate": _REQUIRED,
        "private_key": _REQUIRED,
        "client_ca": _REQUIRED,
        "server_ca": "",
        "max_streams": 64,
        "keepalive_s": 30,
    },
    "store": {"path": "aggregator.sqlite"},
    "authority": {"public_key": "authority.pub"},
    "release": {"private_key": "release.key"},
}


@dataclass(frozen=True)
class Server:
    """How clients reach the aggregator.

    Args:
        listen: ``host:port``; port 0 lets the operating system choose one.
        certificate: PEM file of the server's certificate, its chain after it.
        private_key: PEM file of its key.
        client_ca: PEM file of the CA that signs clients' certificates.
        server_ca: PEM file of the CA that clients trust for the server's own certificate: `client_ca` unless another
            is named.
        max_streams: Uploads at the same time; each holds a thread.
        keepalive_s: How often a silent connection is probed.
    """

    listen: str
    certificate: Path
    private_key: Path
    client_ca: Path
    server_ca: Path
    max_streams: int
    keepalive_s: int


@dataclass(frozen=True)
class AggregatorConfig:
    """The whole file; paths are absolute.

    Args:
        server: See `Server`.
        store: The SQLite file.
        authority_key: PEM file of the survey authority's public key.
        release_key: PEM file of the key that signs releases.
    """

    server: Server
    store: Path
    authority_key: Path
    release_key: Path


def load_config(path: Path) -> AggregatorConfig:
    """Read and check a configuration file.

    Raises:
        ConfigurationError: It cannot be read, or a key is missing, unknown, ill-typed or out of range.
    """
    try:
        document: dict[str, object] = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise _wrong(path, "there is no such file", "name another with --config, or write it: see deploy/") from None
    except OSError as error:
        raise _wrong(path, error.strerror or type(error).__name__, "check the path and its permissions") from None
    except ValueError as error:  # bad UTF-8, or bad TOML; the rest of tomllib's message would quote the file
        place = _PLACE.search(str(error))
        where = f": there is a fault at {place[1]}" if place else ""
        raise _wrong(path, f"it is not TOML in UTF-8{where}", _COMPARE) from None
    try:
        return _from_document(path, document)
    except ConfigurationError as error:
        if error.not_done:
            raise
        raise _wrong(path, error.what, _COMPARE) from None


def _from_document(path: Path, document: dict[str, object]) -> AggregatorConfig:
    if unknown := document.keys() - _SECTIONS.keys():
        raise _wrong(path, f"unknown key: {', '.join(sorted(unknown))}", "remove it, or correct its spelling")
    sections = {name: _section(path, name, document.get(name, {})) for name in _SECTIONS}
    folder = path.absolute().parent
    server = sections["server"]
    return AggregatorConfig(
        Server(
            _listen(path, server.text("listen")),
            _file(path, folder, "certificate", server.text("certificate")),
            _file(path, folder, "private_key", server.text("private_key")),
            _file(path, folder, "client_ca", server.text("client_ca")),
            _file(path, folder, "server_ca", server.text("server_ca") or server.text("client_ca")),
            _between(path, "max_streams", server.integer("max_streams"), 1, MAX_STREAMS),
            _between(path, "keepalive_s", server.integer("keepalive_s"), PERMITTED_PING_INTERVAL_S, 3_600),
        ),
        _file(path, folder, "path", sections["store"].text("path")),
        _file(path, folder, "public_key", sections["authority"].text("public_key")),
        _file(path, folder, "private_key", sections["release"].text("private_key")),
    )


def _section(path: Path, name: str, material: object) -> Fields:
    if not isinstance(material, dict):
        raise _wrong(path, f"[{name}] is not a section", _COMPARE)
    given, known = cast(dict[str, object], material), _SECTIONS[name]
    if unknown := given.keys() - known.keys():
        raise _wrong(
            path, f"unknown key in [{name}]: {', '.join(sorted(unknown))}", "remove it, or correct its spelling"
        )
    merged = {**known, **given}
    if missing := [key for key, value in merged.items() if value is _REQUIRED]:
        raise _wrong(path, f"[{name}] has no {', '.join(missing)}", "add it; see the sample in deploy/")
    return Fields(merged, f"[{name}]", known)


def _listen(path: Path, address: str) -> str:
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal()):
        raise _wrong(path, "listen is not HOST:PORT", "write for example 0.0.0.0:7443 or [::]:7443")
    if len(port) > _PORT_DIGITS or int(port) > _MAX_PORT:
        raise _wrong(path, f"the port of listen is not between 0 and {_MAX_PORT}", "choose a port in that range")
    return address


def _file(path: Path, folder: Path, key: str, name: str) -> Path:
    if not name or "\0" in name:
        raise _wrong(path, f"{key} names no file", "write a path, absolute or relative to this file")
    return folder / name


def _between(path: Path, key: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise _wrong(path, f"{key} is not between {low} and {high}", "choose a number in that range")
    return value


def _wrong(path: Path, what: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(
        f"the configuration {path} cannot be used: {what}", not_done="nothing was started", next_step=next_step
    )
