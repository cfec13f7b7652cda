"""``daruma memory``, ``knowledge`` and ``pitfalls``: what is kept for tasks to recall, to search
and to learn from, looked at and corrected by a person.
"""

import json as json_format
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from daruma.graph.command_line._messages import one_line
from daruma.graph.command_line._options import (
    AsJson,
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
from daruma.state.errors import DarumaError
from daruma.state.text import counted

if TYPE_CHECKING:
    from daruma.graph.command_line._output import Line, Mark, Table
    from daruma.graph.storage import Postgres, PostgresStore
    from daruma.state.lessons import Pitfall, Remembered
    from daruma.state.settings import Evolution
    from daruma.tools.evolution import Evidence, EvidenceKind, Pitfalls
    from daruma.tools.memory import Memories


T = TypeVar("T")

# --- ``daruma memory``: what is remembered for a workspace, looked at and corrected by a person.

memory_app = typer.Typer(
    name="memory",
    help="List, search, add or forget what is remembered; of the current folder, if not told else.",
)


@memory_app.command("list")
def listed(workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False) -> None:
    """List the memories, the newest first."""

    async def look(memories: "Memories") -> "Table":
        found = await memories.all()
        return memory_table(found, [] if found else await memories.other_owners())

    _in_memories(workspace, namespace, look).show(paper_of(), as_json=json)


@memory_app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words that a memory holds.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    limit: Limit = 10,
    json: Json = False,
) -> None:
    """Search the memories, the best first."""

    found = _in_memories(workspace, namespace, lambda memories: memories.search(query, limit))
    memory_table(found, nothing="nothing that is remembered fits").show(paper_of(), as_json=json)


@memory_app.command()
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    section: Annotated[str, typer.Option(help="A heading to keep it under.")] = "",
    role: Annotated[str, typer.Option(help="Only for the expert of this name.")] = "",
    json: Json = False,
) -> None:
    """Remember something for the tasks to come."""
    from daruma.tools.errors import ToolError
    from daruma.tools.memory import new_memory

    try:
        memory = new_memory(text, section=section, role=role, at=time.time())
    except ToolError as error:
        raise typer.BadParameter(str(error)) from None

    _in_memories(workspace, namespace, lambda memories: memories.remember(memory, by="person"))
    memory_table([memory]).show(paper_of(), as_json=json)


@memory_app.command()
def forget(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that the list shows.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    json: Json = False,
) -> None:
    """Forget a memory, whichever role it is for."""

    gone = _in_memories(workspace, namespace, lambda memories: memories.forget(id_.strip()))
    if not gone:
        raise typer.BadParameter(f"there is no memory {id_!r:.80}: see `daruma memory list`")
    memory_table(gone).show(paper_of(), as_json=json)


def _in_memories(
    workspace: str | None, namespace: str | None, work: "Callable[[Memories], Awaitable[T]]"
) -> T:
    from daruma.state.settings import Settings
    from daruma.tools.memory import Memories

    owner = owner_named(workspace, namespace, Settings.load().memory.namespace)
    return in_storage(lambda postgres: work(Memories(postgres.store, owner, role=None)))


def memory_table(
    memories: "Sequence[Remembered]",
    others: Sequence[str] = (),
    nothing: str = "nothing is remembered",
) -> "Table":
    """Return a table of memories; where there is none, ``others`` are those who have some."""
    from daruma.graph.command_line._output import Table
    from daruma.tools.memory import COMMON_ROLE

    return Table(
        ("id", "role", "section", "day", "text"),
        [
            (each.id, each.role or COMMON_ROLE, each.section, day_of(each.at), each.text)
            for each in memories
        ],
        values=[*map(values_of, memories)],
        nothing=elsewhere(nothing, "memories", others),
    )


# --- ``daruma knowledge``: what documents are known, and taking them in and out.

knowledge_app = typer.Typer(
    name="knowledge", help="Take documents in, that tasks can search; list, search and forget them."
)

Within = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this collection.", show_default=False)
]


