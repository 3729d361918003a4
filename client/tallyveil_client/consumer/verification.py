"""A release file checked offline, and what was checked in words.

Not here: the checks themselves (`tallyveil.release`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tallyveil.cli.files import read_file
from tallyveil.release import ESTIMATOR, VerifiedRelease, check_chain, open_release
from tallyveil.signing import VerifyingKey


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
    trusted = VerifyingKey.from_pem(read_file(key, "the release key"))
    verified = open_release(read_file(file, "the release"), trusted)
    chain = "first" if verified.release.previous is None else "not checked"
    if previous is not None:
        check_chain([open_release(read_file(previous, "the release before"), trusted), verified])
        chain = "holds"
    return Verification(verified, trusted.fingerprint, chain)
