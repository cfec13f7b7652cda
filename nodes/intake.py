"""Read the new request: its mode, its goal, its workspace, and the limits it runs under."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state.channels import State, Update
from daruma.state.events import task_started
from daruma.state.failure import Failure
from daruma.state.lessons import Instructions, Lessons, Recalled
from daruma.state.messages import is_request
from daruma.state.mode import split_prefix
from daruma.state.result import Structured
from daruma.state.settings import Settings
from daruma.state.spending import limits_of, only_if_changed, verifies
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.continuity import TAKE_UP_MODE, take_up
from daruma.tools.evolution import feeds_back, lessons_for, report_lessons
from daruma.tools.memory import owner_of, recall
from daruma.tools.rollback import Written, drift_update, write_savepoint
from daruma.tools.skills import read_instructions, usable_in
from daruma.tools.snapshots import SnapshotUnavailable
from daruma.tools.team import TemplateRefused, template_named
from daruma.tools.threads import in_thread


async def intake(state: State, context: Context) -> Update:
    """Begin a task; what the one before it left on the thread is cleared, but for the history."""
    asked = _request(state, context.thread_id)
    said = asked.text if asked else ""
    spoken, template, goal = split_prefix(said)
    task_id = _next_task_id(state, context)
    taken = await take_up(state, context, task_id, said, state.mode or spoken)
    mode = TAKE_UP_MODE if taken.resumed else state.mode or spoken or context.settings.mode
    if taken.resumed and taken.clarification:
        goal = taken.clarification.goal or goal
    named = template or context.settings.team.template
    template = named if mode == "team_collab" else None
    workspace = state.workspace or (state.task.workspace if state.task else None)
    unknown = await _unknown_team(template, context.settings, workspace) if template else None
    if_changed = only_if_changed(context.settings, mode)
    verify = verifies(context.settings, mode)
    before = state.task.rubric if taken.resumed and state.task else ()
    rubric = (*context.settings.verification.rubric, *before, *(state.rubric or ()))
    task = Task(
        id=task_id,
        goal=goal.strip(),
        mode=mode,
        template=template,
        limits=limits_of(context.settings, mode),
        workspace=workspace,
        verify=verify and not (if_changed and workspace is None and not rubric),
        only_if_changed=if_changed and workspace is not None,
        rubric=tuple(dict.fromkeys(rubric)) if verify else (),
        review=context.settings.spec_review.enabled,
        started_at=context.now(),
        request=(asked.id or "") if asked else "",
    )
    task = await _with_owners_and_skills(task, context.settings)
    context.emit(task_started(task))
    refusal = _refusal(task, asked) or unknown
    helped = await _prepare(task, context) if refusal is None else _Preparation()
    lessons, told = helped.lessons, helped.instructions
    return {
        "task": task,
        "recalled": helped.recalled,
        "plan": None,
        "calls": (),
        "reports": (),
        "verification": None,
        "savepoints": helped.written.savepoints,
        "crowded": None,
        **({"overrun": None} if state.overrun else {}),
        "drifted": drift_update(task, helped.written.changes, context),
        "failure": refusal,
        "origin": None,
        "action": None,
        "error": None,
        "steps": [*taken.steps],
        # A channel that is never written takes no room in any checkpoint.
        **({"lessons": lessons} if lessons or state.lessons else {}),
        **({"instructions": told} if told or state.instructions else {}),
        **_wanted_structure(state, context),
        **taken.update,
    }


def _wanted_structure(state: State, context: Context) -> Update:
    """Keep the schema that answers are to fit with the task, for whoever goes on with it."""
    form = context.response_format
    if form is None:
        return {"structured": None} if state.structured else {}
    return {"structured": Structured(schema=dict(form.asked.parameters))}


async def _with_owners_and_skills(task: Task, settings: Settings) -> Task:
    """Settle whose memories and experience the task works with, and whether there are skills."""
    named, folders = settings.memory.namespace, settings.skills.folders
    learning = settings.evolution.namespace
    owner, whose, skills = owner_of(named, None), owner_of(learning, None), False
    if task.workspace:
        owner = await in_thread(owner_of, named, task.workspace)
        whose = await in_thread(owner_of, learning, task.workspace)
    if folders:
        skills = bool(await in_thread(usable_in, folders, task.workspace))
    return replace(task, memory_owner=owner, experience_owner=whose, skills=skills)


@dataclass(frozen=True)
class _Preparation:
    """What is there of a task before its work begins."""

    written: Written = field(default_factory=lambda: Written([]))
    recalled: Recalled | None = None
    lessons: Lessons | None = None
    instructions: Instructions | None = None


async def _prepare(task: Task, context: Context) -> _Preparation:
    """Look the lessons up while the rest is done; they are told of last, whenever they came."""
    wanted = feeds_back(task, context)
    lessons = asyncio.ensure_future(lessons_for(task, context)) if wanted else None
    try:
        written = await _write_first_savepoint(task, context)
        recalled = await recall(
            task, task.goal, context.store, context.settings.memory, context.emit
        )
        told = None
        if task.workspace and task.mode != "direct_chat":
            own = context.settings.instructions
            told = await in_thread(read_instructions, task.id, task.workspace, own)
        known = report_lessons(await lessons, context) if lessons else None
        return _Preparation(written, recalled, known, told)
    finally:
        if lessons:
            lessons.cancel()


async def _write_first_savepoint(task: Task, context: Context) -> Written:
    """Keep the workspace as it is before the task; who only chats changes nothing in it."""
    if task.mode == "direct_chat":
        return Written([])
    written = await write_savepoint(task, "task", context, by="others")
    snapshots = context.snapshots(task.workspace)
    if snapshots and not written.missing:
        kept = context.settings.rollback.keep_days * 24 * 3600
        with suppress(SnapshotUnavailable):
            await in_thread(snapshots.prune, older_than=kept)
    return written


def _request(state: State, thread_id: str) -> AnyMessage | None:
    """Return what a person asked for last; in another graph, others may have spoken since."""
    newest = reversed(state.messages)
    last = next(newest, None)
    if isinstance(last, HumanMessage):
        return last
    return next((each for each in newest if is_request(each, thread_id)), None)


def _next_task_id(state: State, context: Context) -> str:
    """Number the task on its thread; where nothing is kept, past those whose messages came back."""
    name = "/".join(each for each in (context.thread_id, context.namespace) if each)
    known = [state.task.id] if state.task else [str(each.id) for each in state.messages]
    numbered = re.compile(rf"{re.escape(name)}/(\d{{1,9}})(?![^/:])")
    numbers = [int(each[1]) for each in map(numbered.match, known) if each]
    return f"{name}/{max(numbers, default=0) + 1}"


def _refusal(task: Task, asked: AnyMessage | None) -> Failure | None:
    if task.goal:
        return None
    content = asked.content if asked else ""  # it may have parts that are not text, as an image
    if any(isinstance(part, dict) and part.get("type") != "text" for part in content):
        return None
    return _bad_request("the message is empty: say what is to be done")


async def _unknown_team(template: str, settings: Settings, workspace: str | None) -> Failure | None:
    """Say why a team can not be had (MO-06), if it can not."""
    try:
        await in_thread(template_named, template, settings.team, settings.tools, workspace)
    except TemplateRefused as error:
        return _bad_request(str(error))
    return None


def _bad_request(message: str) -> Failure:
    return Failure(code="bad_request", node="intake", message=message)
