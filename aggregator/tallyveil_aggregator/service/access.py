# pyright: standard
"""Who may read what the aggregator hands on: whoever it knows.

Not here: submissions, which only departments make (`tallyveil_aggregator.intake.admit`).
"""

from __future__ import annotations

import grpc

from tallyveil.identity import Identity, Role
from tallyveil_aggregator.intake import admit
from tallyveil_aggregator.service.refusals import Declined, Refused
from tallyveil_aggregator.store import Transaction


def check_reader(transaction: Transaction, caller: Identity | None) -> None:
    """Let a consumer, an operator or an active department pass.

    Raises:
        Refused: A department that is not registered, or blocked.
        Declined: The certificate names nobody.
    """
    if caller is None:
        raise Declined(
            grpc.StatusCode.UNAUTHENTICATED, "the certificate names no single department, operator or consumer"
        )
    if caller.role is Role.DEPARTMENT:
        refusal = admit(caller.role, transaction.departments.state(caller.name))
        if refusal is not None:
            raise Refused(refusal)
