"""``daruma threads``: the list of them, and what can be done with all of them."""

import typer

from daruma.graph.command_line.show import threads
from daruma.graph.command_line.threads_prune import prune

threads_app = typer.Typer(
    name="threads", help="List the threads, the one used last first; or prune old ones."
)
threads_app.command("prune")(prune)


@threads_app.callback(invoke_without_command=True)
def listed(context: typer.Context) -> None:
    """List the threads, the one used last first; ``prune`` deletes old ones."""
    if context.invoked_subcommand is None:
        threads()
