"""Small files that a command reads and writes: whole or not at all, and never over another unless told to.

Not here: keys' secrecy (the PKI) and a department's tables (the agent's sources).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tallyveil.errors import ConfigurationError

MAX_BYTES = 64 * 1024 * 1024


def read_file(path: Path, what: str) -> bytes:
    """A file's bytes.

    Args:
        path: Where.
        what: What it should be, for messages: "the survey".

    Raises:
        ConfigurationError: It cannot be read, or is longer than `MAX_BYTES`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"{what} {path} cannot be read: {error.strerror or type(error).__name__}",
            next_step="check the path and its permissions",
        ) from None
    if len(data) > MAX_BYTES:
        raise ConfigurationError(f"{what} {path} is longer than {MAX_BYTES} bytes", next_step="name another file")
    return data


def write_file(path: Path, data: bytes, *, force: bool = False) -> None:
    """Write a file whole, durably, or not at all.

    Args:
        path: Where.
        data: Its bytes.
        force: Whether one that is there may be replaced.

    Raises:
        ConfigurationError: It is there and `force` is not given, or it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if not force:
            path.open("xb").close()  # claims the name, so that two processes never both succeed
        try:
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            for left in (draft,) if force else (draft, path):
                with suppress(OSError):
                    left.unlink()
            raise
    except FileExistsError:
        raise ConfigurationError(
            f"{path} is there already",
            not_done="nothing was written",
            next_step="name another file with --output, or add --force to replace it",
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror or type(error).__name__}",
            not_done="nothing was written",
            next_step="check the folder, its permissions and the space left",
        ) from None
