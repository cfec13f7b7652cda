"""A thread as it stands, read for people, and threads on paper: the list, the story of one, its
page, and following it. Nothing is run, no model is made.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import typer
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from daruma.graph.command_line._messages import one_line, shown
from daruma.graph.command_line._moment_lines import clock, cost_of, moment_lines
from daruma.graph.command_line._options import no_such
from daruma.graph.command_line._output import Line, Mark, Paper, Pasted, render_age
from daruma.graph.command_line._questions import how_to_answer, plan_lines, question_lines
from daruma.graph.standing import Standing, standings, status_of
from daruma.graph.storage import Postgres
from daruma.graph.timeline import (
    Moment,
    Timeline,
    read_snapshot,
    read_supersteps,
    read_timeline,
    render_duration,
)
from daruma.state import budget
from daruma.state.budget import ended_with, outcomes
from daruma.state.channels import State
from daruma.state.errors import DamagedState, DarumaError
from daruma.state.failure import Recovered
from daruma.state.interrupts import is_question
from daruma.state.outcome import join_paths
from daruma.state.plan import Plan, first_failed
from daruma.state.result import TaskResult, headline_of
from daruma.state.savepoint import Savepoint, newest_of_each
from daruma.state.serializer import Asked
from daruma.state.settings import SETTINGS_FILE, Settings, SettingsError
from daruma.state.task import Task
from daruma.state.text import counted, on_thread, pasted
from daruma.state.verification import Outcome, excerpt
from daruma.tools.text import mask_keys

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
    ``checks`` are the commands that the work under a plan will be checked with. On one that is not
    ``own``, another graph asks.
    """

    thread: str
    result: TaskResult | None
    questions: "tuple[Interrupt | Asked, ...]"
    savepoints: tuple[Savepoint, ...] = ()
    checks: tuple[str, ...] = ()
    own: bool = True

    @classmethod
    def at(cls, thread: str, snapshot: "StateSnapshot") -> Self:
        """Read it off a thread's state.

        A tool's own question, of any form, is shown, and answered in Python.
        """
        values = snapshot.values
        questions = tuple(
            each
            if is_question(each.value)
            else Asked({"type": "tool_question", "question": repr(mask_keys(each.value))}, each.id)
            for each in snapshot.interrupts
        )
        kept, own = tuple(values.get("savepoints", ())), values.get("task") is not None
        return cls(thread, values.get("result"), questions, kept, own=own)


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
    return [*lines, Pasted("line", on_thread("undo", thread, "--to ID"), "goes there")]


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


# --- A timeline on a terminal: a line for each thing that happened, phases as sections.

_ELSEWHERE: Final = frozenset({"savepoint"})
"""Kinds of moments that have a place of their own in a thread's story."""


def when_lines(timeline: Timeline, now: float | None = None) -> Iterator[Line]:
    """Yield when it began and how long that is ago, how long it took, and what it cost."""
    if not timeline.started_at:
        return
    since = max(0.0, (time.time() if now is None else now) - timeline.started_at)
    began = clock(timeline.started_at, "%Y-%m-%d %H:%M:%S")
    took = max(0.0, timeline.updated_at - timeline.started_at)
    told = (f"began {began}, {render_age(since)}; took {render_duration(took)}", *cost_of(timeline))
    yield Line("note", " · ".join(filter(None, told)))


def timeline_lines(timeline: Timeline, tail: int | None = None) -> Iterator[Line]:
    """Yield all moments, or the last ``tail`` of them and how many came before."""
    told = [each for each in timeline.moments if each.kind not in _ELSEWHERE]
    shown = told if tail is None else told[max(0, len(told) - tail) :]
    yield Line("head", "Timeline", _left_out(len(told) - len(shown), whole=timeline.whole))
    for moment in shown:
        yield from moment_lines(moment, timeline.started_at)


def _left_out(number: int, *, whole: bool) -> str:
    before = f"{number} moments before are left out" if number else ""
    thinned = "" if whole else "what came first was thinned away"
    return "; ".join(filter(None, (before, thinned)))


# --- The story of one thread: what was asked, said and done, and where it stands.


def print_story(paper: Paper, view: ThreadView, tail: int | None = None) -> None:
    """Print a thread's story, ending with its result, its open questions, or how to go on.

    Of its timeline, all is told or the last ``tail`` moments.
    """
    paper.put(Line("head", f"thread {view.thread}", view.headline), *_asked_lines(view))
    if view.plan:
        paper.put(Line("head", "Plan"))
        paper.put(*plan_lines([phase.to_dict() for phase in view.plan.phases]))
    if view.timeline:
        paper.put(*timeline_lines(view.timeline, tail))
    if view.savepoints:
        kept = savepoint_lines(view.thread, view.savepoints, view.titles)
        paper.put(Line("head", "Savepoints", "states that the files can be put back to"), *kept)
    print_end(paper, view, known=view.plan is not None)


