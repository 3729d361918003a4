"""Survey files: drafts that people edit and signed ones that nobody may.

Not here: what is shown of them (`survey_view`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tallyveil.canonical import Json
from tallyveil.cli.files import read_file
from tallyveil.errors import ConfigurationError
from tallyveil.signing import VerifyingKey, signer_of
from tallyveil.survey import Survey, open_survey, read_unverified_survey, require_survey, survey_from_json


@dataclass(frozen=True)
class Found:
    """A survey read from a file whose signature, if any, nobody has checked.

    Args:
        survey: It.
        signer: Fingerprint of the key that the file says signed it; None for a draft.
    """

    survey: Survey
    signer: str | None

    @property
    def standing(self) -> str:
        """How far the file may be believed."""
        if self.signer is None:
            return "UNSIGNED DRAFT: anybody may have written it"
        return f"NOT VERIFIED: the file says that {self.signer} signed it; check with tallyveil survey verify"


def write_draft(survey: Survey) -> bytes:
    """A draft's bytes: indented JSON."""
    return (json.dumps(survey.to_json(), ensure_ascii=False, indent=2) + "\n").encode()


def read_draft(path: Path) -> Survey:
    """The survey of a draft, however it is indented.

    Raises:
        ConfigurationError: It cannot be read, is signed already, or is no survey.
        IntegrityError: It is a release.
    """
    data = read_file(path, "the survey")
    require_survey(data)
    document = _json(path, data)
    if _is_signed(document):
        raise ConfigurationError(
            f"{path} is signed already", not_done="nothing was signed", next_step="sign the draft it was made from"
        )
    return survey_from_json(document)


def read_any(path: Path) -> Found:
    """The survey of a draft or of a signed file, unverified.

    Raises:
        ConfigurationError: It cannot be read, or is no survey.
        IntegrityError: It is signed, but no longer in the form that was signed; or it is a release.
    """
    data = read_file(path, "the survey")
    require_survey(data)
    document = _json(path, data)
    if _is_signed(document):
        return Found(read_unverified_survey(data), signer_of(data))
    return Found(survey_from_json(document), None)


def read_verified(path: Path, authority: VerifyingKey) -> Survey:
    """The survey of a signed file, verified.

    Raises:
        IntegrityError: It is not signed by `authority`, or was altered.
        ConfigurationError: It cannot be read, or is signed yet no survey this version can honour.
    """
    return open_survey(read_file(path, "the survey"), authority)


def _is_signed(document: object) -> bool:
    return isinstance(document, dict) and "signature" in document


def _json(path: Path, data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ConfigurationError(
            f"{path} is not a survey file: it is no JSON in UTF-8, or repeats a key",
            next_step="name a file that tallyveil survey new or sign wrote",
        ) from None


def _unique(pairs: list[tuple[str, object]]) -> Json:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key is repeated")
    return document


def _refuse(text: str) -> object:
    raise ValueError("not a number")
