"""A thread as it stands, read for people: nothing is run, no model is made."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.build import build_graph
from daruma.graph.command_line._options import no_such
from daruma.graph.command_line._output import Line
from daruma.graph.command_line._printable import one_line
from daruma.graph.command_line._questions import is_held
from daruma.graph.command_line._session import Keepsake, Stop, checks_ahead
from daruma.graph.run import Machine
from daruma.graph.standing import Standing, standings
from daruma.graph.storage import Postgres
from daruma.graph.timeline import Timeline
from daruma.state import budget
from daruma.state.budget import ended_with, outcomes
from daruma.state.channels import State
from daruma.state.errors import DamagedState
from daruma.state.failure import Failure
from daruma.state.plan import Plan, first_failed
from daruma.state.recovery import Recovered
from daruma.state.result import headline_of
from daruma.state.savepoint import Savepoint, newest_of_each
from daruma.state.settings import Settings, SettingsError
from daruma.state.task import Task

# --- What the tasks and phases were called that savepoints were taken for.

Titles = Mapping[tuple[str, str | None], str]
"""Goals by ``(task id, None)``, titles of phases by ``(task id, phase id)``."""


async def titles_on(graph: Machine, thread: str, savepoints: Iterable[Savepoint]) -> Titles:
    """Read what is behind savepoints off a thread: each request finds the task before it ended."""
    config = RunnableConfig(configurable={"thread_id": thread})
    wanted = {each.task_id for each in savepoints}
    titles = titles_of((await graph.aget_state(config)).values)
    if wanted <= {task_id for task_id, _ in titles}:
        return titles
    with suppress(DamagedState):  # a title is not worth hiding the rest of a thread
        async for past in graph.aget_state_history(config, filter={"source": "input"}):
            titles = titles_of(past.values) | titles
    return titles


def titles_of(values: Mapping[str, Any]) -> dict[tuple[str, str | None], str]:
    """Return what the task at hand and its phases are called; ``values`` are those of a state."""
    task, plan = values.get("task"), values.get("plan")
    if task is None:
        return {}
    phases = plan.phases if plan else ()
    return {(task.id, None): task.goal} | {(task.id, each.id): each.title for each in phases}


# --- A timeline as JSON-able values.


def timeline_values(timeline: Timeline) -> dict[str, Any]:
    """Return all that a timeline adds to what else is known of a thread; times are Unix seconds."""
    return {
        "started_at": timeline.started_at,
        "updated_at": timeline.updated_at,
        "tokens": timeline.tokens,
        "usd": timeline.usd,
        "spent": {kind: list(numbers) for kind, numbers in timeline.spent.items()},
        "whole": timeline.whole,
        "moments": [asdict(each) for each in timeline.moments],
        "path": [asdict(each) for each in timeline.path],
    }


# --- Savepoints as people read them: when, before or after what, and how to go back there.


def savepoint_lines(
    thread: str, savepoints: Sequence[Savepoint], titles: Titles, *, snapshots: bool = False
) -> list[Line]:
    """Return a line for each savepoint, and one that says how to go back to one of them.

    ``snapshots`` asks for the ids of the snapshots too.
    """
    if not savepoints:
        return [Line("note", "there are none: no task of this thread had a workspace")]
    lines = [_line(each, titles, snapshots=snapshots) for each in savepoints]
    return [*lines, Line("line", f"daruma undo {shlex.quote(thread)} --to ID", "goes there")]


def savepoint_values(savepoints: Sequence[Savepoint], titles: Titles) -> list[dict[str, Any]]:
    """Return savepoints as JSON-able values; ``at`` is Unix time in seconds."""
    return [
        {
            "id": each.id,
            "when": each.when,
            "task_id": each.task_id,
            "phase_id": each.phase_id,
            "what": titles.get((each.task_id, each.phase_id)),
            "workspace": each.workspace,
            "snapshot": each.snapshot,
            "note": each.note,
            "at": each.at,
        }
        for each in savepoints
    ]


def _line(savepoint: Savepoint, titles: Titles, *, snapshots: bool) -> Line:
    which = f"phase {savepoint.phase_id}" if savepoint.phase_id else f"task {savepoint.task_id}"
    title = one_line(titles.get((savepoint.task_id, savepoint.phase_id), which), 60)
    when = "after" if savepoint.when == "done" else "before"
    at = datetime.fromtimestamp(savepoint.at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    kept = savepoint.snapshot if snapshots else None
    tail = " · ".join(one_line(part) for part in (at, kept, savepoint.note) if part)
    return Line("ok" if savepoint.snapshot else "bad", f"{savepoint.id}  {when} {title}", tail)


# --- A thread as it stands, read for people: nothing is run, no model is made.


@dataclass(frozen=True)
class ThreadView:
    """What is known of one thread. ``damage`` says why its state can not be read, if so.

    ``recoveries`` are those of the newest task, ``traceback`` is that of a bug which ended it.
    ``titles`` are the names of the tasks and phases that savepoints were taken for; ``standing`` is
    what other processes do with it.
    """

    thread: str
    updated_at: datetime
    model: str | None = None
    task: Task | None = None
    plan: Plan | None = None
    messages: tuple[AnyMessage, ...] = ()
    recoveries: tuple[Recovered, ...] = ()
    stop: Stop | None = None
    traceback: str = ""
    damage: str = ""
    standing: Standing | None = None
    titles: Titles = field(default_factory=dict)
    timeline: Timeline | None = None

    @property
    def savepoints(self) -> tuple[Savepoint, ...]:
        """The states that the files can be put back to, oldest first."""
        return newest_of_each(self.stop.savepoints) if self.stop else ()

    @property
    def is_busy(self) -> bool:
        """Whether some process runs it, or is to."""
        return bool(self.standing and self.standing.is_busy)

    @property
    def request(self) -> str:
        """What is queued for it, in words."""
        return self.standing.request if self.standing else ""

    @property
    def trouble(self) -> str:
        """Why a worker could not run it."""
        return self.standing.error if self.standing else ""

    @property
    def status(self) -> str:
        """What is done with it, a result's status, or ``waiting``, ``held`` and the like.

        A thread is held after a rollback that failed, until somebody decides.
        """
        if self.standing and (self.standing.is_busy or not (self.stop or self.damage)):
            return self.standing.what
        if self.stop is None:
            return "damaged"
        if any(is_held(each.value) for each in self.stop.questions):
            return "held"
        if self.stop.result:
            return self.stop.result.status
        return "waiting" if self.stop.questions else "unfinished"

    @property
    def headline(self) -> str:
        """The status as people read it: a success that nothing checked says so (MO-10)."""
        result = self.stop.result if self.stop else None
        return headline_of(self.status, result.checked.outcome if result else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the view as JSON-able values."""
        task, stop = self.task, self.stop
        questions = stop.questions if stop else ()
        return {
            "thread": self.thread,
            "status": self.status,
            "updated_at": self.updated_at.isoformat(),
            "model": self.model,
            "goal": task.goal if task else None,
            "mode": task.mode if task else None,
            "workspace": task.workspace if task else None,
            "plan": self.plan.to_dict() if self.plan else None,
            "recoveries": [each.to_dict() for each in self.recoveries],
            "interrupts": [{"id": each.id, "value": each.value} for each in questions],
            "savepoints": savepoint_values(self.savepoints, self.titles),
            "trouble": self.trouble or None,
            "traceback": self.traceback or None,
            "result": stop.result.to_dict() if stop and stop.result else None,
            "timeline": timeline_values(self.timeline) if self.timeline else None,
        }


