"""Options of commands, names of threads, and whose experience is meant."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Final

import typer

from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from daruma.graph.storage import Postgres
    from daruma.state.settings import Evolution


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


ThreadName = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="Name of the thread.",
    ),
]
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


# --- Whose experience a command is about, and the store that it is kept in.

Workspace = Annotated[
    str | None,
    typer.Option("--workspace", metavar="DIR", help="Whose experience: this workspace's."),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Or that of this evolution.namespace."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]
Json = Annotated[bool, typer.Option("--json", help="Say it as JSON on standard output.")]


@dataclass(frozen=True)
class Learned:
    """What an owner's experience is kept in, and the settings of the folder that is asked in."""

    store: "BaseStore"
    owner: str
    settings: "Evolution"


@asynccontextmanager
async def of_owner(workspace: str | None, namespace: str | None) -> AsyncIterator[Learned]:
    """Open the database on the experience of a workspace, of a namespace, or of the settings'.

    Where the settings of the current folder say whose, they also say whether it is shared: marks
    of an earlier sharing are taken off, before anything is shown.
    """
    from daruma.graph.storage import aopen_postgres
    from daruma.state.settings import Settings
    from daruma.tools.evolution import Pitfalls
    from daruma.tools.memory import owner_of

    if workspace is not None and namespace is not None:
        raise typer.BadParameter("give one of --workspace and --namespace")
    settings = Settings.load().evolution
    own = workspace is None and namespace is None
    named = settings.namespace if own else namespace
    owner = await asyncio.to_thread(owner_of, named, workspace or ".")
    async with aopen_postgres() as postgres:
        if own and not settings.shared:
            await Pitfalls(postgres.store, owner).settle_sharing()
        yield Learned(postgres.store, owner, settings)
