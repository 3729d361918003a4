"""What a guarantee says on a screen and in JSON: its text, its epsilon, and always what it does not protect.

Not here: the words themselves (`tallyveil.guarantee`).
"""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import TYPE_CHECKING

from tallyveil.cli.console import plain, prose_width
from tallyveil.epsilon import NANO, epsilon_text

if TYPE_CHECKING:
    from tallyveil.guarantee import Guarantee


def guarantee_json(guarantee: Guarantee) -> dict[str, object]:
    """As a document for machines."""
    return {
        "kind": guarantee.kind,
        "epsilon": guarantee.epsilon / NANO,
        "realised_epsilon": guarantee.realised_epsilon,
        "text": guarantee.text,
        "not_protected": list(guarantee.not_protected),
    }


def guarantee_text(guarantees: Iterable[Guarantee]) -> str:
    """As lines for people: each guarantee, then once everything that any of them does not protect."""
    found = list(guarantees)
    lines = [
        _paragraph(
            f"{item.text} Kind: {item.kind}. Asked for: {epsilon_text(item.epsilon)}; "
            f"realised: {item.realised_epsilon:.12f}.",
            "  ",
        )
        for item in found
    ]
    exposed = dict.fromkeys(phrase for item in found for phrase in item.not_protected)
    return "\n".join(["Guarantee", *lines, "NOT protected", *(_paragraph(phrase, "  - ") for phrase in exposed)])


def _paragraph(text: str, indent: str) -> str:
    return fill(plain(text), prose_width(), initial_indent=indent, subsequent_indent=" " * len(indent))
