"""The `tallyveil` command: dispatch to subcommands, and what failures say."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Annotated, NoReturn

import pytest
import typer

from tallyveil import __version__
from tallyveil.cli import dispatch, failures
from tallyveil.errors import InternalError, PolicyError

CANARY = "canary-4711"
COMMAND = Path(sys.executable).parent / "tallyveil"

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put subcommands of the test's own in place of the installed ones."""

    def put(**loaders: dispatch.Loader) -> None:
        monkeypatch.setattr(dispatch, "installed", lambda: loaders)

    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("TALLYVEIL_DEBUG", raising=False)
    return put


def one_command(act: Callable[[], object], explanation: str = "Do the one thing.") -> dispatch.Loader:
    """A subcommand that is a single command."""

    def load() -> typer.Typer:
        app = typer.Typer()

        def go(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
            act()

        app.command(help=explanation)(go)
        return app

    return load


def two_commands(act: Callable[[], object]) -> dispatch.Loader:
    """A subcommand that is a group."""

    def load() -> typer.Typer:
        app = typer.Typer(help="Hold two commands.", no_args_is_help=True)
        app.command("first")(act)
        app.command("second")(act)
        return app

    return load


def raising(error: BaseException) -> dispatch.Loader:
    def act() -> NoReturn:
        raise error

    return one_command(act)


def nothing() -> None:
    pass


def unimportable(name: str) -> dispatch.Loader:
    def load() -> NoReturn:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    return load


def test_a_subcommand_runs_without_loading_any_other(install: Install) -> None:
    ran: list[str] = []
    install(
        agent=two_commands(lambda: ran.append("agent")),
        bench=one_command(lambda: ran.append("bench")),
        aggregator=lambda: pytest.fail("loaded"),
    )
    assert dispatch.run(["agent", "second"]) == 0
    assert dispatch.run(["bench"]) == 0
    assert ran == ["agent", "bench"]


def test_help_lists_every_subcommand_with_its_own_first_line(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(agent=two_commands(nothing), bench=one_command(nothing, "Measure things."))
    assert dispatch.run(["--help"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"agent +Hold two commands\.", text)
    assert re.search(r"bench +Measure things\.", text)


def test_help_says_what_to_install_for_a_subcommand_that_cannot_load(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(agent=two_commands(nothing), aggregator=unimportable("sqlalchemy"))
    assert dispatch.run(["--help"]) == 0
    assert re.search(
        r"aggregator +Not available here\. .*pip install 'tallyveil\[aggregator\]'", capsys.readouterr().out
    )


def test_an_unknown_subcommand_is_a_usage_error_with_a_suggestion(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(agent=two_commands(nothing))
    assert dispatch.run(["agnt"]) == 2
    assert "Did you mean 'agent'?" in capsys.readouterr().err


def test_a_usage_error_is_json_when_json_is_asked_for(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(bench=one_command(nothing))
    assert dispatch.run(["bench", "--json", "--no-such"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "usage"
    assert error["next"] == "see tallyveil bench --help"


def test_the_version_is_told_without_loading_anything(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(agent=lambda: pytest.fail("loaded"))
    assert dispatch.run(["--version"]) == 0
    assert capsys.readouterr().out == f"tallyveil {__version__}\n"


@pytest.mark.parametrize("when", ["on load", "while running"])
def test_a_missing_package_names_the_extra_to_install(
    install: Install, capsys: pytest.CaptureFixture[str], when: str
) -> None:
    load = unimportable("sqlalchemy.engine")
    install(aggregator=load if when == "on load" else one_command(load))
    assert dispatch.run(["aggregator"]) == 2
    assert capsys.readouterr().err == (
        "error: this needs the package sqlalchemy\nnext: Install it: pip install 'tallyveil[aggregator]'\n"
    )


def test_every_package_of_an_extra_is_known_by_the_name_it_is_imported_as() -> None:
    modules = {
        re.sub(r"[-_.]+", "-", distribution).lower(): module
        for module, distributions in packages_distributions().items()
        for distribution in distributions
    }
    for requirement in requires("tallyveil") or []:
        match = re.match(r"([\w.-]+).*extra == '(agent|aggregator|consumer)'", requirement)
        if match:
            error = ModuleNotFoundError(name=modules[match[1].lower()])
            assert f"tallyveil[{match[2]}]" in failures.remedy(error)


def test_an_error_of_ours_says_what_was_not_done_and_what_to_do(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(agent=raising(PolicyError("over budget", not_done="nothing was sent", next_step="wait")))
    assert dispatch.run(["agent"]) == PolicyError.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: over budget\nnot done: nothing was sent\nnext: wait\n"


def test_an_error_of_ours_is_json_when_json_is_asked_for(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(agent=raising(PolicyError("over budget", not_done="nothing was sent", next_step="wait")))
    assert dispatch.run(["agent", "--json"]) == PolicyError.exit_code
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "error": {
            "kind": "policy",
            "what": "over budget",
            "not_done": "nothing was sent",
            "next": "wait",
        }
    }


def test_an_error_cannot_steer_the_terminal(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(agent=raising(PolicyError("department \x1b[2J 统计")))
    dispatch.run(["agent"])
    assert capsys.readouterr().err == "error: department \N{REPLACEMENT CHARACTER}[2J 统计\n"


@pytest.mark.parametrize("debug", ["0", "1"])
@pytest.mark.parametrize("arguments", [["agent"], ["agent", "--json"]])
def test_an_unexpected_error_shows_its_type_and_no_value(
    install: Install,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    debug: str,
) -> None:
    def act() -> None:
        try:
            int(CANARY)
        except ValueError as error:
            raise KeyError(CANARY) from error

    monkeypatch.setenv("TALLYVEIL_DEBUG", debug)
    install(agent=one_command(act))
    assert dispatch.run(arguments) == InternalError.exit_code
    out, err = capsys.readouterr()
    assert CANARY not in out + err
    assert "KeyError: this is our fault" in out + err
    assert ("ValueError at\n" in err and "in act" in err) == (debug == "1")


def test_an_interrupt_says_so(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(agent=raising(KeyboardInterrupt()))
    assert dispatch.run(["agent"]) == 130
    assert capsys.readouterr().err.startswith("error: interrupted")


def test_a_peer_that_leaves_is_not_taken_for_the_reader(install: Install) -> None:
    install(agent=raising(BrokenPipeError()))
    assert dispatch.run(["agent"]) == InternalError.exit_code


def test_a_command_may_choose_its_exit_code(install: Install) -> None:
    install(agent=raising(typer.Exit(9)))
    assert dispatch.run(["agent"]) == 9


@pytest.mark.parametrize("where", ["thread", "finaliser"])
def test_an_error_beside_the_command_shows_no_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    class Careless:
        def __del__(self) -> None:
            raise ValueError(CANARY)

    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    failures.silence_other_threads()
    if where == "thread":
        thread = threading.Thread(target=int, args=(CANARY,))
        thread.start()
        thread.join()
    else:
        Careless()
    err = capsys.readouterr().err
    assert "unexpected ValueError beside the command" in err
    assert CANARY not in err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_no_error(unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as nobody:
        done = subprocess.run(
            [COMMAND, "--version"], stdout=nobody, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )
    assert (done.returncode, done.stderr) == (failures.READER_LEFT, "")


def test_starting_imports_nothing_heavy() -> None:
    script = (
        "import sys; from tallyveil.cli import dispatch; dispatch.run(['--version']);"
        "print([m for m in ('numpy', 'grpc', 'rich', 'google', 'cryptography') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["agent", "run"], "neither charged nor sent"),
        (["agent", "approve"], "store had not committed"),
        (["demo"], "removed"),
        (["survey", "new"], "did not finish"),
        (["simulate"], "did not finish"),
    ],
)
def test_an_interrupt_says_what_is_true_of_that_command(
    install: Install, capsys: pytest.CaptureFixture[str], command: list[str], says: str
) -> None:
    def act() -> NoReturn:
        raise KeyboardInterrupt

    app = typer.Typer()
    app.callback(invoke_without_command=True)(act if len(command) == 1 else nothing)
    app.command(command[-1])(act)
    install(**{command[0]: lambda: app})
    assert dispatch.run(command) == failures.INTERRUPTED
    said = capsys.readouterr().err
    assert says in said
    assert ("run it again" in said) == (command[0] == "agent")


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ("n\n", failures.NOT_CONFIRMED, "error: not confirmed\nnot done: nothing was done\n"),
        ("", failures.NOT_CONFIRMED, "error: not confirmed\nnot done: nothing was done\n"),
        (None, failures.INTERRUPTED, "error: interrupted\n"),
    ],
    ids=["no", "nobody", "Ctrl-C"],
)
def test_a_question_that_is_not_answered_yes_is_not_confirmed(
    install: Install,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str | None,
    code: int,
    says: str,
) -> None:
    class Stopping:
        def readline(self) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Stopping() if answer is None else io.StringIO(answer))
    install(bench=one_command(lambda: typer.confirm("Really?", abort=True)))
    assert dispatch.run(["bench"]) == code
    assert capsys.readouterr().err.lstrip().startswith(says)
