"""The demo from beginning to end, in a folder that is removed afterwards or kept.

Not here: the steps themselves (`deployment`).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from tallyveil.cli.console import print_json
from tallyveil.errors import ConfigurationError
from tallyveil.release import VerifiedRelease, open_release
from tallyveil.signing import VerifyingKey
from tallyveil_demo.deployment import Deployment
from tallyveil_demo.offices import load_offices
from tallyveil_demo.outcome import judge
from tallyveil_demo.processes import serving
from tallyveil_demo.report import Silent, Told

_NOT_RUN = "the demo was not run"


def perform(keep: Path | None, json: bool) -> None:
    """Run the demo and show or print what came out.

    Raises:
        ConfigurationError: The folder to keep cannot be made, or exists already and is not empty.
        KeyboardInterrupt: As it came; what the demo had made is removed.
        InternalError: A step failed.
    """
    start = time.monotonic()
    report = Silent() if json else Told()
    with _folder(keep) as folder:
        deployment = Deployment(folder, load_offices())
        offices = deployment.offices
        report.introduce(offices)
        with report.step("Certificates, keys and the signed survey"):
            deployment.set_up()
        with serving(deployment.server_command, folder, folder / "port") as port:
            deployment.equip_offices(port)
            with report.progress("Each office approves the survey", len(offices)) as on_done:
                deployment.approve(on_done)
            with report.step("One office looks at what would leave it"):
                preview = deployment.preview(offices[0])
            report.show_preview(offices[0], preview)
            with report.progress("Each office perturbs, charges, stores and sends", len(offices)) as on_done:
                deployment.collect(on_done)
            with report.step("The round is closed and released; a consumer fetches and verifies"):
                deployment.publish(port)
        verified = _verify(deployment)
        outcome = judge(verified, offices)
        seconds = time.monotonic() - start
        report.show_outcome(verified, outcome, offices, seconds, keep)
        if json:
            print_json({**asdict(outcome), "release_verified": True, "seconds": round(seconds, 3)})


def _verify(deployment: Deployment) -> VerifiedRelease:
    trusted = VerifyingKey.from_pem(deployment.release_key.read_bytes())
    return open_release(deployment.release_file.read_bytes(), trusted)


@contextmanager
def _folder(keep: Path | None) -> Generator[Path]:
    if keep is None:
        with TemporaryDirectory(prefix="tallyveil-demo-") as folder:
            yield Path(folder)
        return
    made = _make(keep)
    try:
        yield keep.resolve()
    except KeyboardInterrupt:
        _empty(keep)
        for empty in made:
            with suppress(OSError):  # something else has been put there since
                empty.rmdir()
        raise


def _make(keep: Path) -> list[Path]:
    """Make the folder, and say which were not there before, the innermost first."""
    try:
        used = os.path.lexists(keep) and (not keep.is_dir() or any(keep.iterdir()))
        absent = [folder for folder in (keep, *keep.parents) if not folder.exists()]
        if not used:
            keep.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=keep).close()
    except OSError as error:
        raise ConfigurationError(
            f"cannot make folder {keep} or write there: {error.strerror or type(error).__name__}",
            not_done=_NOT_RUN,
            next_step="name a new folder where you may write",
        ) from None
    if used:
        raise ConfigurationError(
            f"{keep} is there already and is not an empty folder", not_done=_NOT_RUN, next_step="name a new folder"
        )
    return absent


def _empty(folder: Path) -> None:
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item, ignore_errors=True)
        else:
            item.unlink(missing_ok=True)
