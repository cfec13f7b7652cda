"""The ``daruma`` command (FA-04). Its modules import the machine late: ``--help`` is quick."""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from daruma.graph.command_line._memory import knowledge_app, memory_app, pitfalls_app
from daruma.graph.command_line._messages import (
    FAILED,
    USAGE,
    UsageMistake,
    complaint,
    failed,
    kept,
    one_line,
    usage_line,
)
from daruma.graph.command_line._run import (
    BareDecisions,
    acp,
    answer,
    chat,
    demo,
    mcp,
    resume,
    retry,
    run,
    tell,
    worker,
)
from daruma.graph.command_line._settings import agreed, doctor, settings, trust
from daruma.graph.command_line._threads import approvals_app, graph, inbox, show, threads_app, undo
from daruma.state.errors import DarumaError

app = typer.Typer(
    name="daruma",
    help="An agent that falls seven times and gets up eight.",
    pretty_exceptions_enable=False,
)

for command in (
    demo,
    run,
    chat,
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
for commands in (threads_app, approvals_app, memory_app, pitfalls_app, knowledge_app):
    app.add_typer(commands)


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
        for each in sys.argv[1:] if args is None else args:
            if any("\ud800" <= character <= "\udfff" for character in each):
                # It could neither be stored nor looked for.
                raise DarumaError(f"{each!r} is no text in this terminal's encoding: type it anew")
        return _run(args)
    except typer.Abort:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be said
        _complain("the output was closed; `daruma threads` shows what can be resumed")
        return 128 + signal.SIGPIPE
    except UsageMistake as error:
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