@knowledge_app.command("add")
def take_in(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    *,
    collection: Annotated[
        str, typer.Option(metavar="NAME", help="Where to keep them.")
    ] = "default",
    json: AsJson = False,
) -> None:
    """Take files and folders in; again, to bring them up to date."""
    from daruma.graph.command_line._output import Line
    from daruma.tools.knowledge import aingest

    done, note = _in_store(lambda store: aingest(store, paths, collection))
    said = f"{counted(done.changed, 'document')} taken in, {done.unchanged} known already"
    lines = [Line("ok", said, f"{done.passages} passages")]
    lines += [Line("bad", each.source, each.reason) for each in done.skipped]
    _tell({**asdict(done), "note": note}, lines, json=json, note=note)


@knowledge_app.command("list")
def sources(*, collection: Within = None, json: AsJson = False) -> None:
    """List the documents that were taken in."""
    from daruma.graph.command_line._output import Table
    from daruma.tools.knowledge import asources

    found, _ = _in_store(lambda store: asources(store, collection))
    table = Table(
        ("collection", "passages", "source"),
        [(each.collection, str(each.passages), each.source) for each in found],
        values=[asdict(each) for each in found],
        nothing="nothing was taken in yet: `daruma knowledge add PATH`",
    )
    table.show(paper_of(), as_json=json)


@knowledge_app.command("search")
def search_passages(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Passages to show.")] = 5,
    collection: Within = None,
    json: AsJson = False,
) -> None:
    """Search the documents, as the tool hybrid_search does."""
    from daruma.graph.command_line._output import Line
    from daruma.tools.knowledge import KNOWLEDGE_NAMESPACE, collection_namespace

    place = collection_namespace(collection, "passages") if collection else KNOWLEDGE_NAMESPACE
    found, _ = _in_store(
        lambda store: store.afind(place, query, limit=limit, filter={"kind": "passage"})
    )
    values = [{**item.value, "score": item.score} for item in found.items]
    lines = list[Line]()
    for each in values:
        lines.append(Line("ok", f"{each['source']}:{each['line']}", each["title"]))
        lines.append(Line("words", each["text"]))
    told = {"passages": values, "note": found.note}
    _tell(told, lines or [Line("note", "nothing found")], json=json, note=found.note)


@knowledge_app.command("forget")
def take_out(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A path, or a name of the list.")],
    *,
    collection: Within = None,
    json: AsJson = False,
) -> None:
    """Take a document out again, or all of a folder."""
    from daruma.graph.command_line._output import Line
    from daruma.tools.knowledge import aforget

    async def drop(store: "PostgresStore") -> int:
        named = await aforget(store, source, collection)
        return named or await aforget(store, Path(source), collection)

    count, _ = _in_store(drop)
    if not count:
        raise DarumaError(f"no document {source!r} is known: see `daruma knowledge list`")
    _tell({"forgotten": count}, [Line("ok", f"{counted(count, 'document')} forgotten")], json=json)


@knowledge_app.command()
def reindex(*, json: AsJson = False) -> None:
    """Make the vectors that are lacking, for the embedding model that is set now."""
    from daruma.graph.command_line._output import Line

    made, note = _in_store(lambda store: store.areindex())
    lines = [Line("ok", f"{made} vectors made")]
    _tell({"made": made, "note": note}, lines, json=json, note=note)


def _in_store(work: "Callable[[PostgresStore], Awaitable[T]]") -> tuple[T, str]:
    """Do work in the store that the settings mean; return what came of it, and its note."""
    from daruma.state.settings import Settings

    settings = Settings.load()

    async def do(postgres: "Postgres") -> tuple[T, str]:
        store = postgres.store_for(settings.llm)
        return await work(store), store.note

    return in_storage(do)


def _tell(value: object, lines: "Sequence[Line]", *, json: bool, note: str = "") -> None:
    from daruma.graph.command_line._output import Line

    if json:
        typer.echo(json_format.dumps(value))
        return
    paper_of().put(*lines, *([Line("note", note)] if note else []))


# --- ``daruma pitfalls``: what was learned from ended tasks, looked at and corrected by a person.

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
def list_pitfalls(
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


@pitfalls_app.command("forget")
def forget_pitfall(
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
    from daruma.graph.command_line._output import Table

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
