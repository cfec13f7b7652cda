"""``daruma threads prune``: delete old threads with all that belongs to them."""

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from daruma.graph.command_line.paper import Paper
    from daruma.graph.storage.pruning import OldThread, Pruned

_UNITS = {"min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def seconds_of(text: str) -> float:
    """Read a length of time such as ``30d``, ``12h``, ``90min`` or ``2w``, in seconds."""
    found = re.fullmatch(r"(\d{1,6})\s*(min|h|d|w)", text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no length of time: say 30d, 12h, 90min or 2w")
    return float(found[1]) * _UNITS[found[2]]


def prune(  # each is an option of the command
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Nobody wrote on it for: 30d, 12h.")
    ],
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", help="Only of this status; may be given again."),
    ] = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also what waits for a person or can be resumed.")
    ] = False,
    keep_history: Annotated[
        bool,
        typer.Option(
            "--keep-history", help="Keep threads as they stand; drop their earlier steps."
        ),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Give the space back to the disk; locks the tables.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Delete threads that nobody wrote on for long; never one that is being run."""
    from rich.console import Console

    from daruma.graph.command_line.paper import Line, Paper
    from daruma.graph.storage.postgres import open_postgres

    paper, seconds = Paper(Console(highlight=False)), seconds_of(older_than)
    _refuse_unknown(status or ())
    with open_postgres() as postgres:
        old = postgres.old_threads(seconds, status=status, unfinished=unfinished)
        _tell(paper, old)
        if not old or dry_run:
            return
        if not yes and not _wanted(paper, len(old), keep_history=keep_history):
            paper.put(Line("note", "nothing was deleted"))
            return
        pruned = postgres.prune(
            seconds,
            status=status,
            unfinished=unfinished,
            keep_history=keep_history,
            full=full,
            only=[each.thread_id for each in old],
        )
    _told(paper, pruned, keep_history=keep_history)


def _refuse_unknown(status: Sequence[str]) -> None:
    """A status that no thread has would be taken for one that no old thread has."""
    from daruma.graph.storage.pruning import STANDINGS

    if unknown := [each for each in status if each not in STANDINGS]:
        known = ", ".join(sorted(STANDINGS))
        raise typer.BadParameter(f"{unknown[0]!r} is no status: there are {known}")


def size_of(count: float) -> str:
    """Return a number of bytes in its largest unit: ``1.5 MB``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def _tell(paper: "Paper", old: "Sequence[OldThread]") -> None:
    from daruma.graph.command_line.paper import Line
    from daruma.graph.command_line.printable import one_line

    for each in old:
        tail = f"{each.standing}, last written {each.updated_at:%Y-%m-%d}, {size_of(each.size)}"
        paper.put(Line("line", one_line(each.thread_id, 100), tail))
    if old:
        paper.put(Line("note", f"{len(old)} threads, {size_of(sum(each.size for each in old))}"))
    else:
        paper.put(Line("note", "no thread is that old and may go"))


def _wanted(paper: "Paper", number: int, *, keep_history: bool) -> bool:
    from daruma.state.errors import DarumaError

    if not (paper.terminal and sys.stdin is not None and sys.stdin.isatty()):
        raise DarumaError("nothing was deleted: there is nobody to ask, so say it with --yes")
    what = "Thin" if keep_history else "Delete"
    try:
        return input(f"  {what} these {number} threads? [y]es, [n]o: ").strip().lower()[:1] == "y"
    except EOFError:
        return False


def _told(paper: "Paper", pruned: "Pruned", *, keep_history: bool) -> None:
    from daruma.graph.command_line.paper import Line

    done = "thinned" if keep_history else "deleted"
    sizes = f"{size_of(pruned.bytes_before)} before, {size_of(pruned.bytes_after)} now"
    paper.put(Line("ok", f"{len(pruned.threads)} threads {done}", sizes))
    for thread in pruned.busy:
        paper.put(Line("note", f"{thread} was gone on with meanwhile, and stays"))
