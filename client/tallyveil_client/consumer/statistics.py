"""Statistics as a consumer asks for them: every release that is returned has been verified.

Not here: showing them (`rendering`) and writing them to files (`export`).
"""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tallyveil.canonical import MAX_DOCUMENT_BYTES
from tallyveil.errors import ConfigurationError, PeerError, TallyveilError
from tallyveil.identity import Role
from tallyveil.moments import parse_moment
from tallyveil.release import VerifiedRelease, open_release
from tallyveil.signing import VerifyingKey
from tallyveil.wire.v1 import statistics_pb2 as pb
from tallyveil.wire.v1.statistics_pb2_grpc import StatisticsServiceStub
from tallyveil_client.transport import Channel, Endpoint, calling, connect
from tallyveil_client.transport.credentials import read_file

SURVEY_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_HASH_BYTES = 32
_CREDENTIALS = ("ca.pem", "certificate.pem", "private.key")
_NOT_FETCHED = "nothing was fetched"


@dataclass(frozen=True)
class ReleaseSummary:
    """What the server says about a release: unverified, to choose by.

    Args:
        survey: Name of the survey.
        version: Its version.
        survey_hash: 64 hexadecimal digits.
        round: Number of the round.
        revision: 1, 2, …
        hash: Of the release, 64 hexadecimal digits.
        released_at: UTC.
    """

    survey: str
    version: int
    survey_hash: str
    round: int
    revision: int
    hash: str
    released_at: datetime


class Statistics:
    """Releases of one aggregator, verified against the release key you pinned.

    The connection is made by the first call; use it as a context manager, or `close` it.

    Args:
        address: ``host:port`` of the aggregator.
        credentials: Folder with certificate.pem, private.key and ca.pem, as `tallyveil pki consumer` writes it.
        trusted_key: PEM file of the release key, which verifies whatever the server sends.
        server_name: The name the server's certificate must hold, where it is not the host dialled.
        timeout_s: Longest wait for one answer.

    Raises:
        ConfigurationError: The address makes no sense, the folder is no consumer's, or the key cannot be read.
    """

    def __init__(
        self,
        address: str,
        *,
        credentials: Path | str,
        trusted_key: Path | str,
        server_name: str | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        folder = Path(credentials)
        _require_consumer_folder(folder)
        self._endpoint = Endpoint(
            address,
            folder / "ca.pem",
            folder / "certificate.pem",
            folder / "private.key",
            server_name,
            timeout_s,
            Role.CONSUMER,
        )
        self._trusted = VerifyingKey.from_pem(read_file(Path(trusted_key), "release key"))
        self._channel: Channel | None = None

    def list(self) -> tuple[ReleaseSummary, ...]:
        """What the server says it has released, newest first; unverified, to choose from.

        Raises:
            PeerError: A summary has not the agreed form.
            TallyveilError: The call failed, as `tallyveil_client.transport.translate` says.
        """
        stub = self._stub()
        with calling(self._endpoint, "listing the releases"):
            response = stub.ListReleases(pb.ListReleasesRequest(), timeout=self._endpoint.timeout_s)
        return tuple(map(_summary, response.releases))

    def get(
        self, survey: str, round: int | None = None, *, version: int | None = None, revision: int | None = None
    ) -> VerifiedRelease:
        """One release, its form, signature and every number verified.

        Args:
            survey: Name of the survey.
            round: Number of the round; None for the newest that the server admits to.
            version: Of the survey; None for the newest with a release.
            revision: None for the newest.

        Raises:
            ConfigurationError: An argument makes no sense.
            IntegrityError: What the server sent is not a release signed with the trusted key.
            PeerError: It is, but another one than asked for.
            TallyveilError: The call failed, as `tallyveil_client.transport.translate` says.
        """
        if not SURVEY_NAME.fullmatch(survey):
            raise ConfigurationError(
                "a survey's name is lower-case letters, digits, '_' and '-'",
                not_done=_NOT_FETCHED,
                next_step="list the releases to see the names",
            )
        request = pb.GetReleaseRequest(
            survey_name=survey,
            survey_version=_number(version, "version"),
            round=_number(round, "round"),
            revision=_number(revision, "revision"),
        )
        stub = self._stub()
        with calling(self._endpoint, "fetching the release"):
            document = _joined(stub.GetRelease(request, timeout=self._endpoint.timeout_s))
        release = open_release(document, self._trusted)
        _check_asked_for(release, request)
        return release

    def close(self) -> None:
        """Close the connection; the next call would make a new one."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stub(self) -> StatisticsServiceStub:
        if self._channel is None:
            self._channel = connect(self._endpoint)
        return StatisticsServiceStub(self._channel)


def _require_consumer_folder(folder: Path) -> None:
    step = "name the folder that tallyveil pki consumer wrote"
    if not os.path.isdir(folder):
        raise ConfigurationError(
            f"there is no folder {folder} with a consumer's credentials", not_done=_NOT_FETCHED, next_step=step
        )
    if absent := [name for name in _CREDENTIALS if not os.path.exists(folder / name)]:
        raise ConfigurationError(
            f"{folder} is not the folder of a consumer's credentials: {', '.join(absent)} missing",
            not_done=_NOT_FETCHED,
            next_step=step,
        )


def _number(value: int | None, what: str) -> int:
    """As the wire says it: 0 for the newest."""
    if value is None:
        return 0
    if not 1 <= value < 2**31:
        raise ConfigurationError(
            f"a {what} is a whole number from 1 on",
            not_done=_NOT_FETCHED,
            next_step=f"list the releases to see each one's {what}, or leave it out for the newest",
        )
    return value


def _joined(parts: Iterable[pb.GetReleaseResponse]) -> bytes:
    """The parts as one file; a server that never ends is cut off."""
    document = bytearray()
    for response in parts:
        document += response.part
        if len(document) > MAX_DOCUMENT_BYTES:
            raise PeerError(
                f"the server's release is longer than {MAX_DOCUMENT_BYTES} bytes",
                not_done="the release was not used",
                next_step="ask the aggregator's operator",
            )
    return bytes(document)


def _check_asked_for(verified: VerifiedRelease, request: pb.GetReleaseRequest) -> None:
    release = verified.release
    pairs: builtins.list[tuple[str, str | int, str | int]] = [
        ("survey", request.survey_name, release.survey.name),
        ("version", request.survey_version, release.survey.version),
        ("round", request.round, release.round),
        ("revision", request.revision, release.revision),
    ]
    wrong = [what for what, asked, got in pairs if asked not in (0, got)]
    if wrong:
        raise PeerError(
            f"the server sent a signed release, but of another {' and '.join(wrong)} than asked for",
            not_done="the release was not used",
            next_step="list the releases; tell the aggregator's operator where the list and the releases disagree",
        )


def _summary(message: pb.ReleaseSummary) -> ReleaseSummary:
    try:
        released_at = parse_moment(message.released_at)
    except TallyveilError:
        raise _malformed() from None
    hashes = (message.survey_hash, message.release_hash)
    if not SURVEY_NAME.fullmatch(message.survey_name) or any(len(item) != _HASH_BYTES for item in hashes):
        raise _malformed()
    return ReleaseSummary(
        message.survey_name,
        message.survey_version,
        message.survey_hash.hex(),
        message.round,
        message.revision,
        message.release_hash.hex(),
        released_at,
    )


def _malformed() -> PeerError:
    return PeerError(
        "the list of releases holds an entry that has not the agreed form",
        not_done="the list was not used",
        next_step="check that both sides run compatible versions",
    )
