"""``daruma pitfalls would``: what tasks would have been given, where learning only observes."""

import asyncio

import typer

from daruma.graph.command_line.learned import Json, Limit, Namespace, Workspace, of_owner


def would(
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    limit: Limit = 20,
    json: Json = False,
) -> None:
    """Show what tasks would have been given, where learning only observes; the newest first."""
    from daruma.graph.command_line.would_list import as_json, print_would
    from daruma.state.lessons import Experience
    from daruma.tools.evolution.lessons import would_have_been

    async def look() -> list[Experience]:
        async with of_owner(workspace, namespace) as learned:
            return await would_have_been(learned.store, learned.owner, limit)

    found = asyncio.run(look())
    if json:
        typer.echo(as_json(found))
    else:
        print_would(found)
