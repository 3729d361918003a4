"""Quality letters: how large the standard error is beside the estimate.

Not here: errors other than the perturbation's (coverage of the register, misreporting) — no letter knows those.
"""

from __future__ import annotations

LIMITS = (("A", 0.05), ("B", 0.15), ("C", 0.25), ("D", 0.35))


def quality_letter(estimate: float, standard_error: float) -> str:
    """A below 5 % coefficient of variation, B below 15, C below 25, D below 35, else E; estimate ≤ 0 is E."""
    if estimate > 0:
        for letter, limit in LIMITS:
            if standard_error < limit * estimate:
                return letter
    return "E"
