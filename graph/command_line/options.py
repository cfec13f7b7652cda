"""Options and arguments that several commands have."""

from typing import Annotated

import typer

ThreadName = Annotated[str, typer.Argument(metavar="THREAD", help="Name of the thread.")]
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
