"""A release file checked offline, and what was checked in words.

Not here: the checks themselves (`tallyveil.release`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tallyveil.cli.files import read_file
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.release import ESTIMATOR, VerifiedRelease, check_chain, open_release
from tallyveil.signing import VerifyingKey
from tallyveil.survey import claimed_format

_NOT_VERIFIED = "nothing was verified"


@dataclass(frozen=True)
class Verification:
    """A release that holds, and how far that goes.

    Args:
        verified: The release.
        signer: Fingerprint of the trusted key, which signed it.
        chain: ``"first"`` (it names no predecessor), ``"holds"``, or ``"not checked"``.
    """

    verified: VerifiedRelease
    signer: str
    chain: str

    @property
    def numbers(self) -> int:
        """How many published numbers were computed again: five of each row, and each bin's total."""
        tables = self.verified.release.tables
        return sum(5 * len(table.rows) + len(table.bins) for table in tables)

    @property
    def checks(self) -> tuple[tuple[str, str], ...]:
        """Each check with its outcome."""
        release = self.verified.release
        chain = {
            "first": "it names no release before it",
            "holds": f"follows {release.previous}, which verifies too",
            "not checked": f"not checked: it names {release.previous}; give that release with --previous",
        }
        return (
            ("form", "holds: the bytes are the canonical form, nothing added or reordered"),
            ("signature", f"holds: {self.signer}"),
            ("numbers", f"hold: {self.numbers} computed again from the support counts by {ESTIMATOR}"),
            ("survey", f"its hash is {release.survey.hash}; compare it with the one the survey authority published"),
            ("chain", chain[self.chain]),
            ("release", self.verified.hash),
        )


def verify_file(file: Path, key: Path, previous: Path | None = None) -> Verification:
    """Verify a release, and that it follows another one where that is given.

    Raises:
        ConfigurationError: A file cannot be read, or the key is none.
        IntegrityError: Something does not hold.
    """
    trusted = _trusted(key)
    verified = open_release(_document(file, "the release"), trusted)
    chain = "first" if verified.release.previous is None else "not checked"
    if previous is not None:
        check_chain([open_release(_document(previous, "the release before"), trusted), verified])
        chain = "holds"
    return Verification(verified, trusted.fingerprint, chain)


def _trusted(key: Path) -> VerifyingKey:
    try:
        return VerifyingKey.from_pem(read_file(key, "the release key"))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{key}: {error.what}" if str(key) not in error.what else error.what,
            not_done=_NOT_VERIFIED,
            next_step="name the publisher's release.pub, as you pinned it",
        ) from None


def _document(file: Path, what: str) -> bytes:
    data = read_file(file, what)
    claimed, signed = claimed_format(data)
    if claimed.startswith("tallyveil-survey/"):
        raise IntegrityError(
            f"{file} is {'a survey' if signed else 'the draft of a survey'}, not a release",
            not_done=_NOT_VERIFIED,
            next_step="name a release's file, as stats get --output keeps it; tallyveil survey verify checks surveys",
        )
    return data
