"""`tallyveil pki`: make a CA and signing keys, issue certificates, and show what one states.

Not here: which files there are and for whom (`tallyveil_aggregator.enrolment.layout`). Whatever imports cryptography
is imported inside the commands, so that help comes at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli import console
from tallyveil.errors import ConfigurationError
from tallyveil.moments import moment_text
from tallyveil_aggregator.enrolment import files

if TYPE_CHECKING:
    from tallyveil.identity import Role
    from tallyveil_aggregator.enrolment.layout import Issued, PlannedFile

Fact = str | bool | tuple[str, ...]

LEAF_DAYS = 397
ROOT_DAYS = 3650

app = typer.Typer(
    help="A small certificate authority (CA) and the signing keys for a first deployment.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the CA.", show_default=False)]
Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help="Names: lower-case letters, digits and '-', at most 63.", show_default=False),
]
Days = Annotated[int, typer.Option("--days", help="For how many days it is valid.")]
Replace = Annotated[bool, typer.Option("--replace", help="Issue anew, with a new key, over what is there (renewal).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(epilog="Example: tallyveil pki init ./pki")
def init(folder: Folder, days: Days = ROOT_DAYS, as_json: AsJson = False) -> None:
    """Make the root of the CA, the survey authority's key pair and the release key pair.

    Nothing that is there is ever overwritten: whoever trusts the old keys would be cut off.
    """
    from tallyveil_aggregator.enrolment import layout

    root, fingerprints = layout.plan_root(folder, _now(), days)
    _refuse_another_root([file.path for file in root.files], folder)
    layout.write(root.files, replace=False)
    if as_json:
        console.print_json(_as_json(root) | {"fingerprints": fingerprints})
        return
    _print_files(root.files, f"A new CA, valid until {moment_text(root.facts.not_after)}")
    console.print_table(("file", "fingerprint, to compare by telephone or on paper"), list(fingerprints.items()))
    print(
        "Keep ca.key and authority.key on a machine without a network, and a backup of them: who holds them can\n"
        "pose as anybody and define any survey. The aggregator needs release.key, ca.pem and authority.pub."
    )


@app.command(epilog="Example: tallyveil pki server ./pki --name stats.example.org --name 192.0.2.7")
def server(
    folder: Folder,
    name: Annotated[
        list[str],
        typer.Option(
            "--name", help="A DNS name or IP address that clients dial; repeat it for more.", show_default=False
        ),
    ],
    days: Days = LEAF_DAYS,
    replace: Replace = False,
    as_json: AsJson = False,
) -> None:
    """Issue the aggregator's server certificate, for all the names by which clients dial it."""
    from tallyveil_aggregator.enrolment import layout

    issued = layout.plan_server(folder, name, _now(), days)
    _refuse_existing(issued.files, replace)
    layout.write(issued.files, replace=replace)
    names = [*issued.facts.dns_names, *issued.facts.ip_addresses]
    if as_json:
        console.print_json(_as_json(issued) | {"names": names})
        return
    until = moment_text(issued.facts.not_after)
    _print_files(issued.files, f"A server certificate for {', '.join(names)}, valid until {until}")
    print(f"Move server.key to the aggregator with server.pem and ca.pem; clients dial {' or '.join(names)}.")


@app.command(epilog="Example: tallyveil pki department ./pki health education")
def department(
    folder: Folder, ids: Ids, days: Days = LEAF_DAYS, replace: Replace = False, as_json: AsJson = False
) -> None:
    """Issue certificates for departments: with them their agents connect."""
    from tallyveil.identity import Role

    _issue_clients(folder, Role.DEPARTMENT, ids, days, replace, as_json)


@app.command(epilog="Example: tallyveil pki operator ./pki alice")
def operator(
    folder: Folder, ids: Ids, days: Days = LEAF_DAYS, replace: Replace = False, as_json: AsJson = False
) -> None:
    """Issue certificates for operators: with them people administer the aggregator."""
    from tallyveil.identity import Role

    _issue_clients(folder, Role.OPERATOR, ids, days, replace, as_json)


@app.command(epilog="Example: tallyveil pki consumer ./pki newsroom")
def consumer(
    folder: Folder, ids: Ids, days: Days = LEAF_DAYS, replace: Replace = False, as_json: AsJson = False
) -> None:
    """Issue certificates for consumers: with them people and programs read statistics."""
    from tallyveil.identity import Role

    _issue_clients(folder, Role.CONSUMER, ids, days, replace, as_json)


