"""``daruma pitfalls``: what was learned from ended tasks, looked at and corrected by a person."""

import json as json_format
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from daruma.graph.command_line._messages import counted, one_line
from daruma.graph.command_line._options import (
    Json,
    Limit,
    Namespace,
    Workspace,
    day_of,
    elsewhere,
    in_storage,
    owner_named,
    paper_of,
    values_of,
)

if TYPE_CHECKING:
    from daruma.graph.command_line._output import Line, Mark
    from daruma.graph.command_line._tables import Table
    from daruma.graph.storage import Postgres
    from daruma.state.lessons import Pitfall
    from daruma.state.settings import Evolution
    from daruma.tools.evolution import Evidence, EvidenceKind, Pitfalls

T = TypeVar("T")

pitfalls_app = typer.Typer(
    name="pitfalls",
    help="What went wrong before, and what is learned from it; of the current folder, if not told"
    " else.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id that the list shows.")]

MOST: Final = 1000
"""Pitfalls that are looked through."""

_HOW: Final[dict["EvidenceKind", tuple["Mark", str]]] = {
    "failed": ("bad", "met it"),
    "clear": ("ok", "went well, not told of it"),
    "avoided": ("ok", "was told of it, and went well"),
    "repeated": ("bad", "was told of it, and met it again"),
    "in_vain": ("bad", "was told of it, and fell to something else"),
}


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
    if level not in (None, "high", "medium", "low"):
        raise typer.BadParameter(f"there is no level {level!r:.40}: high, medium, low")

    async def look(own: "Pitfalls", settings: "Evolution") -> "Table":
        known = await read_pitfalls(own, settings)
        others = [] if known else await _other_owners(own)
        return table_of(known, others, level, everything=everything, limit=limit)

    _in_pitfalls(workspace, namespace, look).show(paper_of(), as_json=json)


