"""Whose experience a command is about, and the store that it is kept in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from daruma.state.settings.sections import Evolution

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
    from daruma.graph.storage.postgres import aopen_postgres
    from daruma.state.settings import Settings
    from daruma.tools.evolution.pitfalls import Pitfalls
    from daruma.tools.memory.memories import owner_of

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
