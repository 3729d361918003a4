"""Logs of a running service: one JSON object a line on standard error, with level, time, event and fields.

Not here: what a command tells its user (`tallyveil.cli.console`, `tallyveil.cli.failures`).

Privacy:
    An event's name is fixed text and a field a number or an identifier. What other packages log, and the
    messages of exceptions, could quote a record: of those only where they came from is written.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from tallyveil.cli.encoding import shows_all
from tallyveil.cli.failures import frames

Field = str | int | float | bool | None

_OURS = "tallyveil"


class Log:
    """Events of one part of the program.

    Args:
        name: Which part ("agent.upload"); shown with each event.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"{_OURS}.{name}")

    def debug(self, event: str, **fields: Field) -> None:
        """Write something of use only to who develops."""
        self._logger.debug(event, extra={"fields": fields})

    def info(self, event: str, **fields: Field) -> None:
        """Write something that happened as it should."""
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, **fields: Field) -> None:
        """Write something that may need a person before long."""
        self._logger.warning(event, extra={"fields": fields})

    def error(self, event: str, error: BaseException | None = None, **fields: Field) -> None:
        """Write something that was not done; of ``error``, its type and where it was raised."""
        self._logger.error(event, extra={"fields": fields}, exc_info=error)


def configure(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send the logs of this process to ``stream``, by default standard error. Calling again replaces that.

    Args:
        level: The least level of our own events to write: DEBUG, INFO, WARNING or ERROR. Those of others
            start at WARNING.
        stream: Where to write.

    Raises:
        ValueError: There is no such level.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines(ascii_only=not shows_all(handler.stream)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_OURS).setLevel(level.upper())


class _JsonLines(logging.Formatter):
    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__()
        self._ascii_only = ascii_only

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.startswith(f"{_OURS}.")
        fields: dict[str, object] = dict(getattr(record, "fields", {})) if ours else {}
        if not ours:
            fields["place"] = f"{record.pathname}:{record.lineno}"
        if record.exc_info and record.exc_info[1]:
            fields["trace"] = frames(record.exc_info[1])
        line = {
            "level": record.levelname.lower(),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "event": record.msg if ours else "message of another package, withheld",
            "source": record.name.removeprefix(f"{_OURS}."),
            "fields": fields,
        }
        return json.dumps(line, ensure_ascii=self._ascii_only, default=lambda value: type(value).__name__)
