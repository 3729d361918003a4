"""Writing and reading the files of the PKI: secrets for their owner alone, whole or not at all, never over another.

Not here: what is in them (`tallyveil_aggregator.enrolment.authority`) and which there are
(`tallyveil_aggregator.enrolment.commands`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tallyveil.errors import ConfigurationError

SECRET_MODE = 0o600
PUBLIC_MODE = 0o644
FOLDER_MODE = 0o700
_MAX_BYTES = 1 << 20


def make_folder(folder: Path) -> None:
    """Make a folder that its owner alone may enter, and any above it; one that exists keeps its mode.

    Raises:
        ConfigurationError: It cannot be made, or is no folder.
    """
    try:
        # Not mkdir(parents=True): it would give those above the mode that the umask leaves.
        for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
            missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
    except OSError as error:
        raise _failed("make the folder", folder, error) from None
    if not folder.is_dir():
        raise ConfigurationError(
            f"{folder} is not a folder", not_done="nothing was written", next_step="name another folder"
        )


def refuse_existing(paths: Iterable[Path], next_step: str) -> None:
    """Check that nothing would be overwritten, before anything is written.

    Args:
        paths: The files about to be written.
        next_step: What to do where one exists.

    Raises:
        ConfigurationError: One or more exist; all are named.
    """
    there = [str(path) for path in paths if os.path.lexists(path)]
    if there:
        raise ConfigurationError(
            f"already there: {', '.join(there)}", not_done="nothing was written", next_step=next_step
        )


def write_file(path: Path, content: bytes, *, secret: bool, replace: bool = False) -> None:
    """Write a file whole and durably, or leave what was there.

    Args:
        path: Where; its folder exists.
        content: The bytes.
        secret: Readable by the owner alone, whatever the umask.
        replace: Whether a file already there may be replaced.

    Raises:
        ConfigurationError: One is there and may not be replaced, or it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    if not replace:
        _claim(path)
    try:
        _write_durably(draft, content, SECRET_MODE if secret else PUBLIC_MODE)
        os.replace(draft, path)
        _sync_folder(path.parent)
    except BaseException as error:
        for left in (draft,) if replace else (draft, path):
            with suppress(OSError):
                left.unlink()
        if isinstance(error, OSError):
            raise _failed("write", path, error) from None
        raise


def check_writable(path: Path, *, replace: bool, not_done: str) -> None:
    """Try what `write_file` will do, for a step that cannot be taken back once the file turns out impossible.

    Args:
        path: The file to be written later.
        replace: Whether a file already there may be replaced.
        not_done: What will not have happened, for messages.

    Raises:
        ConfigurationError: One is there and may not be replaced, or none can be written there.
    """
    if path.exists() and not path.is_file():
        raise ConfigurationError(
            f"{path} is no regular file", not_done=not_done, next_step="name a file, in a folder that exists"
        )
    if not replace and os.path.lexists(path):
        raise ConfigurationError(
            f"already there: {path}", not_done=not_done, next_step="name another file, or add --force"
        )
    trial = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        _write_durably(trial, b"", PUBLIC_MODE)
        trial.unlink()
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror or type(error).__name__}",
            not_done=not_done,
            next_step="name a file in a folder that exists and may be written",
        ) from None


def read_file(path: Path, next_step: str) -> bytes:
    """A small file's bytes.

    Args:
        path: Which.
        next_step: What to do where it is missing.

    Raises:
        ConfigurationError: It is missing, cannot be read, or is too large to be a key or a certificate.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigurationError(f"there is no {path}", not_done="nothing was written", next_step=next_step) from None
    except OSError as error:
        raise _failed("read", path, error) from None
    if len(content) > _MAX_BYTES:
        raise ConfigurationError(
            f"{path} is too large to be a key or a certificate",
            not_done="nothing was written",
            next_step="name the file that tallyveil pki made",
        )
    return content


def _claim(path: Path) -> None:
    """Take a file's name before it has content, so that "never over another" holds between processes too.

    Hard links would do the same, but not every file system has them.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, SECRET_MODE))
    except FileExistsError:
        refuse_existing([path], "move it away, or choose another folder")
    except OSError as error:
        raise _failed("write", path, error) from None


def _write_durably(path: Path, content: bytes, mode: int) -> None:
    # A draft with this process's number is left over from a crash: nobody else writes it.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    with os.fdopen(descriptor, "wb") as file:
        if mode == SECRET_MODE:
            os.fchmod(descriptor, mode)  # a umask may have taken the owner's own access
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(doing: str, path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"cannot {doing} {path}: {error.strerror or type(error).__name__}",
        not_done="that file was not written" if doing == "write" else "",
        next_step="check the folder's owner, mode and free space",
    )