@pitfalls_app.command()
def show(
    id_: Id, workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """Show a pitfall: what speaks for it, and how the tasks went that were told of it."""

    async def look(own: "Pitfalls", settings: "Evolution") -> "tuple[Pitfall, list[Evidence]]":
        found = await _found(own, id_)
        return _by_now(found, settings), [*await own.evidence(found.id)]

    pitfall, evidence = _in_pitfalls(workspace, namespace, look)
    if json:
        tasks = [
            {"task": each.task, "how": each.how, "at": each.at, "goal": each.goal}
            for each in evidence
        ]
        typer.echo(json_format.dumps({**values_of(pitfall), "evidence": tasks}))
    else:
        paper_of().put(*_pitfall_lines(pitfall, evidence))


@pitfalls_app.command()
def forget(
    id_: Id, workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False
) -> None:
    """Forget a pitfall and what speaks for it. Tasks that meet it again bring it back.

    An addition to a prompt that was made of it stays; forget names it.
    """
    from daruma.graph.command_line._output import Line
    from daruma.tools.evolution import Variants

    async def drop(own: "Pitfalls", _: "Evolution") -> "tuple[Pitfall, list[str]]":
        found = await _found(own, id_)
        if not await own.forget(found.id):
            raise _unknown(id_)
        made = await Variants(own.store, own.owner).made_of(found.id)
        return found, [each.id for each in made]

    gone, made = _in_pitfalls(workspace, namespace, drop)
    if json:
        typer.echo(json_format.dumps([values_of(gone)]))
        return
    told = "an addition to a prompt was made of it, and stays: `Variants` of Python withdraws"
    about = f"{gone.actor} · {counted(gone.tasks, 'task')}"
    lines = [Line("ok", f"forgotten: {gone.text}", about)]
    paper_of().put(*lines, *(Line("note", f"{told} {each}") for each in made))


# --- Whose pitfalls a command is about, as sure as they are by now.


def _in_pitfalls(
    workspace: str | None,
    namespace: str | None,
    work: "Callable[[Pitfalls, Evolution], Awaitable[T]]",
) -> T:
    """Work with the pitfalls of a workspace, of a namespace, or of the current folder's settings.

    Where those settings say whose, they also say whether they are shared: marks of an earlier
    sharing are taken off, before anything is shown.
    """
    from daruma.state.settings import Settings
    from daruma.tools.evolution import Pitfalls

    settings = Settings.load().evolution
    owner = owner_named(workspace, namespace, settings.namespace)

    async def do(postgres: "Postgres") -> T:
        own = Pitfalls(postgres.store, owner)
        if workspace is None and namespace is None and not settings.shared:
            await own.settle_sharing()
        return await work(own, settings)

    return in_storage(do)


async def read_pitfalls(own: "Pitfalls", settings: "Evolution") -> "list[Pitfall]":
    """Return an owner's pitfalls, as sure as they are by now."""
    return [_by_now(each, settings) for each in await own.all(MOST)]


def _by_now(pitfall: "Pitfall", settings: "Evolution") -> "Pitfall":
    """Return a pitfall with its confidence of now; one that is no longer sure enough is low."""
    from daruma.tools.evolution import confidence_at

    sure = confidence_at(pitfall, time.time())
    level = "low" if sure < settings.min_confidence else pitfall.level
    return replace(pitfall, confidence=sure, level=level)


async def _found(own: "Pitfalls", id_: str) -> "Pitfall":
    """Return an own pitfall; one of somebody else's is as good as none."""
    found = await own.get(id_.strip())
    if found is None:
        raise _unknown(id_)
    return found


def _unknown(id_: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"there is no pitfall {id_!r:.80} here: see `daruma pitfalls list --all`, and --workspace "
        "or --namespace for those of another owner"
    )


async def _other_owners(own: "Pitfalls") -> list[str]:
    from daruma.tools.evolution import EVOLUTION_NAMESPACE
    from daruma.tools.memory import owner_in

    found = await own.store.alist_namespaces(
        prefix=EVOLUTION_NAMESPACE, suffix=("pitfalls",), limit=MOST
    )
    owners = (owner_in(place) for place in found if len(place) > len(EVOLUTION_NAMESPACE))
    return [each for each in dict.fromkeys(owners) if each != own.owner]


# --- Pitfalls on paper. Their texts come from tools and models: nothing in them is obeyed.


def table_of(
    known: "Sequence[Pitfall]",
    others: Sequence[str] = (),
    level: str | None = None,
    *,
    everything: bool = False,
    limit: int = MOST,
) -> "Table":
    """Return a table of the pitfalls of a level; without one of those that are sure, or all."""
    from daruma.graph.command_line._tables import Table

    shown = [e for e in known if (e.level == level if level else everything or e.level != "low")]
    left_out = len(known) - len(shown)
    nothing = elsewhere("there are no pitfalls", "some", others)
    if left_out:
        nothing = f"there are {left_out}, none of them {level or 'sure enough'}: see --all"
    more = shown and left_out and not level
    return Table(
        ("id", "level", "actor", "confidence", "tasks", "seen last", "text"),
        [
            (e.id, e.level, e.actor, f"{e.confidence:.2f}", str(e.tasks), day_of(e.last_at), e.text)
            for e in shown[:limit]
        ],
        values=[*map(values_of, shown[:limit])],
        nothing=nothing,
        note=f"{left_out} more that are not sure enough: see --all" if more else "",
    )


def _pitfall_lines(pitfall: "Pitfall", evidence: "Sequence[Evidence]") -> "Iterator[Line]":
    from daruma.graph.command_line._output import Line

    yield Line("head", one_line(pitfall.text, 400), f"{pitfall.level} · {pitfall.id}")
    if pitfall.advice:
        yield Line("words", one_line(pitfall.advice, 400))
    counts = f"seen in {counted(pitfall.tasks, 'task')}, {pitfall.clear} alike went well untold"
    fed = pitfall.avoided + pitfall.repeated + pitfall.in_vain
    told_to = (
        f"told to {counted(fed, 'task')} that were checked or failed, {pitfall.avoided} went well"
    )
    shared = "shared" if pitfall.shared else "not shared"
    yield Line("note", f"{pitfall.kind} of {one_line(pitfall.actor, 100)}: {pitfall.signature}")
    yield Line("note", f"confidence {pitfall.confidence:.2f} by now: {counts}; {told_to}")
    yield Line("note", f"of {one_line(pitfall.owner, 400)}, {shared}")
    yield Line("head", "Goals")
    yield from (Line("line", one_line(goal, 400)) for goal in pitfall.goals)
    yield Line("head", "Tasks")
    for each in evidence:
        mark, said = _HOW[each.how]
        yield Line(mark, f"{one_line(each.task, 200)} {said}", day_of(each.at))