def _asked_lines(view: ThreadView) -> Iterator[Line]:
    if view.task:
        place = f" in {view.task.workspace}" if view.task.workspace else ""
        model = f" with {view.model}" if view.model else ""
        yield Line("line", view.task.goal)
        yield Line("note", f"{view.task.mode}{place}{model}")
    if view.timeline:
        yield from when_lines(view.timeline)


def print_end(paper: Paper, view: ThreadView, *, known: bool = False) -> None:
    """Print where a thread stands: its result, its open questions, or how to go on."""
    if view.trouble:
        paper.put(Line("bad", one_line(view.trouble, 1000)))
    stop = view.stop
    if view.is_busy:
        see = on_thread("show", view.thread, "--follow")
        paper.put(Pasted("head", view.status.capitalize(), f"see {see}"))
        return
    if stop and stop.result:
        print_summary(paper, view.thread, stop.result, stop.savepoints)
        if view.traceback:
            paper.put(Line("head", "Traceback"))
            paper.put(*(Line("line", line) for line in view.traceback.splitlines()))
    if stop and stop.questions:
        print_questions(paper, stop, known=known)
    elif stop is None or stop.result is None:
        paper.put(Pasted("head", "Unfinished", f"go on with {on_thread('resume', view.thread)}"))


def print_questions(paper: Paper, stop: Stop, *, known: bool, asked: bool = False) -> None:
    """Print the open questions, unless they were ``asked`` just now, and how to answer them.

    A ``known`` plan has just been shown.
    """
    for question in () if asked else stop.questions:
        paper.put(*question_lines(question.value, known=known, checks=stop.checks))
    commands = how_to_answer(stop.thread, stop.questions) if stop.own else []
    where = "" if commands else "Command(resume=...) in your program, which asks"
    paper.put(Line("head", "Answer with", where), *(Pasted("line", text) for text in commands))


# --- How a task ended, on one screen: what was done, how it was checked, what it took.

_NAMES = 9
_EXCERPT = 1500
"""Characters of what the failing checks said."""

_OUTCOMES: dict[Outcome, Mark] = {"passed": "ok", "failed": "bad", "none": "note"}
_PHASES: dict[str | None, Mark] = {"completed": "ok", "pending": "note", "running": "note"}


def print_summary(
    paper: Paper, thread: str, result: TaskResult, savepoints: Sequence[Savepoint] = ()
) -> None:
    """Print a result. Its texts come from models and tools: nothing in them is obeyed, and none of
    their lines begins where ours do.

    ``savepoints`` are the thread's: they say whether its files can be put back.
    """
    checked = result.completed and result.checked.outcome == "passed"
    colour = "green" if checked else "yellow" if result.completed else "red"
    console = paper.console
    console.print()
    title = Text(f" {paper.symbol('ok' if result.completed else 'bad')} {result.headline} ")
    dash = "-" if console.options.ascii_only else "─"
    if paper.terminal:
        console.print(Rule(title, style=colour, align="left", characters=dash))
    else:
        console.print(Text(f"{dash * 3}{title}{dash * 3}"))
    structured = result.to_dict().get("structured")
    indented = json.dumps(structured, indent=2, ensure_ascii=False)
    said = result.output if structured is None else indented
    if structured is None or paper.terminal:
        paper.put(Line("line", said))
    else:  # JSON alone begins no line as we do, unless a terminal folds it
        console.print(Text(shown(said)), soft_wrap=True)
    console.print()
    rows = _rows(paper, thread, result)
    if any(each.snapshot for each in savepoints if each.task_id == result.task_id):
        rows.append(("undo", on_thread("undo", thread)))
    _print_rows(paper, rows)
    if result.verification and not result.verification.passed:
        said = excerpt(result.verification, limit=_EXCERPT)
        console.print()
        paper.put(Line("same", said))


def _print_rows(paper: Paper, rows: list[tuple[str, str]]) -> None:
    for name, text in rows:
        if paper.terminal and name not in ("answer", "undo"):  # these are to be pasted
            grid = Table.grid()
            grid.add_column(style="dim", width=_NAMES)
            grid.add_column(overflow="fold")
            grid.add_row(name, Text(shown(text)))
            paper.console.print(grid)
        else:
            lines = shown(text).replace("\n", "\n" + " " * _NAMES)
            paper.console.print(Text(f"{name:<{_NAMES}}{lines}"), soft_wrap=True)


