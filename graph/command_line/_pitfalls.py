"""``daruma pitfalls``: what was learned from ended tasks, looked at and corrected."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line._options import Json, Limit, Namespace, Workspace, of_owner

if TYPE_CHECKING:
    from daruma.graph.command_line._pitfall_view import PitfallView
    from daruma.tools.evolution import RecoveryPattern, Variant


# --- ``daruma pitfalls recoveries`` and ``unlearn``: what was tried against failures.


def recoveries(
    workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """List what was tried against failures, the newest first, and how sure each action is."""
    from daruma.graph.command_line._pitfall_view import print_recoveries
    from daruma.graph.command_line._pitfall_view import recoveries_as_json as as_json
    from daruma.tools.evolution import KnownRecoveries

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
    from daruma.graph.command_line._pitfall_view import print_recoveries
    from daruma.graph.command_line._pitfall_view import recoveries_as_json as as_json
    from daruma.tools.evolution import KnownRecoveries

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


# --- ``daruma pitfalls variants`` and ``withdraw``: what prompts were added, and taking it back.


def variants(
    workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """List the learned additions to prompts, the newest first, and how far each has come."""
    from daruma.graph.command_line._pitfall_view import print_variants
    from daruma.graph.command_line._pitfall_view import variants_as_json as as_json
    from daruma.tools.evolution import Variants

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
    from daruma.graph.command_line._pitfall_view import print_variants
    from daruma.graph.command_line._pitfall_view import variants_as_json as as_json
    from daruma.tools.evolution import Variants

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


# --- ``daruma pitfalls would``: what tasks would have been given, where learning only observes.


def would(
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    limit: Limit = 20,
    json: Json = False,
) -> None:
    """Show what tasks would have been given, where learning only observes; the newest first."""
    from daruma.graph.command_line._pitfall_view import print_would
    from daruma.graph.command_line._pitfall_view import would_have_as_json as as_json
    from daruma.state.lessons import Experience
    from daruma.tools.evolution import counterfactual_lessons

    async def look() -> list[Experience]:
        async with of_owner(workspace, namespace) as learned:
            return await counterfactual_lessons(learned.store, learned.owner, limit)

    found = asyncio.run(look())
    if json:
        typer.echo(as_json(found))
    else:
        print_would(found)


# --- ``daruma pitfalls``: what was learned from ended tasks, looked at and corrected by a person.

pitfalls_app = typer.Typer(
    name="pitfalls",
    help="What went wrong before, and what is learned from it; of the current folder, if not told"
    " else.",
)

Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="The id that the list shows."),
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
    from daruma.graph.command_line._pitfall_view import listing, print_pitfalls
    from daruma.graph.command_line._pitfall_view import pitfalls_as_json as as_json

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
    from daruma.graph.command_line._pitfall_view import Told, print_pitfall, told_of
    from daruma.graph.command_line._pitfall_view import pitfall_as_json as as_json

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
    from daruma.graph.command_line._pitfall_view import pitfalls_as_json as as_json
    from daruma.graph.command_line._pitfall_view import print_forgotten
    from daruma.state.lessons import Pitfall
    from daruma.tools.evolution import Pitfalls, Variants

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
