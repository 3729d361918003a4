"""Moments in UTC as surveys write them: ``2026-12-01T00:00:00Z``, whole seconds.

Not here: a clock. What "now" is, the edges say.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tallyveil.errors import ConfigurationError

_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def parse_moment(text: str) -> datetime:
    """An aware UTC datetime.

    Raises:
        ConfigurationError: Not ``YYYY-MM-DDTHH:MM:SSZ``, or no such moment.
    """
    try:
        if _FORM.fullmatch(text):
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        pass
    raise ConfigurationError("a moment is written YYYY-MM-DDTHH:MM:SSZ, in UTC", next_step="write 2026-12-01T00:00:00Z")


def moment_text(moment: datetime) -> str:
    """The moment in UTC, cut to whole seconds."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
