"""Ask for a plan, and read it. One that can not be carried out is asked for again, with why.

So is one where the answer is no plan at all, but once only (MO-11).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.calls import is_open, with_status
from daruma.state.channels import State, Update
from daruma.state.events import AnswerAudited, PlanProposed, PlanRejected, PlanReplaced
from daruma.state.failure import Failure, ModelFailed, failure_of
from daruma.state.messages import cut_off_reason, has_shortened_results
from daruma.state.plan import NoPlan, Plan, PlanRefused, plan_in, replacement_reason
from daruma.state.settings import Settings
from daruma.state.spending import describe_overrun, overrun
from daruma.state.text import printable_line
from daruma.tools.calls import Tool, VisibleTools, audit_answer, read_answer
from daruma.tools.context import (
    Answer,
    Context,
    RecordStep,
    begin_step,
    budget_exceeded,
    visible_tools,
)
from daruma.tools.hooks import refuse
from daruma.tools.model_requests import (
    learned_instruction,
    memory_messages,
    pieces,
    pitfall_messages,
    repository_instructions,
    said_before,
)
from daruma.tools.planning import NOT_READING, read_only_call, reading_tools
from daruma.tools.team import Template, TemplateRefused, team_of
from daruma.tools.window import (
    Draft,
    after_provider_refusal,
    check_size,
    sent_history,
    too_large_update,
)

PROMPT = """\
You plan a task; others carry the plan out. Answer with one JSON object and nothing else:
{"phases": [{"id": "p1", "title": "...", "instructions": "...", "depends_on": []}]}
- Use as few phases as the task needs; a small task has one.
- `instructions` say what to achieve and how it will be known to be done.
- `depends_on` lists ids of phases that must be completed before.
- Optional for a phase: `validation_command` and `rollback_command`, shell lines run in the
  workspace; give them only where undoing a failed phase is clearly needed."""

RUBRIC = """\
- Optional for a phase: `rubric`, a list of what its work must meet where no command can tell; a
  judge checks it."""

SNAPSHOT = """\
- Optional for a phase: `"rollback": "snapshot"`, which puts all files back as they were before the
  phase, should it fail. It is worth it where half of the work would leave the workspace broken for
  what comes after, as with a migration or a wide renaming; leave it out where half is of use."""

TEAM = """\
- A team carries the plan out. Name for each phase the `expert` who does it, one of these:
{experts}
- Phases that do not depend on each other are carried out at the same time, each in a copy of the
  workspace of its own, and then merged. Let phases depend on each other only where one needs what
  the other made, and let those that do not change different files."""

LOOKING = """\
- Before you plan you may look at what the plan depends on: the tools here only read. Answer with \
the plan once you have seen enough."""

LONGEST_SAID: Final = 2000
"""Characters of what each phase came to that the planner is told."""

REPLAN = """\
The plan does not hold: {why}
What became of it:
{phases}
Plan anew what is left to reach the goal, in the form that was asked for, and not in the way that \
failed. What is completed stays, and is not done again: leave it out of the plan. A phase that \
needs it names its id in `depends_on`."""


async def plan(state: State, context: Context) -> Update:
    """Ask the main model for a plan of the task, or for what is left of one (PL-01b).

    It may look around first (PL-01a). Where planning anew comes to nothing, no failure is told: the
    task ends as the old plan has it end.
    """
    if state.plan and state.steps and state.steps[-1].signature == budget.GAVE_UP:
        return {}  # no compaction has made room for the request
    old, state = state.plan, replace(state, plan=None)  # what planning takes is of no phase
    update = await _plan(state, context, old)
    if state.calls:  # those of a look; what a hook made of one may be open still
        left = [call for call in state.calls if is_open((call,))]
        told = refuse([replace(call, reason=NOT_READING) for call in left], context.emit)
        update = {"calls": (), **update, "messages": [*told, *update.get("messages", ())]}
    return _as_replanning(state, context, old, update) if old else update


async def _plan(state: State, context: Context, old: Plan | None) -> Update:
    if old and (over := overrun(state, "plan")):  # it looked until then: nobody is asked for more
        said = describe_overrun(over)
        return {"failure": Failure(code="budget_exceeded", node="plan", message=said)}
    if spent := budget_exceeded(state, "plan", context):
        return spent
    try:
        team = await team_of(state.task, context.settings)
    except TemplateRefused as error:
        return {"failure": Failure(code="bad_request", node="plan", message=str(error))}
    offer = _offer(state, context)
    draft = request(state, context.settings, team, offer.tools, old)
    counted, crowded = check_size(draft, state, context)
    if crowded:
        return too_large_update(crowded)
    return await _ask(state, context, (draft, counted), offer, (team.names if team else (), old))


async def _ask(
    state: State,
    context: Context,
    asked: tuple[Draft, int],
    offer: VisibleTools,
    reading: tuple[Sequence[str], Plan | None],
) -> Update:
    draft, counted = asked
    record = begin_step(state, "plan", context)
    record_look = begin_step(state, "look", context)
    call = budget.on_thread(state, "plan") + budget.on_thread(state, "look")
    try:
        answer = await context.ask(
            "plan", draft.messages(state), call=call, tools=offer.tools, emit=context.emit
        )
    except ModelFailed as error:
        if crowded := after_provider_refusal(draft, state, context, error):
            return too_large_update(crowded)
        audit = audit_answer(failover=error.failover)
        if offer.tools and error.reason == "tools_unsupported":
            return {"steps": record_look(ok=False, audit=audit)}  # it is asked again without them
        return {"steps": record(ok=False, audit=audit), "failure": failure_of(error, "plan")}
    answer = replace(answer, counted=counted)
    if looks := _read_calls(state, context, answer, offer, record_look):
        return looks
    return _read_plan(state, context, answer, record, *reading)


def _offer(state: State, context: Context) -> VisibleTools:
    """Return the tools to look around with; none once that budget is spent."""
    if not budget.can_look(state):
        return VisibleTools()
    read_on, messages = has_shortened_results(state.messages), state.messages
    return reading_tools(visible_tools(state.task, context, reading=read_on, messages=messages))


def _read_calls(
    state: State, context: Context, answer: Answer, offer: VisibleTools, record: RecordStep
) -> Update | None:
    """Return the calls of an answer; those that do not only read are answered, and not run."""
    if not offer.tools:  # who calls all the same has made no plan
        return None
    message_id = f"{state.task_id}:look:{budget.in_task(state, 'look') + 1}"
    message, calls, left_out = read_answer(answer.message, message_id, offer)
    if not calls:
        return None
    calls = tuple(read_only_call(call, offer) for call in calls)
    audit = audit_answer(message_id, calls, left_out=left_out, failover=answer.failover)
    if audit:
        context.emit(AnswerAudited(audit=audit.to_dict()))
    refused = refuse(with_status(calls, "failed"), context.emit)
    return {"messages": [message, *refused], "calls": calls, "steps": record(answer, audit=audit)}


def _as_replanning(state: State, context: Context, old: Plan, update: Update) -> Update:
    """Return what a try to plan anew comes to: a new plan is told, a failure ends it (PL-01b)."""
    new = update.get("plan")
    if new:
        why = new.before.why if new.before else ""
        context.emit(PlanReplaced(plan_id=old.id, new_plan_id=new.id, why=why))
    if update.get("crowded"):  # nothing is to be done to the phase that ended last
        return {**update, "plan": replace(old, current=None)}
    if "failure" not in update:
        return update
    record = begin_step(state, "plan", context)
    usage = [replace(step, signature=budget.GAVE_UP) for step in update.get("steps", ())]
    return {"calls": (), "steps": usage or record(ok=False, signature=budget.GAVE_UP)}


def request(
    state: State,
    settings: Settings,
    team: Template | None = None,
    tools: Sequence[Tool] = (),
    old: Plan | None = None,
) -> Draft:
    """Draft the request: the prompt, and the conversation with what reviewers said.

    ``tools`` are those to look around with, ``old`` is the plan whose rest is to be planned anew.
    """
    snapshots, prompts = settings.rollback.snapshots, settings.prompts
    goal = state.task.goal if state.task else ""
    workspace = state.task.workspace if state.task else None
    place = f"\nWorkspace: {workspace}" if workspace else ""
    lines = [PROMPT, *([SNAPSHOT] if workspace and snapshots else ())]
    lines += [RUBRIC] if settings.llm.judge_model else []
    if team:
        lines.append(TEAM.format(experts="\n".join(f"  {e.name}: {e.about}" for e in team.experts)))
    lines += [LOOKING] if tools else []
    system = "\n".join(lines)
    learned = learned_instruction(state.lessons, "plan", "plan")
    task = f"Task: {goal}{place}"
    own = repository_instructions(state)
    told = (system, own, task, *pieces(state, prompts, "plan"), learned)
    head = [SystemMessage("\n\n".join(part for part in told if part)), *said_before(state, prompts)]
    known = [*memory_messages(state), *pitfall_messages(state, "plan")]
    tail = [HumanMessage(_replan_request(old))] if old else []
    return Draft("plan", head, sent_history(state), recalled=known, tail=tail, tools=tools)


def _replan_request(old: Plan) -> str:
    lines = []
    for phase in old.phases:
        said = phase.failure.message if phase.failure else phase.answer
        how = "not begun" if phase.status == "failed" and not phase.failure else phase.status
        lines.append(f"- {phase.id} ({how}): {phase.title}. {said[:LONGEST_SAID]}".rstrip())
    return REPLAN.format(why=replacement_reason(old), phases="\n".join(lines))


def _read_plan(
    state: State,
    context: Context,
    answer: Answer,
    record: RecordStep,
    experts: Sequence[str],
    old: Plan | None,
) -> Update:
    number = budget.in_task(state, "plan") + 1
    goal = state.task.goal if state.task else ""
    step = partial(record, answer, audit=audit_answer(failover=answer.failover))
    # The plan stays in the history: who is asked for a better one has to see it.
    said = AIMessage(answer.message.text or "(nothing)", id=f"{state.task_id}:plan:{number}")
    try:
        if cut_off_reason(answer.message):
            raise PlanRefused("the answer was cut off before its end: make the plan shorter")
        proposed = plan_in(
            answer.message.text,
            plan_id=f"{state.task_id}/plan-{number}",
            goal=goal,
            experts=experts,
            before=old,
        )
    except PlanRefused as error:
        context.emit(PlanRejected(reason=str(error)))
        signature = budget.NO_PLAN if isinstance(error, NoPlan) else ""
        return {"steps": step(ok=False, signature=signature), **_refusal_update(state, error, said)}
    context.emit(PlanProposed(plan=proposed.to_dict()))
    return {"plan": proposed, "messages": [said], "steps": step(), "origin": None}


def _refusal_update(state: State, reason: PlanRefused, said: AIMessage) -> Update:
    """Say to the model what was wrong, or end the task: who makes no plan is asked once more."""
    none = isinstance(reason, NoPlan)
    if none and budget.no_plans(state) + 1 >= budget.MAX_NO_PLANS:
        message = f"the planner made no plan, asked twice: {reason}: {printable_line(said.text)}"
        return {"failure": Failure(code="plan_rejected", node="plan", message=message)}
    if budget.failed_plans(state) + 1 >= budget.MAX_FAILED_PLANS:
        message = f"no plan that can be carried out in {budget.MAX_FAILED_PLANS} tries: {reason}"
        return {"failure": Failure(code="plan_refused", node="plan", message=message)}
    wrong = "This is no plan" if none else "This plan can not be carried out"
    note = f"{wrong}: {reason}. Give a corrected plan."
    return {"messages": [said, HumanMessage(note, id=f"{said.id}:refused")]}
