"""`tallyveil survey`: plan a collection, define it, sign it offline, show it, verify it, compare two.

Not here: handing surveys on (the aggregator) and approving them (the agent).
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from tallyveil.cli import console, files
from tallyveil.cli import plan as planning
from tallyveil.guarantee import NEIGHBOURS, REPLACE_ONE
from tallyveil.survey import MECHANISMS

app = typer.Typer(help="Plan, define, sign, show, verify and compare surveys.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it is there.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A survey file.", show_default=False)]

_NEW_EXAMPLE = (
    "Example: tallyveil survey new --name high-income-age --title 'Age of high-income heads' "
    "--purpose 'Who heads high-income households' --attribute age --domain 15..99 --bins 16 --mechanism brr "
    "--epsilon 2 --dimension sex=Female,Male --opens 2026-12-01 --closes 2027-01-01"
)


app.command(epilog=planning.EXAMPLE)(planning.plan)


@app.command(epilog=_NEW_EXAMPLE)
def new(
    name: Annotated[str, typer.Option(help="Short stable identifier, lower-case.", show_default=False)],
    title: Annotated[str, typer.Option(help="What people read.", show_default=False)],
    purpose: Annotated[str, typer.Option(help="Why it is collected.", show_default=False)],
    attribute: Annotated[str, typer.Option(help="Logical name of the sensitive attribute.", show_default=False)],
    domain: Annotated[
        str,
        typer.Option(help="15..99, 0..100:5 (with a step), a,b,c or [0,1000,5000] (intervals).", show_default=False),
    ],
    epsilon: Annotated[
        list[str], typer.Option(help="Permitted value, 0.01 to 16; repeat for more.", show_default=False)
    ],
    opens: Annotated[
        list[str], typer.Option(help="A round opens: 2026-12-01 or 2026-12-01T08:00:00Z.", show_default=False)
    ],
    closes: Annotated[
        list[str], typer.Option(help="That round closes; repeat the pair for more rounds.", show_default=False)
    ],
    mechanism: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(MECHANISMS)}; or auto. Only brr discloses bins.",
            show_default="on a terminal: a plan, and a question",
        ),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of equal width (the paper's fxs); for brr and brr-sealed.")] = 1,
    neighbours: Annotated[
        str, typer.Option(help=f"{' or '.join(NEIGHBOURS)}: what histogram-laplace hides; the latter hides n too.")
    ] = REPLACE_ONE,
    dimension: Annotated[
        list[str] | None, typer.Option(help="Sent in clear: sex=Female,Male; repeat for more.", show_default=False)
    ] = None,
    version: Annotated[int, typer.Option(help="1, 2, …; any change makes another.")] = 1,
    epsilon_floor: Annotated[
        str | None, typer.Option(help="No permitted value may go below.", show_default="the lowest --epsilon")
    ] = None,
    quota: Annotated[int, typer.Option(help="Records a department may submit in one round.")] = 10_000_000,
    min_departments: Annotated[int, typer.Option(help="Below this many submissions nothing is released.")] = 1,
    min_bin_values: Annotated[int, typer.Option(help="Fewest values in a bin; never below 2.")] = 4,
    expires: Annotated[
        str | None, typer.Option(help="After this moment it is not used.", show_default="90 days after its last round")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="The draft to write.", show_default="NAME-vVERSION.json")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write an unsigned survey, and say how many bins were really made and what is not protected."""
    from tallyveil.cli import survey_options as options
    from tallyveil.cli.survey_files import Found, write_draft
    from tallyveil.cli.survey_view import print_survey, survey_json
    from tallyveil.epsilon import to_nano
    from tallyveil.mechanisms.choice import auto
    from tallyveil.survey import Minimums, Survey

    options.require_readable(
        {"--name": name, "--title": title, "--purpose": purpose, "--attribute": attribute, "--domain": domain}
        | {f"--dimension {number}": text for number, text in enumerate(dimension or (), start=1)}
    )
    epsilons = options.parse_epsilons(epsilon)
    rounds = options.parse_rounds(opens, closes)
    values = options.parse_values(domain)
    if mechanism is None:
        if as_json or not sys.stdin.isatty():
            raise typer.BadParameter(
                "it is missing; see tallyveil survey plan, or run this on a terminal to be shown a plan",
                param_hint="--mechanism",
            )
        mechanism, bins = planning.ask_mechanism(values, epsilons[0], bins)
    with options.making():
        survey = Survey(
            name=name,
            version=version,
            title=title,
            purpose=purpose,
            attribute=attribute,
            domain=values,
            bins=bins,
            mechanism=auto(values.size, epsilons[0]) if mechanism == "auto" else mechanism,
            epsilons=epsilons,
            epsilon_floor=epsilons[0] if epsilon_floor is None else to_nano(epsilon_floor),
            dimensions=tuple(options.parse_dimension(text) for text in dimension or ()),
            rounds=rounds,
            minimums=Minimums(departments=min_departments, bin_values=min_bin_values),
            quota=quota,
            expires=options.expiry(expires, rounds),
            neighbours=neighbours,
        )
    path = output or Path(f"{name}-v{version}.json")
    files.write_file(path, write_draft(survey), force=force)
    if as_json:
        console.print_json({"file": str(path), **survey_json(survey)})
        return
    print_survey(survey, Found(survey, None).standing)
    print(
        f"\nWritten to {console.plain(path)}. Next: tallyveil survey sign {console.plain(path)} --key pki/authority.key"
    )


