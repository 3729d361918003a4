"""Which option to take, in one sentence: full epsilon-LDP unless the author asks for disclosed bins by name.

Not here: the numbers (`options`), and the words of guarantees (`tallyveil.guarantee`).
"""

from __future__ import annotations

from tallyveil.guarantee import KIND_LDP, KIND_WITHIN_BIN
from tallyveil.mechanisms.choice import auto
from tallyveil.planner.options import Option, Plan

WORTH_IT = 1.02
"""Another mechanism's total variance must be this much better than that of `auto` to be preferred in a stated case."""


def best(plan: Plan) -> Option:
    """The recommended option: `auto`'s, unless another full epsilon-LDP one has less total variance in this case."""
    full = [option for option in plan.options if option.guarantee.kind == KIND_LDP]
    least = min(full, key=lambda option: option.total_variance)
    name = auto(plan.question.domain_size, plan.question.epsilon)
    usual = next(option for option in full if option.mechanism == name)
    return usual if usual.total_variance <= WORTH_IT * least.total_variance else least


def recommendation(plan: Plan) -> str:
    """One sentence: the best full epsilon-LDP option, and what disclosing bins would gain and cost."""
    chosen = best(plan)
    taken = (
        f"Take {chosen.label}: of the mechanisms that are {chosen.guarantee.kind} over all "
        f"{plan.question.domain_size} values it has the least error, {_errors(chosen)}"
    )
    binned = [option for option in plan.options if option.guarantee.kind == KIND_WITHIN_BIN]
    if not binned:
        return f"{taken}."
    rival = min(binned, key=lambda option: option.mape)
    if rival.mape >= chosen.mape:
        return f"{taken}; disclosing {max(option.bins for option in binned)} bins or fewer would gain nothing."
    return (
        f"{taken}; {rival.label}, {rival.guarantee.kind}, would bring that to {_errors(rival)}, and does not protect "
        f"{rival.guarantee.not_protected[0]}."
    )


def _errors(option: Option) -> str:
    return f"{number_text(option.cell_error)} records a value (MAPE {number_text(100 * option.mape)} %)"


def number_text(value: float) -> str:
    """Whole numbers as they are, others with at least three significant digits; as a power of ten from 10^9 on."""
    if value >= 1e9:
        return f"{value:.2e}"
    if isinstance(value, int) or value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.3g}"
