"""``daruma worker``: running what was submitted with ``--submit``, here or on another machine."""

import logging
from typing import Annotated, Final

import typer

from daruma.graph.command_line.printable import one_line

COMMANDS: Final = "daruma-commands"
"""The queue of the command line, whose workers make the graph that the command named."""


def worker(
    *,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many threads to run at once.")
    ] = 1,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="How long what runs may go on after Ctrl-C."),
    ] = 10.0,
    once: Annotated[
        bool, typer.Option("--once", help="Leave when nothing is left to do now.")
    ] = False,
) -> None:
    """Run the threads that were submitted, until Ctrl-C: what runs then goes back into the queue.

    Any number of workers, on any machines with the same folders, share the work.
    """
    from daruma.graph.interruptible import Cancelled, run_interruptible

    _say_lines()
    try:
        run_interruptible(_serve(concurrency, grace, once=once))
    except Cancelled:
        typer.echo("stopped")


class _Lines(logging.Formatter):
    """A record is one line, and nothing in it is obeyed by a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record), 1000)


def _say_lines() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(asctime)s %(message)s", "%H:%M:%S"))
    log = logging.getLogger("daruma.worker")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


async def _serve(concurrency: int, grace: float, *, once: bool) -> None:
    from daruma.graph.command_line.submitting import graph_for, learner_for
    from daruma.graph.storage.postgres import aopen_postgres
    from daruma.graph.workers.pace import Pace
    from daruma.graph.workers.reader import reader_on
    from daruma.graph.workers.tasks import Tasks
    from daruma.graph.workers.work import serve

    async with aopen_postgres() as postgres:
        database = postgres.checkpointer.database
        reader, pace = reader_on(postgres), Pace(grace=grace)
        learner = learner_for(postgres)
        tasks = Tasks(database, graph_for(postgres), reader, COMMANDS, pace, learner)
        await serve(tasks, concurrency=concurrency, wait=not once)
