"""Auditing: the empirical epsilon of a mechanism, from its reports alone, with a confidence bound.

Not here: the command (`tallyveil_client.audit`). Pure mathematics on draws: no clock, no files.
"""

from tallyveil.audit.at_department import OneRecordTables
from tallyveil.audit.claim import Claim, claim_of, exact_epsilon
from tallyveil.audit.looks import BlackBox
from tallyveil.audit.measure import (
    BETWEEN,
    CONFIDENCE,
    REPEATED_RECORDS,
    WHOLE,
    WITHIN,
    Audit,
    Measured,
    audit,
    measure,
)
from tallyveil.audit.repetition import share_coins

__all__ = [
    "BETWEEN",
    "CONFIDENCE",
    "REPEATED_RECORDS",
    "WHOLE",
    "WITHIN",
    "Audit",
    "BlackBox",
    "Claim",
    "Measured",
    "OneRecordTables",
    "audit",
    "claim_of",
    "exact_epsilon",
    "measure",
    "share_coins",
]
