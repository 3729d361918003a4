"""`tallyveil survey plan`: what each mechanism would give, before a survey is made; and the same as a walk in `new`.

Not here: the arithmetic (`tallyveil.planner`). Nothing is read but a prior, if one is named.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli import console, files
from tallyveil.survey import BINNED, MECHANISMS

if TYPE_CHECKING:
    from tallyveil.domain import Domain
    from tallyveil.epsilon import NanoEpsilon
    from tallyveil.planner import Option, Plan, Question

EXAMPLE = (
    "Example: tallyveil survey plan --domain 15..99 --records 16685 --epsilon 2 --bins 8,16 --departments 17 "
    "--target-error 10%"
)
MAX_LISTED_VALUES = 4_096
"""JSON holds the standard error of each value for domains up to this size."""

_WIDTH = 100


def plan(
    domain: Annotated[
        str,
        typer.Option(help="15..99, 0..100:5 (with a step), a,b,c or [0,1000,5000] (intervals).", show_default=False),
    ],
    records: Annotated[int, typer.Option(help="Records expected, all departments together.", show_default=False)],
    epsilon: Annotated[str, typer.Option(help="Of one report, 0.01 to 16.", show_default=False)],
    bins: Annotated[
        str | None,
        typer.Option(help="Bin counts to try with brr and brr-sealed: 8,16.", show_default="up to three that fit"),
    ] = None,
    departments: Annotated[
        str, typer.Option(help="How many, with equal shares; or the records of each: 9000,5000,2685.")
    ] = "1",
    target_error: Annotated[
        str | None,
        typer.Option(help="MAPE wanted: 10%; tells the epsilon or the records it needs.", show_default=False),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            help="CSV of label,count: about how frequent each value is.", show_default="values equally frequent"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all there is.")] = False,
) -> None:
    """Show for each mechanism its guarantee, expected error and size, and what it does not protect; make nothing."""
    from tallyveil.cli import survey_options as options
    from tallyveil.domain import parse_domain
    from tallyveil.epsilon import to_nano
    from tallyveil.planner import Question, read_prior, shares_of

    values = parse_domain(domain)
    question = Question(
        domain_size=values.size,
        records=records,
        epsilon=to_nano(epsilon),
        shares=shares_of(records, options.parse_departments(departments)),
        bins=options.parse_bins(bins),
        prior=None if prior is None else read_prior(files.read_file(prior, "the prior"), values),
        target=None if target_error is None else options.parse_target(target_error),
    )
    made = _worked_out(question)
    if as_json:
        console.print_json(plan_json(made))
    else:
        print_plan(made)


def ask_mechanism(domain: Domain, epsilon: NanoEpsilon, bins: int) -> tuple[str, int]:
    """Show the author a plan on the terminal, and ask which mechanism, and bins where it bins, the survey is to have.

    Args:
        domain: Of the survey.
        epsilon: The lowest one it permits.
        bins: As given; asked for where it is 1 and the mechanism bins.
    """
    from tallyveil.planner import Question, best, shares_of

    records: int = typer.prompt("About how many records, all departments together", type=int)
    departments: int = typer.prompt("Of how many departments", type=int, default=1)
    question = Question(domain.size, records, epsilon, shares_of(records, departments), (bins,) if bins > 1 else ())
    made = _worked_out(question)
    print_plan(made)
    mechanism: str = typer.prompt("Mechanism", default=best(made).mechanism, value_proc=_known_mechanism)
    if mechanism in BINNED and bins == 1:
        bins = typer.prompt("Bins", type=int, default=max(question.tried_bins, default=1))
    return mechanism, bins


def print_plan(made: Plan) -> None:
    """A table for each kind of guarantee, within 100 columns, and the recommendation."""
    from tallyveil.epsilon import epsilon_text
    from tallyveil.guarantee import KIND_WITHIN_BIN, KINDS
    from tallyveil.planner import recommendation

    question = made.question
    present = sum(count > 0 for count in question.counts(1.0))
    departments = f"{question.departments} department{'s' if question.departments > 1 else ''}"
    _say(
        f"{question.domain_size} values, {question.records:,} records, {departments}, epsilon "
        f"{epsilon_text(question.epsilon)}; {question.case}. se: standard error in records, of the perturbation only, "
        f"of a value{_bins_explained(question)}. MAPE: over {present} values with records. bytes: payload of the "
        f"largest department.{_target_explained(question)}"
    )
    for kind in KINDS:
        options = [option for option in made.options if option.guarantee.kind == kind]
        if not options:
            continue
        headers = _headers(question)
        print(f"\n{kind}{' (only where asked for by name)' if kind == KIND_WITHIN_BIN else ''}")
        console.print_table(headers, [_row(option, question) for option in options], right=headers[1:])
        for phrase in dict.fromkeys(phrase for option in options for phrase in option.guarantee.not_protected):
            _say(f"NOT protected: {phrase}", "  ")
    print()
    for item in made.skipped:
        _say(f"Left out: {item.mechanism}{f' with {item.bins} bins' if item.bins > 1 else ''}: {item.reason}.")
    for label, caution in [("", text) for text in made.cautions] + [
        (f"{option.label}: ", text) for option in made.options for text in option.cautions
    ]:
        _say(f"Caution: {label}{caution}.")
    _say(recommendation(made))


def plan_json(made: Plan) -> dict[str, object]:
    """All of a plan, for machines; None where something is not worked out or not reachable."""
    from tallyveil.epsilon import NANO
    from tallyveil.planner import best, recommendation

    question = made.question
    return {
        "values": question.domain_size,
        "records": question.records,
        "epsilon": question.epsilon / NANO,
        "departments": question.departments,
        "largest_department_records": max(question.shares),
        "bins": list(question.tried_bins),
        "case": question.case,
        "values_with_records": sum(count > 0 for count in question.counts(1.0)),
        "target_mape": question.target,
        "recommended": best(made).mechanism,
        "recommendation": recommendation(made),
        "cautions": list(made.cautions),
        "options": [_option_json(option) for option in made.options],
        "left_out": [{"mechanism": item.mechanism, "bins": item.bins, "reason": item.reason} for item in made.skipped],
    }


def _option_json(option: Option) -> dict[str, object]:
    from tallyveil.cli.guarantees import guarantee_json
    from tallyveil.epsilon import NANO

    errors = option.standard_errors
    return {
        "mechanism": option.mechanism,
        "bins": option.bins,
        "guarantee": guarantee_json(option.guarantee),
        "standard_error": option.cell_error,
        "largest_standard_error": errors.max(),
        "standard_errors": errors if errors.size <= MAX_LISTED_VALUES else None,
        "bin_standard_errors": {str(bins): error for bins, error in option.bin_errors.items()},
        "mape": option.mape,
        "bytes_per_department": option.bytes_per_department,
        "epsilon_needed": None if option.epsilon_needed is None else option.epsilon_needed / NANO,
        "records_needed": option.records_needed,
        "cautions": list(option.cautions),
    }


def _worked_out(question: Question) -> Plan:
    from tallyveil.planner import candidates, make_plan

    with console.progress("planning", len(candidates(question))) as advance:
        return make_plan(question, advance)


def _bins_explained(question: Question) -> str:
    if not question.tried_bins:
        return ""
    return f", and of the total of one of {max(question.tried_bins)} bins"


def _target_explained(question: Question) -> str:
    if question.target is None:
        return ""
    wanted = f"{100 * question.target:g} %"
    return f" epsilon {wanted}: what a MAPE of {wanted} needs at these records; records {wanted}: at this epsilon."


def _headers(question: Question) -> list[str]:
    headers = ["mechanism", "bins", "se value", "MAPE %"]
    if question.tried_bins:
        headers.append("se bin")
    headers.append("bytes")
    if question.target is not None:
        wanted = f"{100 * question.target:g} %"
        headers += [f"epsilon {wanted}", f"records {wanted}"]
    return headers


def _row(option: Option, question: Question) -> list[str]:
    from tallyveil.epsilon import epsilon_text
    from tallyveil.planner import number_text

    bins = f"{option.bins}" if option.mechanism in BINNED else ""
    row = [option.mechanism, bins, number_text(option.cell_error), number_text(100 * option.mape)]
    if question.tried_bins:
        error = option.bin_errors[max(question.tried_bins)]
        row.append("too large" if error is None else number_text(error))
    row.append(f"{option.bytes_per_department:,}")
    if question.target is not None:
        epsilon, records = option.epsilon_needed, option.records_needed
        row += ["none to 16" if epsilon is None else epsilon_text(epsilon), "no number" if records is None else
                number_text(records)]  # fmt: skip
    return row


def _known_mechanism(text: str) -> str:
    name = text.strip()
    if name not in (*MECHANISMS, "auto"):
        raise typer.BadParameter(f"one of {', '.join(MECHANISMS)}, or auto")
    return name


def _say(text: str, indent: str = "") -> None:
    print(fill(console.plain(text), _WIDTH, initial_indent=indent, subsequent_indent=indent))
