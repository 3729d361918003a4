"""The key that `tallyveil survey sign` signs with: read, and compared with the authority's public key beside it.

Not here: what is signed (`survey_files`). Any Ed25519 key would make a signature; agents believe the authority's alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tallyveil.cli.files import read_file
from tallyveil.errors import ConfigurationError
from tallyveil.signing import SigningKey, VerifyingKey

AUTHORITY = "authority.pub"
_NOT_SIGNED = "nothing was signed"


@dataclass(frozen=True)
class Signer:
    """A private key to sign with.

    Args:
        key: It.
        path: Where it was read.
        compared: The authority's public key that it was found to belong to; None where none lay beside it.
    """

    key: SigningKey
    path: Path
    compared: Path | None

    @property
    def fingerprint(self) -> str:
        return self.key.public.fingerprint

    @property
    def standing(self) -> str:
        """Whose signature it is."""
        if self.compared is None:
            whose = f"no {AUTHORITY} lies beside it: compare the fingerprint with the one that departments pin"
        else:
            whose = f"the survey authority's, as {self.compared} says"
        return f"signed now by {self.fingerprint}, the key in {self.path}; {whose}"


def read_signer(path: Path) -> Signer:
    """The private key of a file, which is the authority's where its public key lies in the same folder.

    Raises:
        ConfigurationError: It cannot be read, is no private Ed25519 key, or belongs to another public key.
    """
    pem = read_file(path, "the private key")
    try:
        key = SigningKey.from_pem(pem)
    except ConfigurationError as error:
        what = "this is not a private key, but a public one" if b"PUBLIC KEY" in pem else error.what
        raise ConfigurationError(
            f"{path} cannot sign surveys: {what}",
            not_done=_NOT_SIGNED,
            next_step="name the survey authority's private key, authority.key of tallyveil pki init",
        ) from None
    beside = path.parent / AUTHORITY
    if not os.path.lexists(beside):
        return Signer(key, path, None)
    try:
        authority = VerifyingKey.from_pem(read_file(beside, "the authority's public key"))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{beside} cannot be compared with the key: {error.what}",
            not_done=_NOT_SIGNED,
            next_step="put the survey authority's public key there, or take the file away",
        ) from None
    if authority.fingerprint != key.public.fingerprint:
        raise ConfigurationError(
            f"{path} is not the survey authority's key: it is {key.public.fingerprint}, "
            f"and {beside} is {authority.fingerprint}",
            not_done=_NOT_SIGNED,
            next_step="sign with authority.key; departments would refuse what another key signs",
        )
    return Signer(key, path, beside)
