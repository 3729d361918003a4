"""`tallyveil agent check`, `preview`, `status` and `ledger`: what is there and what would happen; nothing does.

Not here: what is shown (`tallyveil_client.agent.views`, `standing`).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import typer

from tallyveil_client.agent.commands.options import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    RoundNumber,
    Source,
    Wanted,
    now,
    reading,
)

if TYPE_CHECKING:
    from tallyveil_client.agent.department import Department


def check(
    survey: Wanted = None,
    config: Config = DEFAULT_CONFIG,
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Read and count every record here, and say what a run would do. Draws, charges and sends nothing."""
    from tallyveil.cli import console
    from tallyveil.errors import TallyveilError
    from tallyveil.mechanisms import for_survey
    from tallyveil_client.agent.approval import require_allowed
    from tallyveil_client.agent.collect import collect, require_admissible
    from tallyveil_client.agent.connection import connection_problem, exposed_secrets
    from tallyveil_client.agent.department import open_department
    from tallyveil_client.agent.histogram import histogram_guarantee
    from tallyveil_client.agent.outlook import outlook
    from tallyveil_client.agent.overlap import overlaps, require_nested
    from tallyveil_client.agent.selection import select_survey
    from tallyveil_client.agent.views import Checked

    with open_department(config) as department:
        item = select_survey(department.approved(), survey)
        limits = require_allowed(department, item.survey, item.epsilon, source)
        chosen, cost = department.source(limits), department.cost(item, limits)
        with closing(reading(chosen, item)) as batches:
            collected = collect(batches, item.survey)
        shown, before = department.shown(item.survey, limits, collected.clear_counts), department.shown_before()
        ahead = outlook(department, item, cost, now())
        connection = connection_problem(department.config.aggregator, now())
        problem: TallyveilError | None = connection
        try:
            require_admissible(collected, chosen, item.survey, limits)
            require_nested(shown, before, limits.allow_overlap)
            ahead.require_next(now())
        except TallyveilError as error:
            problem = error
        guarantee = for_survey(item.survey, item.epsilon).guarantee
        checked = Checked(
            item,
            limits,
            collected,
            ahead,
            department.config.aggregator,
            problem,
            connection,
            histogram_guarantee(item.survey, limits, guarantee, collected.clear_counts),
            overlaps(shown, before) if limits.allow_overlap else (),
            exposed_secrets(department.config),
        )
    if not as_json:
        checked.show(now())
        if problem is not None:
            raise problem
        return
    console.print_json(checked.to_json(now()))
    if problem is not None:
        raise typer.Exit(problem.exit_code)


def preview(
    survey: Wanted = None,
    config: Config = DEFAULT_CONFIG,
    number: RoundNumber = None,
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Show what would be sent: real header, cells and sizes, reports of MADE-UP values. Charges and sends nothing."""
    from tallyveil.batch import ID_BYTES, SubmissionKey
    from tallyveil.cli import console
    from tallyveil.mechanisms import for_survey
    from tallyveil.randomness import public_token
    from tallyveil.wire.codec import encode_request
    from tallyveil_client.agent.approval import require_allowed
    from tallyveil_client.agent.collect import Collected, collect, made_up, seal
    from tallyveil_client.agent.department import open_department
    from tallyveil_client.agent.histogram import histogram_guarantee
    from tallyveil_client.agent.selection import round_to_run, select_survey
    from tallyveil_client.agent.views import Previewed

    with open_department(config) as department:
        item = select_survey(department.approved(), survey)
        window = round_to_run(item.survey, now(), number, ())
        limits = require_allowed(department, item.survey, item.epsilon, source)
        with closing(reading(department.source(limits), item)) as batches:
            counted = collect(batches, item.survey)
        name = _department_name(department)
    mechanism = for_survey(item.survey, item.epsilon)
    invented = Collected(counted.summary, counted.clear_counts, made_up(item.survey, mechanism, counted.cell_counts))
    key = SubmissionKey(item.survey.hash, window.number, item.epsilon, bytes(ID_BYTES))
    sealed = seal(invented, mechanism.law, key, public_token)
    sizes = tuple(encode_request(batch).ByteSize() for batch in sealed)
    histogram = histogram_guarantee(item.survey, limits, mechanism.guarantee, counted.clear_counts)
    shown = Previewed(item, name, window.number, mechanism, histogram, sealed, sizes)
    if as_json:
        console.print_json(shown.to_json())
    else:
        shown.show()


def status(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Show approvals, rounds, the outbox and the next step."""
    from tallyveil.cli import console
    from tallyveil_client.agent.department import open_department
    from tallyveil_client.agent.standing import show_standings, standings

    with open_department(config) as department:
        rounds, unverified = standings(department, now()), department.unverified()
    if as_json:
        console.print_json({"rounds": [item.to_json() for item in rounds], "unverified": list(unverified)})
    else:
        show_standings(rounds, unverified)


def ledger(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Show what was charged, what is left, and what the next round would cost."""
    from tallyveil.cli import console
    from tallyveil_client.agent.department import open_department
    from tallyveil_client.agent.standing import ledger_json, show_ledger

    with open_department(config) as department:
        if as_json:
            console.print_json(ledger_json(department, now()))
        else:
            show_ledger(department, now())


def _department_name(department: Department) -> str:
    """Whom our certificate names; empty where there is none that can be read."""
    from tallyveil.cli.files import read_file
    from tallyveil.errors import ConfigurationError
    from tallyveil.identity import identity_of_certificate

    try:
        return identity_of_certificate(read_file(department.config.aggregator.certificate, "our certificate")).name
    except ConfigurationError:
        return ""
