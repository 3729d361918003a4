"""Which full epsilon-LDP mechanism has the least error: what `auto` stands for.

Not here: what else a survey's author weighs (the planner). Subset selection has the least total variance of all, at
every K and epsilon; randomised response is the same thing where subsets of one value are best, and cheaper to draw.
"""

from __future__ import annotations

from tallyveil.epsilon import NanoEpsilon
from tallyveil.mechanisms.ss import best_size


def auto(domain_size: int, epsilon: NanoEpsilon) -> str:
    """``"grr"`` where the best subset has one value, ``"ss"`` elsewhere."""
    return "grr" if best_size(domain_size, epsilon) == 1 else "ss"