async def newest_threads(postgres: Postgres) -> list[ThreadView]:
    """Return the threads that were written last; one that is damaged does not hide the others."""
    graph = build_graph(settings=Settings(), persistence=postgres)
    known = await standings(postgres.checkpointer.database)
    views = list[ThreadView]()
    for row in await postgres.athreads():
        standing = known.pop(row.thread_id, None)
        try:
            view = await _seen(graph, row.thread_id)
        except DamagedState as error:
            view = ThreadView(row.thread_id, row.updated_at, damage=str(error))
        views += [replace(view, standing=standing)] if view else []  # pruned meanwhile
    return [*(_submitted(each) for each in known.values()), *views]


async def thread_view(postgres: Postgres, thread: str) -> ThreadView:
    """Read one thread, without its timeline. Raises ``ThreadRefused`` for a name that none has."""
    graph = build_graph(settings=Settings(), persistence=postgres)
    standing = (await standings(postgres.checkpointer.database, thread)).get(thread)
    seen = await _seen(graph, thread)
    if seen is None:
        if standing is None:
            raise await no_such(postgres, thread)
        return _submitted(standing)
    view = replace(seen, standing=standing)
    return replace(view, titles=await titles_on(graph, thread, view.savepoints))


async def whole_view(postgres: Postgres, thread: str) -> ThreadView:
    """Read one thread with its timeline, and what its work will be checked with."""
    view = await thread_view(postgres, thread)
    if view.stop is None:
        return view
    graph = build_graph(settings=Settings(), persistence=postgres)
    config = RunnableConfig(configurable={"thread_id": thread})
    snapshot = await graph.aget_state(config)
    try:
        settings = Keepsake.of(snapshot.metadata or {}).settings()
    except SettingsError:  # of a folder that is another by now; to look, none are needed
        settings = Settings()
    stop = replace(view.stop, checks=await checks_ahead(snapshot, settings))
    return replace(view, stop=stop, timeline=await graph.atimeline(config))


def _submitted(standing: Standing) -> ThreadView:
    return ThreadView(standing.thread_id, standing.since.astimezone(), standing=standing)


async def _seen(graph: Machine, thread: str) -> ThreadView | None:
    snapshot = await graph.aget_state(RunnableConfig(configurable={"thread_id": thread}))
    if snapshot.created_at is None:
        return None
    return _view(thread, snapshot, datetime.fromisoformat(snapshot.created_at))


def _view(thread: str, snapshot: StateSnapshot, updated_at: datetime) -> ThreadView:
    values = snapshot.values
    return ThreadView(
        thread=thread,
        updated_at=updated_at,
        model=Keepsake.of(snapshot.metadata or {}).model,
        task=values.get("task"),
        plan=values.get("plan"),
        messages=tuple(values.get("messages", ())),
        recoveries=_recoveries(values),
        stop=Stop.at(thread, snapshot),
        traceback=_traceback(values.get("failure"), values.get("plan")),
    )


def _recoveries(values: Mapping[str, Any]) -> tuple[Recovered, ...]:
    state = State(**values)
    return outcomes(budget.of_task(state), ended_with(state))


def _traceback(failure: Failure | None, plan: Plan | None) -> str:
    fallen = first_failed(plan) if plan else None
    found = failure or (fallen.failure if fallen else None)
    return found.detail if found and found.code == "internal_error" else ""
