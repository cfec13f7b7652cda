"""Options and arguments that several commands have."""

from typing import Annotated

import typer

from daruma.graph.command_line import completing


def _stored(name: str) -> str:
    """A name whose bytes are no text can not even be looked for."""
    if any("\ud800" <= each <= "\udfff" for each in name):
        raise typer.BadParameter(f"{name!r} is no thread's name: see `daruma threads`")
    return name


ThreadName = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="Name of the thread.",
        callback=_stored,
        autocompletion=completing.threads,
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
        autocompletion=completing.models,
    ),
]
