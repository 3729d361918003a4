"""The errors Tallyveil raises, one root and a subclass for each party that can act.

Not here: refusals that travel over the wire (`tallyveil.refusal`). No message ever holds a raw value:
a position (row, column), a limit or a count says where the fault is.
"""

from __future__ import annotations

from typing import ClassVar


class TallyveilError(Exception):
    """What happened, what was therefore not done, and what to do next.

    Args:
        what: One sentence: the fault and where it is. Never a raw value.
        not_done: What has not happened because of it ("nothing was charged or sent").
        next_step: What the reader can do now.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, not_done: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.not_done = not_done
        self.next_step = next_step

    def __str__(self) -> str:
        parts = [self.what]
        if self.not_done:
            parts.append(f"Not done: {self.not_done}")
        if self.next_step:
            parts.append(f"Next: {self.next_step}")
        return " ".join(part if part.endswith((".", "!", "?")) else part + "." for part in parts)


class ConfigurationError(TallyveilError):
    """The operator's configuration, arguments, keys or certificates are wrong."""

    kind = "configuration"
    exit_code = 2


class InputError(TallyveilError):
    """The department's own data cannot be used as it is."""

    kind = "input"
    exit_code = 3


class PolicyError(TallyveilError):
    """The department's policy, ledger or approvals forbid what was asked."""

    kind = "policy"
    exit_code = 4


class IntegrityError(TallyveilError):
    """A signature, hash, chain or canonical form does not hold."""

    kind = "integrity"
    exit_code = 5


class PeerError(TallyveilError):
    """The other side sent something that makes no sense."""

    kind = "peer"
    exit_code = 6


class RefusedError(TallyveilError):
    """The other side understood and refused, for good."""

    kind = "refused"
    exit_code = 7


class UnavailableError(TallyveilError):
    """Something needed is not reachable now; the same call may succeed later."""

    kind = "unavailable"
    exit_code = 75


class InternalError(TallyveilError):
    """Our fault."""

    kind = "internal"
    exit_code = 70
