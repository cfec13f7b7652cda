"""Options of commands, names of threads, and whose experience is meant."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from daruma.state.errors import DarumaError
from daruma.state.text import pasted

if TYPE_CHECKING:
    from daruma.graph.command_line._output import Paper
    from daruma.graph.storage import Postgres

T = TypeVar("T")

# --- Names for threads that people can read aloud, remember for a minute and type.

_MANNERS = (
    "able bold brave brisk calm clear deft eager fair fine fond frank glad grand hardy keen kind "
    "lively lucky mild neat nimble proud quick quiet ready sharp steady stout swift warm wise"
)
_ANIMALS = (
    "badger bear beaver crane crow deer dove eagle falcon finch fox goose hare hawk heron horse "
    "ibex jay lark lynx marten mole otter owl panda raven robin seal stork swan tiger wolf"
)
_CHARACTERS = "23456789abcdefghjkmnpqrstuvwxyz"


_COMPARED: Final = 1000
"""Threads that a name that none has is compared with."""


class ThreadRefused(DarumaError):
    """Raised for a thread's name that can not be used, or that names no thread."""


async def no_such(postgres: "Postgres", name: str, checkpoint: str | None = None) -> ThreadRefused:
    """Return the error for a name that no thread has, or a checkpoint that this one has not."""
    if checkpoint:
        return ThreadRefused(f"thread {name!r} has no checkpoint {checkpoint!r}")
    names = [each.thread_id for each in await postgres.athreads(_COMPARED)]
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "see `daruma threads`"
    return ThreadRefused(f"there is no thread {name!r}: {hint}")


def new_thread_name() -> str:
    """Return a fresh name such as ``brave-otter-7k2f``: one of about 900 million."""
    tail = "".join(secrets.choice(_CHARACTERS) for _ in range(4))
    return f"{secrets.choice(_MANNERS.split())}-{secrets.choice(_ANIMALS.split())}-{tail}"


def checked_thread_name(name: str) -> str:
    """Return a name that a person chose. Raises :class:`ThreadRefused` if it can not be typed."""
    if not name.strip() or not name.isprintable() or name.startswith("-"):
        raise ThreadRefused(f"the thread name {name!r} can not be used: take letters and digits")
    return name


# --- Options and arguments that several commands have.

COMMANDS: Final = "daruma-commands"
"""The queue of the command line, whose workers make the graph that the command named."""


ThreadName = Annotated[str, typer.Argument(metavar="THREAD", help="Name of the thread.")]
Yes = Annotated[
    bool, typer.Option("--yes", help="Agree to plans and optional approvals, not to required ones.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="End standard output with the result as one JSON object.")
]
Submit = Annotated[
    bool,
    typer.Option("--submit", help="Leave it to a `daruma worker`, and print the thread's name."),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="openai:NAME, scripted:FILE or an alias; else the settings' or the thread's own.",
        show_default=False,
    ),
]


# --- Whose memories or experience a command is about, and how what was found is shown.

Workspace = Annotated[
    str | None, typer.Option("--workspace", metavar="DIR", help="Of this workspace.")
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Or of this namespace of the settings."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]
Json = Annotated[bool, typer.Option("--json", help="Say it as JSON on standard output.")]

_MOST_NAMED: Final = 5


def owner_named(workspace: str | None, namespace: str | None, default: str | None) -> str:
    """Return whose it is: a workspace's, a namespace's, or the ``default`` of the settings."""
    from daruma.tools.memory import owner_of

    if workspace is not None and namespace is not None:
        raise typer.BadParameter("give one of --workspace and --namespace")
    named = default if workspace is None and namespace is None else namespace
    return owner_of(named, workspace or ".")


def elsewhere(nothing: str, what: str, others: Sequence[str]) -> str:
    """Say that there is nothing, and who has some of it."""
    if not others:
        return nothing
    named = ", ".join(pasted(each) for each in others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    options = {"--workspace" if each.startswith("/") else "--namespace" for each in others}
    see = " and ".join(sorted(options, reverse=True))
    return f"{nothing} here; there are {what} of {named}{more}: see {see}"


def day_of(at: float) -> str:
    """Return the day of a Unix time."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def values_of(record: Any) -> dict[str, Any]:
    """Return what a record holds, for programs."""
    return {name: value for name, value in asdict(record).items() if name != "schema_version"}


def in_storage(work: "Callable[[Postgres], Awaitable[T]]") -> T:
    """Do work with the storage open, and return what came of it."""
    from daruma.graph.storage import aopen_postgres

    async def do() -> T:
        async with aopen_postgres() as postgres:
            return await work(postgres)

    return asyncio.run(do())


def paper_of(*, stderr: bool = False) -> "Paper":
    """Return what prints on standard output, or on standard error."""
    from rich.console import Console

    from daruma.graph.command_line._output import Paper

    return Paper(Console(stderr=stderr, highlight=False))
