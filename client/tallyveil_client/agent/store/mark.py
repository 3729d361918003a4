"""A small file beside the store that remembers how far its ledger once reached, so that an older copy is noticed.

Not here: the comparison (`tallyveil_client.agent.ledger.verify_reach`). Its limit: whoever puts both files back from
one old backup is not noticed here, only by the aggregator, which then refuses the second submission.
"""

from __future__ import annotations

import os
from pathlib import Path

from tallyveil import canonical
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.fields import Fields
from tallyveil_client.agent.ledger import Head

_FORMAT = "tallyveil-ledger-head/1"
_KEYS = ("format", "store_id", "seq", "hash")


def mark_path(store: Path) -> Path:
    """Where the mark of a store lies: beside the file itself, under whatever name or link it was opened."""
    store = store.resolve()
    return store.with_name(store.name + ".head")


def read_mark(path: Path, store_id: str) -> Head | None:
    """The head last written down for this store, or None where there is no mark.

    Raises:
        IntegrityError: The mark is damaged or belongs to another store.
        OSError: It cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        fields = Fields(canonical.decode(data), "the mark", _KEYS)
        if (fields.text("format"), fields.text("store_id")) == (_FORMAT, store_id):
            return Head(fields.integer("seq"), fields.text("hash"))
    except (ConfigurationError, IntegrityError):
        pass
    raise IntegrityError(
        f"{path} does not belong to this store, or is damaged",
        not_done="nothing was charged or drawn; spending is stopped",
        next_step="put store and .head file back together, the newest copies of both",
    )


def write_mark(path: Path, store_id: str, head: Head) -> None:
    """Replace the mark durably, all of it or nothing.

    Raises:
        OSError: It cannot be written; the old mark stays.
    """
    content = canonical.encode({"format": _FORMAT, "store_id": store_id, "seq": head.seq, "hash": head.hash})
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        left = memoryview(content)
        while left:  # a write may be short, as on a disk that is filling up; the next one then raises
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(fresh, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
