"""The ``daruma`` command (FA-04). Its modules import the machine late: ``--help`` is quick."""

import logging
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import typer

from daruma.graph.command_line._memory import knowledge_app, memory_app
from daruma.graph.command_line._pitfalls import pitfalls_app
from daruma.graph.command_line._printable import one_line
from daruma.graph.command_line._run import (
    BareDecisions,
    acp,
    answer,
    demo,
    mcp,
    resume,
    retry,
    run,
    tell,
    worker,
)
from daruma.graph.command_line._settings import agreed, doctor, settings, trust
from daruma.graph.command_line._threads import (
    approvals_app,
    graph,
    inbox,
    show,
    threads_app,
    undo,
)
from daruma.state.errors import DarumaError

# --- What went wrong, as one line on standard error and exit code 2; never a bare traceback.

FAILED = 1
USAGE = 2


def failed(error: Exception) -> bool:
    """Whether it is what a task failed of, raised as it is where emergency is switched off."""
    from daruma.graph.models import ScriptedFault
    from daruma.state.failure import TaskFailed, classify

    if isinstance(error, DarumaError):
        return isinstance(error, TaskFailed | ScriptedFault)
    return classify(error) in ("llm_failure", "timeout")


def complaint(error: Exception) -> str | None:
    """Return the one line that says what is wrong and what to do; None for a bug of ours."""
    if isinstance(error, DarumaError):
        return str(error)
    from psycopg import Error
    from psycopg.errors import InsufficientPrivilege

    if isinstance(error, Error):
        reason = " ".join(str(error).split())
        if isinstance(error, InsufficientPrivilege):
            return (
                f"the database refused it ({reason}): its role has to be granted reading and "
                "writing of all tables there, or let DARUMA_POSTGRES_URL name another role"
            )
        return f"the database was lost ({reason}): when it is back, `daruma resume THREAD` goes on"
    if failed(error):
        from daruma.tools.text import without_keys

        reason = " ".join(without_keys(str(error)).split())
        return f"{type(error).__name__}: {reason}; `daruma show THREAD` says where it stands"
    return _of_the_system(error) if isinstance(error, OSError) else None


def _of_the_system(error: OSError) -> str | None:
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the folder that this terminal is in is gone: `cd` to one that is there"
    where = f": {error.filename}" if error.filename else ""
    again = "; `daruma threads` shows what can be resumed"
    return f"{error.strerror}{where}{again}" if error.strerror else None


def kept(error: Exception) -> str:
    """Keep the traceback of a bug in a file, and return the line that says so."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="daruma-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.writelines(traceback.format_exception(error))
    return f"this is a bug ({type(error).__name__}: {error}): report it with {file.name}"


# --- What is said of a command line that can not be read.

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises for a command line that it can not read; it has no public name of its own."""

_MOST: Final = 300
"""Characters of such a line that may quote what was typed."""


def usage_line(error: Exception) -> str:
    """Say what of a command line can not be read, and where it is explained."""
    said: str = getattr(error, "format_message", error.__str__)()
    said, context = one_line(said, _MOST).rstrip("."), getattr(error, "ctx", None)
    if context is None:
        return said
    names = getattr(context.command, "commands", None)
    if said == "Missing command" and names:
        said += f" of `{context.command_path}`: {', '.join(names)}"
    elif said.startswith("Got unexpected extra argument"):
        said += ": put words with spaces in quotes"
    return f"{said}{_as_argument(error, context)}; `{context.command_path} --help` explains it"


def _as_argument(error: Exception, context: Any) -> str:
    """Say that what was given as an option is none: it stands by itself."""
    option = str(getattr(error, "option_name", "")).lstrip("-")
    named = [each for each in context.command.params if option and each.name == option]
    return f": {named[0].metavar} stands without an option before it" if named else ""


def refuse_bytes(args: Sequence[str]) -> None:
    """Refuse what is no text: it could neither be stored nor looked for. Raises DarumaError."""
    for each in args:
        if any("\ud800" <= character <= "\udfff" for character in each):
            raise DarumaError(f"{each!r} is no text in this terminal's encoding: type it anew")


# --- The ``daruma`` command. Its modules import the machine when they need it: ``--help`` is quick.

app = typer.Typer(
    name="daruma",
    help="An agent that falls seven times and gets up eight.",
    pretty_exceptions_enable=False,
)

for command in (
    demo,
    run,
    resume,
    retry,
    answer,
    tell,
    undo,
    inbox,
    show,
    graph,
    settings,
    trust,
    doctor,
    worker,
    mcp,
    acp,
):
    app.command(cls=BareDecisions if command is answer else None)(command)
app.add_typer(threads_app)
app.add_typer(approvals_app)
app.add_typer(memory_app)
app.add_typer(pitfalls_app)
app.add_typer(knowledge_app)


@app.callback(invoke_without_command=True)
def daruma(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """An agent that falls seven times and gets up eight."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"daruma {installed('daruma-agent')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0 completed, 1 failed or gave up, 2 a mistake that a person can mend, 3 waiting for a person,
    130 and 143 cancelled by a signal.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a replaced stream may lack it
            stream.reconfigure(errors="replace")
    logging.basicConfig(handlers=[logging.NullHandler()])  # libraries log what we say in one line
    if "_DARUMA_COMPLETE" in os.environ:
        with suppress(Exception):  # a person presses Tab: there is no place to say what went wrong
            app(args, prog_name="daruma", standalone_mode=False)
        sys.exit(0)
    sys.exit(_exit_code(args))


def _exit_code(args: Sequence[str] | None) -> int:
    try:
        typed = sys.argv[1:] if args is None else args
        refuse_bytes(typed)
        return _run(args)
    except typer.Abort:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be said
        _complain("the output was closed; `daruma threads` shows what can be resumed")
        return 128 + signal.SIGPIPE
    except _UsageError as error:
        return _complain(usage_line(error))
    except Exception as error:  # noqa: BLE001  # a bug is told in one line too, and kept
        return _complain(complaint(error) or kept(error), FAILED if failed(error) else USAGE)


def _run(args: Sequence[str] | None) -> int:
    """Run a command; on a terminal untrusted settings are asked about, and it runs with a yes.

    Settings are read before anything is done, so nothing is done twice.
    """
    try:
        return app(args, prog_name="daruma", standalone_mode=False) or 0
    except DarumaError as error:
        from daruma.state.settings import UntrustedSettings

        typed = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        if not (isinstance(error, UntrustedSettings) and typed and agreed(error.path)):
            raise
    return app(args, prog_name="daruma", standalone_mode=False) or 0


def _complain(text: str, code: int = USAGE) -> int:
    with suppress(OSError):  # closed, or on a full disk: the exit code is left
        typer.echo(f"daruma: {one_line(text, 1000)}", err=True)
    return code