def _rows(paper: Paper, thread: str, result: TaskResult) -> list[tuple[str, str]]:
    marked = [f"{paper.symbol(_PHASES.get(e.status, 'bad'))} {e.title}" for e in result.phases]
    checks = result.verification.checks if result.verification else ()
    checked = [f"{paper.symbol(_OUTCOMES[check.outcome])} {check.command}" for check in checks]
    changed = result.verification.changed_tests if result.verification else ()
    spent = [f"{kind} {number}" for kind, number in result.budgets.items() if number]
    seconds = result.timings.get("total")
    asked = result.clarification
    told = {
        "for": f"{asked.target_action}: {', '.join(asked.missing_fields)}" if asked else "",
        "answer": f'daruma run --thread {pasted(thread)} "..."' if asked else "",
        "phases": "\n".join(marked),
        "replanned": "\n".join(plan.why for plan in result.replaced),
        "checks": "\n".join(checked) or _why_unchecked(result),
        "tests": f"changed: {join_paths(changed)}" if changed else "",
        "try": "\n".join(result.error_struct.suggestions) if result.error_struct else "",
        "told": "\n".join(each.text for each in result.lessons.pitfalls) if result.lessons else "",
        "sandbox": result.sandbox or "",
        "steps": ", ".join(spent),
        "tokens": _tokens(result),
        "time": render_duration(seconds) if seconds is not None else "",
        "note": "\n".join(result.notes),
        "thread": thread,
    }
    return [(name, text) for name, text in told.items() if text]


def _why_unchecked(result: TaskResult) -> str:
    told = not result.completed or result.checked.why in result.notes
    return "" if told else result.checked.why


def _tokens(result: TaskResult) -> str:
    usages = result.usage.values()
    read, written, calls = (
        sum(each[name] for each in usages) for name in ("input_tokens", "output_tokens", "calls")
    )
    about = "about " if any(each.get("estimated") for each in usages) else ""
    told = f"{about}{read:,} read, {written:,} written in {counted(calls, 'call')}"
    return told if calls else ""


# --- Watching a thread that some other process runs: what is new is told, until it stops.

POLL: Final = 0.5
"""Seconds between two looks; one costs a few milliseconds."""


async def follow(
    postgres: Postgres, thread: str, paper: Paper, *, poll: float = POLL
) -> ThreadView:
    """Tell what happens on a thread, and return how it stands when nobody runs it."""
    told, status = set[Moment](), ""
    while True:
        view = await thread_view(postgres, thread, whole=True)
        if view.status != status and view.is_busy:
            paper.put(Line("head", f"thread {thread}", view.status))
        status, timeline = view.status, view.timeline
        for moment in timeline.moments if timeline else ():
            known = replace(moment, seconds=None, tokens=0, usd=None, note="", at=round(moment.at))
            open_call = moment.kind == "tool" and moment.ok is None  # it runs, or waits
            if known not in told and not open_call and moment.kind not in _ELSEWHERE:
                told.add(known)
                paper.put(*moment_lines(moment, timeline.started_at if timeline else 0.0))
        if not view.is_busy:
            return view
        await asyncio.sleep(poll)


# --- ``daruma show THREAD --html``: a run as one file.

MADE_HERE = '<meta name="generator" content="daruma">'
"""Stands near the beginning of every page: only such a file is written over."""

_LONGEST = 200
"""Bytes of a file's name before its ending; file systems take 255 in all."""


class PageRefused(DarumaError):
    """Raised for a file that can not be written, or is no page of ours; says which and why."""


def write_page(thread: str, file: str | None, page: str) -> None:
    """Write a page to a file, THREAD.html unless named, or to standard output for ``-``.

    An older page is written over, anything else is not: raises :class:`PageRefused`.
    """
    if file == "-":
        typer.echo(page.encode(), nl=False)
        return
    name = re.sub(r"[^\w.-]+", "_", thread).lstrip(".") or "thread"
    path = Path(file or f"{name.encode()[:_LONGEST].decode(errors='ignore')}.html")
    if os.path.lexists(path) and not _is_ours(path):
        raise PageRefused(f"{path} is there and is no page of Daruma's: name another file")
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        why = f"{path} can not be written ({error.strerror}): name another file"
        raise PageRefused(why) from None
    typer.echo(f"{path}")


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MADE_HERE.encode() in file.read(2000)


async def page_of_thread(postgres: Postgres, thread: str) -> str:
    """Return the page of a thread.

    Raises :class:`~daruma.graph.command_line._options.ThreadRefused` where there is no such thread.
    """
    snapshot = await read_snapshot(postgres.checkpointer, thread)
    if snapshot is None:
        raise await no_such(postgres, thread)
    return (await read_timeline(postgres.checkpointer, snapshot)).page()
