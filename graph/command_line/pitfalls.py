"""``daruma pitfalls``: what was learned from ended tasks, looked at and corrected by a person."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line import completing
from daruma.graph.command_line.learned import Json, Limit, Namespace, Workspace, of_owner
from daruma.graph.command_line.recoveries import recoveries, unlearn
from daruma.graph.command_line.variants import variants, withdraw
from daruma.graph.command_line.would import would

if TYPE_CHECKING:
    from daruma.graph.command_line.pitfall_view import PitfallView

pitfalls_app = typer.Typer(
    name="pitfalls",
    help="What went wrong before, and what is learned from it; of the current folder, if not told"
    " else.",
    no_args_is_help=True,
)

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The id that the list shows.", autocompletion=completing.pitfalls
    ),
]


@pitfalls_app.command("list")
def listed(
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    level: Annotated[
        str | None, typer.Option("--level", metavar="LEVEL", help="Only high, medium or low ones.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Those that are not sure, too.")
    ] = False,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """List the pitfalls, the one seen last first."""
    from daruma.graph.command_line.pitfall_list import as_json, print_pitfalls
    from daruma.graph.command_line.pitfall_view import listing

    if level not in (None, "high", "medium", "low"):
        raise typer.BadParameter(f"there is no level {level!r:.40}: high, medium, low")

    async def look() -> "PitfallView":
        async with of_owner(workspace, namespace) as learned:
            return await listing(learned, level, everything=everything, limit=limit)

    view = asyncio.run(look())
    if json:
        typer.echo(as_json(view.pitfalls))
    else:
        print_pitfalls(view)


@pitfalls_app.command()
def show(
    id_: Id, workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """Show a pitfall: what speaks for it, and how the tasks went that were told of it."""
    from daruma.graph.command_line.pitfall_story import as_json, print_pitfall
    from daruma.graph.command_line.pitfall_view import Told, told_of

    async def look() -> Told | None:
        async with of_owner(workspace, namespace) as learned:
            return await told_of(learned, id_.strip())

    found = asyncio.run(look())
    if found is None:
        raise _unknown(id_)
    if json:
        typer.echo(as_json(found))
    else:
        print_pitfall(found)


@pitfalls_app.command()
def forget(
    id_: Id, workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """Forget a pitfall and what speaks for it. Tasks that meet it again bring it back.

    An addition to a prompt that was made of it stays until it is withdrawn; forget says so.
    """
    from daruma.graph.command_line.pitfall_list import as_json, print_forgotten
    from daruma.state.lessons import Pitfall
    from daruma.tools.evolution.pitfalls import Pitfalls
    from daruma.tools.evolution.variants import Variants

    async def drop() -> tuple[Pitfall | None, list[str]]:
        async with of_owner(workspace, namespace) as learned:
            own = Pitfalls(learned.store, learned.owner)
            found = await own.get(id_.strip())
            gone = found if found and await own.forget(found.id) else None
            made = await Variants(learned.store, learned.owner).made_of(gone.id) if gone else []
            return gone, [each.id for each in made]

    gone, made = asyncio.run(drop())
    if gone is None:
        raise _unknown(id_)
    if json:
        typer.echo(as_json([gone]))
    else:
        print_forgotten(gone, made)


pitfalls_app.command()(would)
pitfalls_app.command()(recoveries)
pitfalls_app.command()(unlearn)
pitfalls_app.command()(variants)
pitfalls_app.command()(withdraw)


def _unknown(id_: str) -> typer.BadParameter:
    return typer.BadParameter(f"there is no pitfall {id_!r:.80}: see `daruma pitfalls list --all`")
