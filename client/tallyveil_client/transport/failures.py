# pyright: standard
"""What the status of a failed gRPC call means to whoever made it.

Not here: why a connection is not to be had (`handshake`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import grpc
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped, unused-ignore]
from grpc_status import rpc_status

from tallyveil.errors import ConfigurationError, PeerError, RefusedError, TallyveilError, UnavailableError
from tallyveil.refusal import Refusal
from tallyveil.wire.codec import MAX_MESSAGE_BYTES
from tallyveil_client.transport import credentials, handshake
from tallyveil_client.transport.endpoint import Endpoint

ERROR_DOMAIN = "tallyveil"
MAX_FOREIGN_CHARACTERS = 200
_UNCHANGED = "do not try again unchanged"
_LATER = "try again later"

# What is wrong, which error it is, and what to do: for the statuses that need no thought.
_MEANINGS: dict[grpc.StatusCode, tuple[str, type[TallyveilError], str]] = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: ("is too busy", UnavailableError, _LATER),
    grpc.StatusCode.ABORTED: ("gave up on the call", UnavailableError, _LATER),
    grpc.StatusCode.CANCELLED: ("cancelled the call", UnavailableError, _LATER),
    grpc.StatusCode.NOT_FOUND: (
        "has nothing of that kind",
        RefusedError,
        "check the name and the numbers; list what there is",
    ),
    grpc.StatusCode.INVALID_ARGUMENT: ("refuses the call as malformed", RefusedError, _UNCHANGED),
    grpc.StatusCode.FAILED_PRECONDITION: ("refuses the call as things stand", RefusedError, _UNCHANGED),
    grpc.StatusCode.OUT_OF_RANGE: ("refuses the call as out of range", RefusedError, _UNCHANGED),
    grpc.StatusCode.ALREADY_EXISTS: ("holds that already", RefusedError, _UNCHANGED),
    grpc.StatusCode.UNIMPLEMENTED: (
        "does not offer this service",
        PeerError,
        "check the address, and that both sides run compatible versions",
    ),
}


class Refused(RefusedError):
    """The aggregator refused for good; `refusal` says why."""

    def __init__(self, refusal: Refusal, *, not_done: str) -> None:
        super().__init__(
            f"the aggregator refuses: {refusal.sentence}",
            not_done=not_done,
            next_step=f"{_UNCHANGED}; the reason's code is {refusal}",
        )
        self.refusal = refusal


class RefusedForNow(UnavailableError):
    """The aggregator refused, and may accept the same bytes later; `refusal` says why."""

    def __init__(self, refusal: Refusal, *, not_done: str) -> None:
        super().__init__(
            f"the aggregator refuses for now: {refusal.sentence}",
            not_done=not_done,
            next_step=f"{_LATER}; the reason's code is {refusal}",
        )
        self.refusal = refusal


def translate(error: grpc.RpcError, endpoint: Endpoint, doing: str) -> TallyveilError:
    """What a failed call means to whoever made it.

    Args:
        error: As the call raised it.
        endpoint: Whom the call was made to.
        doing: What was being done: "fetching the survey".

    Returns:
        `Refused` or `RefusedForNow` where the aggregator gave one of its reasons; ConfigurationError where
        certificates or addresses are wrong; UnavailableError where the same call may succeed later; PeerError or
        RefusedError otherwise.

    Privacy:
        Of the peer's own text at most 200 printable characters are repeated.
    """
    address, not_done = endpoint.address, f"{doing} did not complete"
    if not hasattr(error, "code"):
        return PeerError(f"the call to {address} failed without a status", not_done=not_done)
    if (reason := _reason(cast(grpc.Call, error))) is not None:
        return _refused(reason, not_done)
    code, details = error.code(), error.details() or ""
    said = f". It said: {_shown(details)}" if details else ""
    match code:
        case grpc.StatusCode.UNAVAILABLE:
            return handshake.explain(endpoint, datetime.now(UTC), not_done)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return UnavailableError(f"{address} gave no answer in time", not_done=not_done, next_step=_LATER)
        case grpc.StatusCode.RESOURCE_EXHAUSTED if "larger than" in details:
            return PeerError(
                f"a message would be larger than the limit of {MAX_MESSAGE_BYTES} bytes{said}",
                not_done=not_done,
                next_step=f"{_UNCHANGED}; ask the aggregator's operator for the file itself",
            )
        case grpc.StatusCode.UNAUTHENTICATED:
            return ConfigurationError(
                f"{address} does not know who we are. {credentials.who(endpoint)}{said}",
                not_done=not_done,
                next_step="have a certificate issued that names one department, operator or consumer",
            )
        case grpc.StatusCode.PERMISSION_DENIED:
            return RefusedError(
                f"{address} does not permit this to us. {credentials.who(endpoint)}{said}",
                not_done=not_done,
                next_step="use a certificate of the right role, or ask the aggregator's operator",
            )
        case grpc.StatusCode.UNKNOWN | grpc.StatusCode.INTERNAL if _is_cut(details):
            return UnavailableError(f"the connection to {address} was cut", not_done=not_done, next_step=_LATER)
        case _ if code in _MEANINGS:
            what, kind, next_step = _MEANINGS[code]
            return kind(f"{address} {what}{said}", not_done=not_done, next_step=next_step)
        case _:
            return PeerError(
                f"{address} failed ({code.name}){said}",
                not_done=not_done,
                next_step="tell the aggregator's operator; the fault is on that side",
            )


def _shown(text: str) -> str:
    """The peer's text as a message may repeat it: at most 200 characters, printable ones only."""
    cut = text[:MAX_FOREIGN_CHARACTERS]
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


def _reason(call: grpc.Call) -> str | None:
    """The reason's code of our own error details, where the status carries them."""
    try:
        status = rpc_status.from_call(call)
    except ValueError:  # status and details contradict each other: the details are not to be believed
        return None
    for detail in status.details if status is not None else ():
        info = ErrorInfo()
        if detail.Unpack(info) and info.domain == ERROR_DOMAIN:
            return str(info.reason)
    return None


def _refused(reason: str, not_done: str) -> TallyveilError:
    try:
        refusal = Refusal(reason)
    except ValueError:
        return RefusedError(
            f"the aggregator refuses for a reason this version does not know: {_shown(reason)}",
            not_done=not_done,
            next_step="update this software, or ask the aggregator's operator",
        )
    return (RefusedForNow if refusal.retryable else Refused)(refusal, not_done=not_done)


def _is_cut(details: str) -> bool:
    """gRPC reports some broken connections as UNKNOWN or INTERNAL."""
    return any(sign in details for sign in ("Stream removed", "RST_STREAM", "Socket closed", "GOAWAY"))
