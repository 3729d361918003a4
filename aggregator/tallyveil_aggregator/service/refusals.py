# pyright: standard
"""How refusals and failures reach a caller: one status code for each reason, and never an exception's own text.

Not here: the reasons (`tallyveil.refusal`). Codes of reasons worth retrying are never those of final ones.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped, unused-ignore]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped, unused-ignore]
from grpc_status import rpc_status

from tallyveil.cli.logs import Log
from tallyveil.errors import PeerError
from tallyveil.refusal import Refusal
from tallyveil_aggregator.store import StoreUnavailable

ERROR_DOMAIN = "tallyveil"

CODES: Mapping[Refusal, grpc.StatusCode] = {
    Refusal.NOT_A_DEPARTMENT: grpc.StatusCode.PERMISSION_DENIED,
    Refusal.UNKNOWN_DEPARTMENT: grpc.StatusCode.PERMISSION_DENIED,
    Refusal.DEPARTMENT_BLOCKED: grpc.StatusCode.PERMISSION_DENIED,
    Refusal.UNKNOWN_SURVEY: grpc.StatusCode.NOT_FOUND,
    Refusal.SURVEY_EXPIRED: grpc.StatusCode.FAILED_PRECONDITION,
    Refusal.UNKNOWN_ROUND: grpc.StatusCode.NOT_FOUND,
    Refusal.ROUND_NOT_OPEN_YET: grpc.StatusCode.UNAVAILABLE,
    Refusal.ROUND_CLOSED: grpc.StatusCode.FAILED_PRECONDITION,
    Refusal.EPSILON_NOT_PERMITTED: grpc.StatusCode.INVALID_ARGUMENT,
    Refusal.UNSIGNED_CHOICE: grpc.StatusCode.UNAUTHENTICATED,
    Refusal.SECOND_SUBMISSION: grpc.StatusCode.ALREADY_EXISTS,
    Refusal.SUBMISSION_COMPLETE: grpc.StatusCode.FAILED_PRECONDITION,
    Refusal.FOREIGN_BATCH: grpc.StatusCode.ALREADY_EXISTS,
    Refusal.ALTERED_BATCH: grpc.StatusCode.ALREADY_EXISTS,
    Refusal.WRONG_DIGEST: grpc.StatusCode.INVALID_ARGUMENT,
    Refusal.UNKNOWN_CELL: grpc.StatusCode.INVALID_ARGUMENT,
    Refusal.REPEATED_CELL: grpc.StatusCode.ALREADY_EXISTS,
    Refusal.IMPOSSIBLE_TALLY: grpc.StatusCode.INVALID_ARGUMENT,
    Refusal.OVER_QUOTA: grpc.StatusCode.OUT_OF_RANGE,
    Refusal.INCOMPLETE: grpc.StatusCode.FAILED_PRECONDITION,
    Refusal.MALFORMED: grpc.StatusCode.INVALID_ARGUMENT,
    Refusal.STORE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Refusal.TOO_BUSY: grpc.StatusCode.UNAVAILABLE,
}


class Refused(Exception):
    """A handler refuses, for a reason of the closed list."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class Declined(Exception):
    """A handler declines for a reason outside the list; `text` is ours and may be shown."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def status_of(refusal: Refusal) -> Status:
    """The status that carries a refusal: its sentence for people, its code for programs."""
    detail = Any()
    detail.Pack(ErrorInfo(reason=refusal.value, domain=ERROR_DOMAIN))
    code: int = CODES[refusal].value[0]
    return Status(code=code, message=refusal.sentence, details=[detail])


@contextmanager
def answering(context: grpc.ServicerContext, log: Log) -> Generator[None]:
    """Answer a call: whatever is raised inside ends it with a status, and with nothing of an exception's text."""
    try:
        yield
    except Refused as error:
        _refuse(context, error.refusal)
    except PeerError:
        _refuse(context, Refusal.MALFORMED)
    except StoreUnavailable as error:
        log.error("store unavailable", reason=error.what)
        _refuse(context, Refusal.STORE_UNAVAILABLE)
    except Declined as error:
        context.abort(error.code, error.text)
    except grpc.RpcError:
        raise  # the caller has left; gRPC ends the call by itself
    except Exception as error:
        log.error("unexpected error", error)
        context.abort(grpc.StatusCode.INTERNAL, "the aggregator has failed; its log says where")


def _refuse(context: grpc.ServicerContext, refusal: Refusal) -> NoReturn:
    context.abort_with_status(rpc_status.to_status(status_of(refusal)))
    raise AssertionError("abort_with_status raises")
