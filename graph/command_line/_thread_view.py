"""A thread as it stands, read for people: nothing is run, no model is made."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from daruma.graph.command_line._messages import one_line
from daruma.graph.command_line._options import no_such
from daruma.graph.command_line._output import Line
from daruma.graph.standing import Standing, standings, status_of
from daruma.graph.storage import Postgres
from daruma.graph.timeline import Timeline, read_snapshot, read_supersteps, read_timeline
from daruma.state import budget
from daruma.state.budget import ended_with, outcomes
from daruma.state.channels import State
from daruma.state.errors import DamagedState
from daruma.state.interrupts import is_question
from daruma.state.plan import Plan, first_failed
from daruma.state.recovery import Recovered
from daruma.state.result import TaskResult, headline_of
from daruma.state.savepoint import Savepoint, newest_of_each
from daruma.state.serializer import Asked
from daruma.state.settings import SETTINGS_FILE, Settings, SettingsError
from daruma.state.task import Task

if TYPE_CHECKING:
    from langgraph.types import Interrupt, StateSnapshot

# --- What a thread keeps of the command that started it, so that another process can go on with it.
#
# It lies in the metadata of the thread's checkpoints, in clear: a model's name and a folder, never
# a key. The settings are read again from that folder, and the environment is each process's own.

_MODEL, _FOLDER = "daruma_model", "daruma_folder"


@dataclass(frozen=True)
class Keepsake:
    """The model's name, and the folder whose ``daruma.yaml`` holds the thread's settings."""

    model: str | None
    folder: str

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "Keepsake":
        """Read it back; a thread that Python code started is taken up in the current folder."""
        model, folder = metadata.get(_MODEL), metadata.get(_FOLDER)
        return cls(str(model) if model else None, str(folder or Path.cwd()))

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what is kept, for a run's config."""
        return {_MODEL: self.model or "", _FOLDER: self.folder}

    def settings(self) -> Settings:
        """Read the settings. Raises :class:`~daruma.state.settings.SettingsError`.

        Among them is :class:`~daruma.state.settings.UntrustedSettings`: what a task has
        written there is no permission for it, nor for the next one (SE-02).
        """
        return Settings.load(str(Path(self.folder) / SETTINGS_FILE))


# --- The commands that the work under a plan will be checked with, known before it is agreed to.


async def checks_ahead(snapshot: "StateSnapshot", settings: Settings) -> tuple[str, ...]:
    """Return what is recognised in the workspace now, and what settings declare.

    Empty where no plan waits for a review, or nothing will be verified. The commands that a phase
    is checked with beside stand in the plan.
    """
    task = snapshot.values.get("task")
    waits = any(
        isinstance(each.value, dict) and each.value.get("type") == "spec_review_request"
        for each in snapshot.interrupts
    )
    if not waits or task is None or not task.verify or task.workspace is None:
        return ()
    from daruma.tools.checks import recognised_commands

    try:
        found = await recognised_commands(Path(task.workspace))
    except OSError:  # what is wrong with the workspace is told where it is opened
        found = ()
    return tuple(dict.fromkeys((*found, *settings.verification.commands)))


# --- Where a thread stands when nothing is running.


@dataclass(frozen=True)
class Stop:
    """Where a thread stands when nothing is running: at its result, or at open questions.

    It has both while it is parked or held. ``savepoints`` are the states that it can go back to;
    ``checks`` are the commands that the work under a plan will be checked with.
    """

    thread: str
    result: TaskResult | None
    questions: "tuple[Interrupt | Asked, ...]"
    savepoints: tuple[Savepoint, ...] = ()
    checks: tuple[str, ...] = ()

    @classmethod
    def at(cls, thread: str, snapshot: "StateSnapshot") -> Self:
        """Read it off a thread's state.

        A tool's own question, of any form, is shown, and answered in Python.
        """
        values = snapshot.values
        questions = tuple(
            each
            if is_question(each.value)
            else Asked(value={"type": "tool_question", "question": repr(each.value)}, id=each.id)
            for each in snapshot.interrupts
        )
        return cls(thread, values.get("result"), questions, tuple(values.get("savepoints", ())))


