"""The ``daruma`` command. Its modules import the machine when they need it: ``--help`` is quick."""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from daruma.graph.command_line.answer import BareDecisions, answer
from daruma.graph.command_line.completion_script import completion_asked
from daruma.graph.command_line.demo_command import demo
from daruma.graph.command_line.doctor import doctor
from daruma.graph.command_line.faults import FAILED, USAGE, complaint, failed, kept
from daruma.graph.command_line.knowledge import knowledge_app
from daruma.graph.command_line.memory import memory_app
from daruma.graph.command_line.pitfalls import pitfalls_app
from daruma.graph.command_line.printable import one_line
from daruma.graph.command_line.run import resume, retry, run
from daruma.graph.command_line.settings import settings
from daruma.graph.command_line.show import graph, show
from daruma.graph.command_line.threads import threads_app
from daruma.graph.command_line.undo import undo
from daruma.graph.command_line.worker import worker

app = typer.Typer(
    name="daruma",
    help="An agent that falls seven times and gets up eight.",
    pretty_exceptions_enable=False,
)

for command in (demo, run, resume, retry, answer, undo, show, graph, settings, doctor, worker):
    app.command(cls=BareDecisions if command is answer else None)(command)
app.add_typer(threads_app)
app.add_typer(memory_app)
app.add_typer(pitfalls_app)
app.add_typer(knowledge_app)

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises for a command line that it can not read; it has no public name of its own."""


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
    sys.exit(_exit_code(args))


def _exit_code(args: Sequence[str] | None) -> int:
    try:
        if completion_asked(sys.argv[1:] if args is None else args):
            return 0
        return app(args, prog_name="daruma", standalone_mode=False) or 0
    except typer.Abort:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be said
        _complain("the output was closed; `daruma threads` shows what can be resumed")
        return 128 + signal.SIGPIPE
    except _UsageError as error:
        return _complain(getattr(error, "format_message", error.__str__)())
    except Exception as error:  # noqa: BLE001  # a bug is told in one line too, and kept
        return _complain(complaint(error) or kept(error), FAILED if failed(error) else USAGE)


def _complain(text: str, code: int = USAGE) -> int:
    typer.echo(f"daruma: {one_line(text, 1000)}", err=True)
    return code