@app.command(epilog="Example: tallyveil survey sign high-income-age-v1.json --key pki/authority.key")
def sign(
    file: File,
    key: Annotated[Path, typer.Option(help="The survey authority's private key.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(help="The signed file to write.", show_default="NAME-vVERSION.survey")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Sign a draft with the survey authority's key; do it on a machine without a network."""
    from tallyveil.cli.survey_files import read_draft
    from tallyveil.cli.survey_signing import read_signer
    from tallyveil.cli.survey_view import print_survey, survey_json
    from tallyveil.survey import sign_survey

    survey, signer = read_draft(file), read_signer(key)
    path = output or Path(f"{survey.name}-v{survey.version}.survey")
    files.write_file(path, sign_survey(survey, signer.key), force=force)
    if as_json:
        beside = None if signer.compared is None else str(signer.compared)
        console.print_json(
            {"file": str(path), "signer": signer.fingerprint, "compared_with": beside, **survey_json(survey)}
        )
        return
    print_survey(survey, signer.standing)
    print(
        f"\nWritten to {console.plain(path)}. Publish its hash and the key's fingerprint where departments find them."
    )


@app.command(epilog="Example: tallyveil survey show high-income-age-v1.survey")
def show(file: File, as_json: AsJson = False) -> None:
    """Show a draft or a signed survey, without checking who signed it."""
    from tallyveil.cli.survey_files import read_any
    from tallyveil.cli.survey_view import print_survey, survey_json

    found = read_any(file)
    if as_json:
        summary = survey_json(found.survey)
        console.print_json(
            {"verified": False, "claimed_signer": found.signer, **summary, "survey": found.survey.to_json()}
        )
        return
    print_survey(found.survey, found.standing)


@app.command(epilog="Example: tallyveil survey verify high-income-age-v1.survey --key pki/authority.pub")
def verify(
    file: File,
    key: Annotated[Path, typer.Option(help="The survey authority's public key, as you pinned it.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Check a survey's form and signature against the authority's key (exit code 5 where they do not hold)."""
    from tallyveil.cli.survey_files import read_verified
    from tallyveil.cli.survey_view import print_survey, survey_json
    from tallyveil.signing import VerifyingKey

    authority = VerifyingKey.from_pem(files.read_file(key, "the public key"))
    survey = read_verified(file, authority)
    if as_json:
        console.print_json({"verified": True, "signer": authority.fingerprint, **survey_json(survey)})
        return
    print_survey(survey, f"VERIFIED: signed by {authority.fingerprint}, the key in {key}, and unaltered since")


@app.command(epilog="Example: tallyveil survey diff high-income-age-v1.survey high-income-age-v2.survey")
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="A survey file.", show_default=False)],
    after: Annotated[Path, typer.Argument(metavar="B", help="Another.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show what differs between two surveys, unverified, and what both together would disclose."""
    from tallyveil.cli.survey_files import read_any
    from tallyveil.cli.survey_view import differences, refinement, together_text

    first, second = read_any(before).survey, read_any(after).survey
    found, together = differences(first, second), refinement(first, second)
    both = together_text(first, second)
    if as_json:
        listed = [{"field": field, "a": a, "b": b} for field, a, b in found]
        disclosed = None if together is None else together.to_json()
        console.print_json({"same": not found, "hashes": [first.hash, second.hash], "differences": listed,
                            "together": disclosed, "both": both})  # fmt: skip
        return
    if not found:
        print(f"The same survey: hash {first.hash}")
        return
    rows = [(field, "absent" if a is None else a, "absent" if b is None else b) for field, a, b in found]
    console.print_table(("field", "A", "B"), [*rows, ("hash", first.hash, second.hash)])
    print("Both together, over the same people")
    for sentence in both:
        print(fill(console.plain(sentence), console.prose_width(), initial_indent="  - ", subsequent_indent="    "))
