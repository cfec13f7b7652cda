"""``daruma pitfalls variants`` and ``withdraw``: what prompts were added, and taking it back."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line.learned import Json, Namespace, Workspace, of_owner

if TYPE_CHECKING:
    from daruma.tools.evolution.variants import Variant


def variants(
    workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """List the learned additions to prompts, the newest first, and how far each has come."""
    from daruma.graph.command_line.variant_list import as_json, print_variants
    from daruma.tools.evolution.variants import Variants

    async def look() -> "list[Variant]":
        async with of_owner(workspace, namespace) as learned:
            return await Variants(learned.store, learned.owner).all()

    found = asyncio.run(look())
    if json:
        typer.echo(as_json(found))
    else:
        print_variants(found)


def withdraw(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that `variants` shows.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    json: Json = False,
) -> None:
    """Take a learned addition out of every prompt, for good. Tasks that have begun keep it."""
    from daruma.graph.command_line.variant_list import as_json, print_variants
    from daruma.tools.evolution.variants import Variants

    async def take_back() -> "Variant | None":
        async with of_owner(workspace, namespace) as learned:
            own = Variants(learned.store, learned.owner)
            await own.withdraw(id_.strip(), time.time())
            return await own.get(id_.strip())

    found = asyncio.run(take_back())
    if found is None:
        raise typer.BadParameter(f"there is no variant {id_!r:.80}: see `daruma pitfalls variants`")
    if json:
        typer.echo(as_json([found]))
    else:
        print_variants([found])