# --- What the tasks and phases were called that savepoints were taken for.

Titles = Mapping[tuple[str, str | None], str]
"""Goals by ``(task id, None)``, titles of phases by ``(task id, phase id)``."""


async def titles_on(postgres: Postgres, view: "ThreadView") -> Titles:
    """Read what is behind savepoints off a thread: what its nodes wrote of tasks and plans."""
    titles = titles_of((view.task, view.plan))
    if {each.task_id for each in view.savepoints} <= {task_id for task_id, _ in titles}:
        return titles
    with suppress(DamagedState):  # a title is not worth hiding the rest of a thread
        supersteps = await read_supersteps(postgres.checkpointer, view.thread)
        titles = titles_of(each.value for step in supersteps for each in step.written) | titles
    return titles


def titles_of(written: Iterable[object]) -> dict[tuple[str, str | None], str]:
    """Return what tasks and phases are called, of all that was written, in its order."""
    titles: dict[tuple[str, str | None], str] = {}
    task: Task | None = None
    for each in written:
        if isinstance(each, Task):
            task = each
            titles[task.id, None] = task.goal
        elif isinstance(each, Plan) and task:
            titles |= {(task.id, phase.id): phase.title for phase in each.phases}
    return titles


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
        **({"todo": [*timeline.todo]} if timeline.todo else {}),
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
    """What is known of one thread.

    ``recoveries`` are those of the newest task, ``traceback`` is that of a bug which ended it.
    ``titles`` are the names of the tasks and phases that savepoints were taken for; ``standing`` is
    what other processes do with it.
    """

    thread: str
    updated_at: datetime
    standing: Standing | None = None
    model: str | None = None
    task: Task | None = None
    plan: Plan | None = None
    recoveries: tuple[Recovered, ...] = ()
    stop: Stop | None = None
    traceback: str = ""
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
    def trouble(self) -> str:
        """Why a worker could not run it."""
        return self.standing.error if self.standing else ""

    @property
    def status(self) -> str:
        """What is done with it, a result's status, or ``waiting``, ``held`` and the like."""
        if self.standing and (self.standing.is_busy or not self.stop):
            return self.standing.what
        return status_of(self.stop.result, self.stop.questions) if self.stop else "unfinished"

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


async def thread_view(postgres: Postgres, thread: str, *, whole: bool = False) -> ThreadView:
    """Read one thread. Raises ``ThreadRefused`` for a name that none has.

    A ``whole`` one has its timeline, and what its work will be checked with.
    """
    saver = postgres.checkpointer
    standing = (await standings(saver.database, thread)).get(thread)
    snapshot = await read_snapshot(saver, thread)
    if snapshot is None:
        if standing is None:
            raise await no_such(postgres, thread)
        return ThreadView(standing.thread_id, standing.since.astimezone(), standing)
    view = _view(thread, snapshot, standing)
    view = replace(view, titles=await titles_on(postgres, view))
    if not whole:
        return view
    try:
        settings = Keepsake.of(snapshot.metadata or {}).settings()
    except SettingsError:  # of a folder that is another by now; to look, none are needed
        settings = Settings()
    stop = replace(Stop.at(thread, snapshot), checks=await checks_ahead(snapshot, settings))
    return replace(view, stop=stop, timeline=await read_timeline(saver, snapshot))


def _view(thread: str, snapshot: "StateSnapshot", standing: Standing | None) -> ThreadView:
    state = State(**snapshot.values)
    fallen = first_failed(state.plan) if state.plan else None
    failure = state.failure or (fallen.failure if fallen else None)
    bug = failure if failure and failure.code == "internal_error" else None
    return ThreadView(
        thread=thread,
        updated_at=datetime.fromisoformat(str(snapshot.created_at)),
        standing=standing,
        model=Keepsake.of(snapshot.metadata or {}).model,
        task=state.task,
        plan=state.plan,
        recoveries=outcomes(budget.of_task(state), ended_with(state)),
        stop=Stop.at(thread, snapshot),
        traceback=bug.detail if bug else "",
    )
