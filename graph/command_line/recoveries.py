"""``daruma pitfalls recoveries`` and ``unlearn``: what was tried against failures."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line.learned import Json, Namespace, Workspace, of_owner

if TYPE_CHECKING:
    from daruma.tools.evolution.recoveries import RecoveryPattern


def recoveries(
    workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """List what was tried against failures, the newest first, and how sure each action is."""
    from daruma.graph.command_line.recovery_list import as_json, print_recoveries
    from daruma.tools.evolution.recoveries import KnownRecoveries

    async def look() -> "list[RecoveryPattern]":
        async with of_owner(workspace, namespace) as learned:
            return await KnownRecoveries(learned.store, learned.owner).all()

    found = asyncio.run(look())
    if json:
        typer.echo(as_json(found))
    else:
        print_recoveries(found)


def unlearn(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that `recoveries` shows.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    json: Json = False,
) -> None:
    """Forget what was tried against a failure: a model is asked again the next time."""
    from daruma.graph.command_line.recovery_list import as_json, print_recoveries
    from daruma.tools.evolution.recoveries import KnownRecoveries

    async def drop() -> "RecoveryPattern | None":
        async with of_owner(workspace, namespace) as learned:
            return await KnownRecoveries(learned.store, learned.owner).forget(id_.strip())

    gone = asyncio.run(drop())
    if gone is None:
        raise typer.BadParameter(
            f"there is no recovery {id_!r:.80}: see `daruma pitfalls recoveries`"
        )
    if json:
        typer.echo(as_json([gone]))
    else:
        print_recoveries([gone], mark="ok")