@app.command(epilog="Example: tallyveil pki show ./pki/server.pem --ca ./pki/ca.pem --host localhost")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A certificate or public key.", show_default=False)],
    ca: Annotated[
        Path | None, typer.Option("--ca", help="Look for faults too: the CA file that the peer trusts.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="With --ca: the name or address that is dialled.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="With --ca: the private key beside it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a certificate or public key states and, with --ca, what is wrong with it (exit code 2)."""
    from tallyveil.identity import diagnose

    if ca is None and (host is not None or key is not None):
        raise ConfigurationError(
            "--host and --key look for faults, which needs --ca", not_done="nothing was shown", next_step="add --ca"
        )
    data = files.read_file(file, "name a certificate, for example DIR/ca.pem")
    facts = _facts_of(file, data)
    problems: list[str] = []
    if ca is not None:
        trusted = files.read_file(ca, "name the CA's ca.pem")
        key_pem = None if key is None else files.read_file(key, "name the private key")
        problems = diagnose(data, trusted, _now(), dialled_host=host, key_pem=key_pem)
    if as_json:
        console.print_json(facts if ca is None else {**facts, "problems": problems})
    else:
        rows = [(name.replace("_", " "), value) for name, value in facts.items()]
        console.print_table(("what", "value"), [(name, _cell(value)) for name, value in rows], title=str(file))
        for problem in problems:
            print(console.plain(f"wrong: {problem}"))
        if ca is not None and not problems:
            print("Nothing wrong was found.")
    if problems:
        raise typer.Exit(ConfigurationError.exit_code)


def _issue_clients(folder: Path, role: Role, ids: Sequence[str], days: int, replace: bool, as_json: bool) -> None:
    from tallyveil_aggregator.enrolment import layout

    # All are planned and checked before the first is written: a mistake in the last leaves nothing half done.
    issued = layout.plan_clients(folder, role, ids, _now(), days)
    if not replace:
        _refuse_holders(folder, role, dict(zip(ids, issued, strict=True)))
    with console.progress("writing certificates", len(issued)) as advance:
        for one in issued:
            layout.write(one.files, replace=replace)
            advance(1)
    if as_json:
        console.print_json({"issued": [_as_json(one) for one in issued]})
        return
    console.print_table(
        ("identity", "folder", "valid until"),
        [(one.facts.uris[0], one.files[0].path.parent, moment_text(one.facts.not_after)) for one in issued],
    )
    first = issued[0].files
    console.print_table(
        ("in each folder", "keep", "what for"), [(file.path.name, file.keep, file.purpose) for file in first]
    )
    print(f"Hand each folder to its {role} over a channel you trust, then delete private.key here.")


def _refuse_another_root(paths: Sequence[Path], folder: Path) -> None:
    """Refuse where any file of a root is there, and name those of the set that are not."""
    missing = [path.name for path in paths if not os.path.lexists(path)]
    if len(missing) == len(paths):
        return
    there = f"already there: {', '.join(str(path) for path in paths if path.name not in missing)}"
    if not missing:
        raise ConfigurationError(
            f"{there}: a whole CA",
            not_done="nothing was written",
            next_step="use it as it is, or choose another folder for a new one",
        )
    raise ConfigurationError(
        f"{there}; missing of the set: {', '.join(missing)}",
        not_done="nothing was written",
        next_step=f"copy what is missing back into {folder} from where it is kept, since a new key would not fit what "
        "is there; or make a new CA in another folder",
    )


def _refuse_holders(folder: Path, role: Role, issued: Mapping[str, Issued]) -> None:
    """Refuse where a holder has files already, and say whom to leave out."""
    having = [name for name, one in issued.items() if any(os.path.lexists(file.path) for file in one.files)]
    if not having:
        return
    names = " ".join(having)
    anew = f"tallyveil pki {role} {folder} {names} --replace"
    others = len(having) < len(issued)
    raise ConfigurationError(
        f"already there: {', '.join(str(issued[name].files[0].path.parent) for name in having)}",
        not_done="nothing was written",
        next_step=(f"leave {' and '.join(having)} out" if others else "use what is there")
        + f"; to issue anew with a new key, as for a renewal: {anew}",
    )


def _refuse_existing(planned: Sequence[PlannedFile], replace: bool) -> None:
    if not replace:
        files.refuse_existing(
            (file.path for file in planned), "to issue anew with a new key, over these, add --replace"
        )


def _facts_of(file: Path, data: bytes) -> dict[str, Fact]:
    """What a certificate or public key states, ready for JSON."""
    from tallyveil.identity import describe_certificate
    from tallyveil.signing import VerifyingKey

    if b"PRIVATE KEY-----" in data:
        raise ConfigurationError(
            f"{file} is a private key, which is never shown",
            not_done="nothing was shown",
            next_step="show the certificate or public key beside it",
        )
    if b"-----BEGIN PUBLIC KEY-----" in data:
        return {"kind": "public key", "fingerprint": VerifyingKey.from_pem(data).fingerprint}
    facts = describe_certificate(data)
    moments = {"not_before": moment_text(facts.not_before), "not_after": moment_text(facts.not_after)}
    return {"kind": "certificate", **asdict(facts), **moments}


def _as_json(issued: Issued) -> dict[str, object]:
    facts = issued.facts
    return {
        "identity": facts.uris[0] if facts.uris else None,
        "serial": facts.serial,
        "fingerprint": facts.fingerprint,
        "not_after": moment_text(facts.not_after),
        "files": [
            {"path": str(file.path), "secret": file.is_secret, "keep": file.keep, "purpose": file.purpose}
            for file in issued.files
        ],
    }


def _print_files(planned: Sequence[PlannedFile], title: str) -> None:
    rows = [(file.path, file.keep, file.purpose) for file in planned]
    console.print_table(("file", "keep", "what for"), rows, title=title)


def _cell(fact: Fact) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return (", ".join(fact) or "none") if isinstance(fact, tuple) else fact or "not stated"


def _now() -> datetime:
    return datetime.now(UTC)
