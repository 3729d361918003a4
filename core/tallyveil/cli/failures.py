"""What a failed command says and returns: one screen, no traceback, never a raw value.

Not here: the errors themselves (`tallyveil.errors`), nor logs of a running service (`tallyveil.cli.logs`).
"""

from __future__ import annotations

import os
import select
import sys
import threading
import traceback
from types import TracebackType

import typer

from tallyveil.cli.console import json_text, plain
from tallyveil.errors import ConfigurationError, InternalError, TallyveilError

INTERRUPTED = 130
NOT_CONFIRMED = 1
READER_LEFT = 141

# What a role's extra brings, by the name it is imported as.
_EXTRA_OF = {
    "adbc_driver_manager": "agent",
    "adbc_driver_postgresql": "agent",
    "pyarrow": "agent",
    "grpc_health": "aggregator",
    "grpc_reflection": "aggregator",
    "sqlalchemy": "aggregator",
    "psutil": "dev",
}


def report(error: BaseException, *, as_json: bool, command: str = "") -> int:
    """Tell what ended a command.

    Args:
        error: What it raised.
        as_json: Whether to print one JSON object on standard output in place of lines on standard error.
        command: The words that named it: ``agent run``.

    Returns:
        The exit code.

    Raises:
        SystemExit: It is what ended the command.

    Privacy:
        Of an error that is not ours only the type is shown: its message could quote a record.
    """
    match error:
        case typer.Exit():
            return error.exit_code
        case SystemExit():
            raise error
        case BrokenPipeError() if _reader_left():
            return READER_LEFT
        case typer.Abort() if not isinstance(error.__context__, KeyboardInterrupt):
            step = "answer y to the question; where nobody can answer, see the command's --help"
            return _tell(as_json, "not-confirmed", "not confirmed", "nothing was done", step, NOT_CONFIRMED)
        case KeyboardInterrupt() | typer.Abort():
            return _tell(as_json, "interrupted", "interrupted", *_after_interrupt(command), INTERRUPTED)
        case typer.TyperException():
            return _tell_usage(error, as_json)
        case TallyveilError():
            return _tell_ours(error, as_json)
        case ModuleNotFoundError() if _extra_for(error):
            return _tell_ours(
                ConfigurationError(f"this needs the package {_top(error)}", next_step=remedy(error)), as_json
            )
        case _:
            code = _tell_ours(unexpected(error), as_json)
            if os.environ.get("TALLYVEIL_DEBUG") == "1":
                print("\n".join(frames(error)), file=sys.stderr)
            return code


def unexpected(error: BaseException) -> InternalError:
    """An error nobody foresaw, as one of ours that names its type and nothing else."""
    return InternalError(
        f"unexpected {type(error).__name__}: this is our fault",
        next_step="please report it, with the lines that TALLYVEIL_DEBUG=1 adds (they hold no data)",
    )


def remedy(error: ImportError) -> str:
    """One sentence on what to install for a module that cannot be imported."""
    extra = _extra_for(error)
    return f"Install it: pip install 'tallyveil[{extra}]'" if extra else "Install tallyveil again."


def frames(error: BaseException) -> list[str]:
    """Where an error came from, causes first: types and places, no messages and no values."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    lines = frames(before) if before else []
    lines.append(f"{type(error).__name__} at")
    lines += [f"  {f.filename}:{f.lineno} in {f.name}" for f in traceback.extract_tb(error.__traceback__)]
    return lines


def flush_output(code: int) -> int:
    """Write out what standard output still holds; ``code``, or if all else went well, that its reader has left."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return code or READER_LEFT
    return code


def silence_other_threads() -> None:
    """Let errors that no command can catch, in threads and finalisers, show their type only."""

    def hook(happened: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
        _tell_quietly(happened.exc_type, happened.exc_traceback)

    threading.excepthook = hook
    sys.unraisablehook = hook


def _tell_quietly(kind: type[BaseException], where: TracebackType | None) -> None:
    place = traceback.extract_tb(where)[-1:] if where else []
    at = "".join(f" at {frame.filename}:{frame.lineno}" for frame in place)
    print(f"error: unexpected {kind.__name__} beside the command{at}", file=sys.stderr)


def _after_interrupt(command: str) -> tuple[str, str]:
    """What did not happen then, and what to do next: true for that command."""
    role = command.partition(" ")[0]
    if command == "agent run":
        return (
            "what its store had not committed was neither charged nor sent",
            "run it again: what is stored is sent as it is, and not charged a second time",
        )
    if role in ("agent", "aggregator"):
        return "what its store had not committed did not happen", f"see tallyveil {command} --help, and run it again"
    if role == "demo":
        return "the demo did not finish; the files it had made are removed", ""
    return "the command did not finish", ""


def _extra_for(error: ImportError) -> str:
    return _EXTRA_OF.get(_top(error), "")


def _top(error: ImportError) -> str:
    return (error.name or "").partition(".")[0]


def _tell_ours(error: TallyveilError, as_json: bool) -> int:
    return _tell(as_json, error.kind, error.what, error.not_done, error.next_step, error.exit_code)


def _tell_usage(error: typer.TyperException, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    show = getattr(error, "show", None)
    if show and not as_json:
        show()  # usage, the option in question and where help is
    else:
        see = f"see {context.command_path} --help" if context else ""
        _tell(as_json, "usage", error.format_message(), "nothing was run", see, 2)
    return error.exit_code


def _tell(as_json: bool, kind: str, what: str, not_done: str, next_step: str, code: int) -> int:
    if as_json:
        body = {"kind": kind, "what": what, "not_done": not_done, "next": next_step}
        print(json_text({"error": body}))
    else:
        for label, text in (("error", what), ("not done", not_done), ("next", next_step)):
            if text:
                print(f"{label}: {plain(text)}", file=sys.stderr)
    return code


def _reader_left() -> bool:
    """Whether it is our own standard output that nobody reads any more; if so, the rest goes nowhere."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except OSError:
        return False  # standard output is no file: something in this process has taken its place
    if not poll.poll(0):
        return False
    _discard_output()
    return True


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
