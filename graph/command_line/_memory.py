"""``daruma memory``: what is remembered for a workspace, looked at and corrected by a person."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from daruma.state.lessons import Remembered
    from daruma.tools.memory import Memories


memory_app = typer.Typer(
    name="memory",
    help="List, search, add or forget what is remembered; of the current folder, if not told else.",
)

Workspace = Annotated[
    str | None,
    typer.Option("--workspace", metavar="DIR", help="Whose memories: this workspace's."),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Or those of this memory.namespace."),
]
Json = Annotated[bool, typer.Option("--json", help="Say it as JSON on standard output.")]


@memory_app.command("list")
def listed(workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False) -> None:
    """List the memories, the newest first."""

    async def look() -> "tuple[list[Remembered], list[str]]":
        async with _memories(workspace, namespace) as memories:
            found = await memories.all()
            return found, [] if found else await memories.other_owners()

    found, others = asyncio.run(look())
    _tell(found, json=json, others=others)


@memory_app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words that a memory holds.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 10,
    json: Json = False,
) -> None:
    """Search the memories, the best first."""

    async def look() -> "list[Remembered]":
        async with _memories(workspace, namespace) as memories:
            return await memories.search(query, limit)

    _tell(asyncio.run(look()), json=json)


@memory_app.command()
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    section: Annotated[str, typer.Option(help="A heading to keep it under.")] = "",
    role: Annotated[str, typer.Option(help="Only for the expert of this name.")] = "",
    json: Json = False,
) -> None:
    """Remember something for the tasks to come."""
    import time

    from daruma.tools.errors import ToolError
    from daruma.tools.memory import new_memory

    try:
        memory = new_memory(text, section=section, role=role, at=time.time())
    except ToolError as error:
        raise typer.BadParameter(str(error)) from None

    async def keep() -> None:
        async with _memories(workspace, namespace) as memories:
            await memories.remember(memory, by="person")

    asyncio.run(keep())
    _tell([memory], json=json)


@memory_app.command()
def forget(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that the list shows.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    json: Json = False,
) -> None:
    """Forget a memory, whichever role it is for."""

    async def drop() -> "list[Remembered]":
        async with _memories(workspace, namespace) as memories:
            return await memories.forget(id_.strip())

    gone = asyncio.run(drop())
    if not gone:
        raise typer.BadParameter(f"there is no memory {id_!r:.80}: see `daruma memory list`")
    _tell(gone, json=json)


@asynccontextmanager
async def _memories(workspace: str | None, namespace: str | None) -> "AsyncIterator[Memories]":
    from daruma.graph.storage import aopen_postgres
    from daruma.state.settings import Settings
    from daruma.tools.memory import Memories, owner_of

    if workspace is not None and namespace is not None:
        raise typer.BadParameter("give one of --workspace and --namespace")
    if namespace is None and workspace is None:
        namespace = Settings.load().memory.namespace
    owner = await asyncio.to_thread(owner_of, namespace, workspace or ".")
    async with aopen_postgres() as postgres:
        yield Memories(postgres.store, owner, role=None)


def _tell(memories: "list[Remembered]", *, json: bool, others: Sequence[str] = ()) -> None:
    from daruma.graph.command_line._memory_view import as_json, print_memories

    if json:
        typer.echo(as_json(memories))
    else:
        print_memories(memories, others=others)
