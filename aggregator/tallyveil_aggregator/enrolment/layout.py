"""The folder of a small CA: which files it holds, for whom, and which of them must stay secret.

Not here: what is in a certificate (`tallyveil_aggregator.enrolment.authority`) and how a file is written
(`tallyveil_aggregator.enrolment.files`). Planning makes keys and certificates in memory and reads the CA's own files;
only `write` changes anything, so that a refusal leaves the folder as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tallyveil.errors import ConfigurationError
from tallyveil.identity import CertificateFacts, Identity, Role, describe_certificate
from tallyveil.signing import SigningKey
from tallyveil_aggregator.enrolment import files
from tallyveil_aggregator.enrolment.authority import (
    Authority,
    certificate_to_pem,
    create_authority,
    generate_key,
    issue_client,
    issue_server,
    key_to_pem,
)

_PUBLIC = "public"
_OFFLINE = "secret, offline"
_ON_AGGREGATOR = "secret, on the aggregator"


@dataclass(frozen=True)
class PlannedFile:
    """One file to write, and what its reader must know about it.

    Args:
        path: Where it goes.
        content: Its bytes.
        purpose: What it is for, in a few words.
        keep: Whether it is secret and where it belongs, in a few words.
    """

    path: Path
    content: bytes = field(repr=False)
    purpose: str
    keep: str = _PUBLIC

    @property
    def is_secret(self) -> bool:
        return self.keep != _PUBLIC


@dataclass(frozen=True)
class Issued:
    """One certificate with the files that go with it.

    Args:
        facts: What the certificate states.
        files: In the order in which they are written: keys before what is public.
    """

    facts: CertificateFacts
    files: tuple[PlannedFile, ...]


def plan_root(folder: Path, now: datetime, days: int) -> tuple[Issued, dict[str, str]]:
    """A new CA and new signing keys.

    Returns:
        The root with all the files, and the fingerprints that people compare, by file name.

    Raises:
        ConfigurationError: `days` is out of range.
    """
    root, survey_authority, release = create_authority(now, days), SigningKey.generate(), SigningKey.generate()
    pem = certificate_to_pem(root.certificate)
    facts = describe_certificate(pem)
    made = (
        PlannedFile(folder / "ca.key", key_to_pem(root.key), "signs certificates", _OFFLINE),
        PlannedFile(folder / "authority.key", survey_authority.to_pem(), "signs surveys", _OFFLINE),
        PlannedFile(folder / "release.key", release.to_pem(), "signs releases", _ON_AGGREGATOR),
        PlannedFile(folder / "ca.pem", pem, "the root: each side checks the other's certificate with it"),
        PlannedFile(folder / "authority.pub", survey_authority.public.to_pem(), "agents pin it: verifies surveys"),
        PlannedFile(folder / "release.pub", release.public.to_pem(), "consumers pin it: verifies releases"),
    )
    fingerprints = {
        "ca.pem": facts.fingerprint,
        "authority.pub": survey_authority.public.fingerprint,
        "release.pub": release.public.fingerprint,
    }
    return Issued(facts, made), fingerprints


def plan_server(folder: Path, names: Sequence[str], now: datetime, days: int) -> Issued:
    """A certificate for the aggregator, under the CA in `folder`.

    Raises:
        ConfigurationError: There is no usable CA, or `issue_server` refuses.
    """
    key = generate_key()
    pem = certificate_to_pem(issue_server(_authority(folder), key.public_key(), names, now, days))
    made = (
        PlannedFile(folder / "server.key", key_to_pem(key), "proves that the server is who it says", _ON_AGGREGATOR),
        PlannedFile(folder / "server.pem", pem, "the aggregator shows it to every client"),
    )
    return Issued(describe_certificate(pem), made)


def plan_clients(folder: Path, role: Role, names: Sequence[str], now: datetime, days: int) -> list[Issued]:
    """One certificate for each name, in a folder of its own, with what the holder pins.

    Raises:
        ConfigurationError: A name breaks the rule or comes twice, there is no usable CA, or `issue_client` refuses.
    """
    identities = [Identity(role, name) for name in names]
    if len(set(identities)) < len(identities):
        raise ConfigurationError(
            "a name is given twice", not_done="nothing was written", next_step=f"name each {role} once"
        )
    root, pinned = _authority(folder), _pinned(folder, role)
    return [_client(folder, root, identity, pinned, now, days) for identity in identities]


def write(planned: Iterable[PlannedFile], *, replace: bool) -> None:
    """Write the files, and make the folders they need.

    Raises:
        ConfigurationError: One is there already and `replace` is false, or it cannot be written.
    """
    for file in planned:
        files.make_folder(file.path.parent)
        files.write_file(file.path, file.content, secret=file.is_secret, replace=replace)


def _client(
    folder: Path,
    root: Authority,
    identity: Identity,
    pinned: Sequence[tuple[str, bytes, str]],
    now: datetime,
    days: int,
) -> Issued:
    key = generate_key()
    pem = certificate_to_pem(issue_client(root, key.public_key(), identity, now, days))
    place = folder / f"{identity.role}s" / identity.name
    made = (
        PlannedFile(
            place / "private.key",
            key_to_pem(key),
            f"proves to be the {identity.role}",
            f"secret, with the {identity.role}",
        ),
        PlannedFile(place / "certificate.pem", pem, "says who connects: shown to the aggregator"),
        *(PlannedFile(place / name, content, purpose) for name, content, purpose in pinned),
    )
    return Issued(describe_certificate(pem), made)


def _pinned(folder: Path, role: Role) -> list[tuple[str, bytes, str]]:
    """What every holder of the role pins: name, content and purpose."""
    purposes = {"ca.pem": "checks that the server is the aggregator"}
    match role:
        case Role.DEPARTMENT:
            purposes["authority.pub"] = "verifies surveys, whoever served them"
        case Role.CONSUMER:
            purposes["release.pub"] = "verifies releases, whoever served them"
        case Role.OPERATOR:
            pass
    return [(name, _read(folder, name), purpose) for name, purpose in purposes.items()]


def _authority(folder: Path) -> Authority:
    return Authority.from_pem(_read(folder, "ca.pem"), _read(folder, "ca.key"))


def _read(folder: Path, name: str) -> bytes:
    return files.read_file(folder / name, f"make the CA first: tallyveil pki init {folder}")
