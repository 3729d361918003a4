"""What an audit says: a table, one sentence, and the same for machines.

Not here: the audit (`tallyveil.audit`) and the words of a guarantee (`tallyveil.guarantee`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from tallyveil.audit import CONFIDENCE, WITHIN, Audit, Measured
from tallyveil.cli import console
from tallyveil.cli.guarantees import guarantee_json, guarantee_text
from tallyveil.guarantee import Guarantee

FAULT_FOUND = 8
NOTHING_CONCLUDED = 9
"""Exit codes, beside 0: nothing was found."""


@dataclass(frozen=True)
class Audited:
    """One audit and what it was of.

    Args:
        title: What was audited, in a few words.
        facts: Its parameters, for machines.
        guarantee: What it claims.
        exact: The largest log-ratio of its exact channel; None where that is too large to write down.
        audit: The outcome.
        note: What this way of auditing cannot see; empty where there is nothing to add.
    """

    title: str
    facts: dict[str, object]
    guarantee: Guarantee
    exact: float | None
    audit: Audit
    note: str = ""

    @property
    def exit_code(self) -> int:
        """0, `FAULT_FOUND` or `NOTHING_CONCLUDED`."""
        if self.audit.exceeded or self.audit.repeated:
            return FAULT_FOUND
        return 0 if self.audit.conclusive else NOTHING_CONCLUDED

    @property
    def verdict(self) -> str:
        """``"more than claimed"``, ``"repeated coins"``, ``"inconclusive"`` or ``"nothing found"``."""
        if self.audit.exceeded:
            return "more than claimed"
        if self.audit.repeated:
            return "repeated coins"
        return "nothing found" if self.audit.conclusive else "inconclusive"

    @property
    def sentence(self) -> str:
        """The verdict for people."""
        found, claimed = self.audit.main, self.audit.claim.epsilon
        low, high = found.bounds
        where = f"within {found.scope}" if found.scope != WITHIN else WITHIN
        parts = [f"{', '.join(self.audit.repeated)} shared their coins: reports repeat."] if self.audit.repeated else []
        if self.audit.exceeded:
            parts.append(f"More than claimed: {where}, epsilon is at least {low:.4f}, and {claimed:.4g} is claimed.")
        elif not self.audit.conclusive:
            why = "no event was found that tells two values apart"
            if low > 0:
                width = f"the event's epsilon lies between {low:.4f} and {_number(high)}"
                why = f"{width}, too wide beside the {claimed:.4g} that is claimed"
            parts.append(f"Nothing can be concluded from {self.audit.draws} draws: {why}. Take more draws.")
        elif not self.audit.repeated:
            parts.append(
                f"Nothing found against the claim of {claimed:.4g}: {where}, the worst event's epsilon lies between "
                f"{low:.4f} and {_number(high)}."
            )
        if self.audit.unbounded_between and self.audit.between is not None:
            lower, upper = self.audit.between.bounds
            parts.append(
                "There is no bound between bins: one event tells two values of different bins apart with an epsilon of "
                f"at least {lower:.4f}{'' if isfinite(upper) else ', and it never happened under the other value'}."
            )
        return " ".join(parts)

    def to_json(self) -> dict[str, object]:
        """For machines; an infinite number is null."""
        audit = self.audit
        return {
            **self.facts,
            "guarantee": guarantee_json(self.guarantee),
            "claimed_epsilon": audit.claim.epsilon,
            "realised_epsilon": self.guarantee.realised_epsilon,
            "exact_epsilon": _finite(self.exact),
            "draws": audit.draws,
            "confidence": CONFIDENCE,
            "delta": 0,
            "tested": _measured_json(audit.main),
            "between_bins": None if audit.between is None else _measured_json(audit.between),
            "no_bound_between_bins": audit.unbounded_between,
            "repeated_coins": list(audit.repeated),
            "verdict": self.verdict,
            "sentence": self.sentence,
            "note": self.note,
        }

    def show(self) -> None:
        """For people."""
        audit = self.audit
        tested = [audit.main] if audit.between in (None, audit.main) else [audit.main, *filter(None, [audit.between])]
        console.print_table(
            ("pairs", "x", "x′", "event", "under x", "under x′", "lower", "seen", "upper", "±"),
            [_row(item) for item in tested],
            title=f"audit of {self.title}",
            right=("x", "x′", "under x", "under x′", "lower", "seen", "upper", "±"),
        )
        exact = "too large to write down" if self.exact is None else _number(self.exact, 6)
        print(
            f"claimed {audit.claim.epsilon:.6g}, realised {self.guarantee.realised_epsilon:.6f}, exact channel {exact}"
        )
        print(
            f"{audit.draws} draws, half to choose the event and half to measure it; confidence {CONFIDENCE}, delta 0. "
            "The bounds are of this event: no audit shows that there is no worse one."
        )
        for line in filter(None, (self.note, self.sentence)):
            print(line)
        print(guarantee_text([self.guarantee]))


def _row(item: Measured) -> tuple[object, ...]:
    low, high = item.bounds
    seen = [f"{count} of {total}" for count, total in zip(item.happened, item.records, strict=True)]
    return (
        item.scope,
        *item.values,
        item.event,
        *seen,
        *map(_number, (low, item.estimate, high, item.half_width)),
    )


def _measured_json(item: Measured) -> dict[str, object]:
    low, high = item.bounds
    return {
        "scope": item.scope,
        "x": item.values[0],
        "x_prime": item.values[1],
        "event": item.event,
        "happened": list(item.happened),
        "records": list(item.records),
        "lower": low,
        "estimate": _finite(item.estimate),
        "upper": _finite(high),
        "half_width": _finite(item.half_width),
    }


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}f}" if isfinite(value) else "no bound"


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
