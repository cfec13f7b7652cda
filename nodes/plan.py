"""Ask for a plan, and read it. One that can not be carried out is asked for again, with why.

So is one where the answer is no plan at all, but once only (MO-11).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.context import (
    learned_instruction,
    memory_messages,
    pieces,
    pitfall_messages,
    repository_instructions,
    said_before,
)
from daruma.state.events import PlanProposed, PlanRejected
from daruma.state.failure import Failure, ModelFailed, failure_of
from daruma.state.messages import cut_off_reason
from daruma.state.plan import NoPlan, PlanRefused
from daruma.state.plan_reading import plan_in
from daruma.state.settings import Settings
from daruma.state.text import printable_line
from daruma.tools.calls import audit_answer
from daruma.tools.context import Answer, Context, RecordStep, begin_step, budget_exceeded
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


async def plan(state: State, context: Context) -> Update:
    """Ask the main model for a plan of the task."""
    if spent := budget_exceeded(state, "plan", context):
        return spent
    record = begin_step(state, "plan", context)
    try:
        team = await team_of(state.task, context.settings)
    except TemplateRefused as error:
        return {"failure": Failure(code="bad_request", node="plan", message=str(error))}
    draft = request(state, context.settings, team)
    counted, crowded = check_size(draft, state, context)
    if crowded:
        return too_large_update(crowded)
    call = budget.on_thread(state, "plan")
    try:
        answer = await context.ask("plan", draft.messages(state), call=call, emit=context.emit)
    except ModelFailed as error:
        if crowded := after_provider_refusal(draft, state, context, error):
            return too_large_update(crowded)
        return {
            "steps": record(ok=False, audit=audit_answer(failover=error.failover)),
            "failure": failure_of(error, "plan"),
        }
    answer = replace(answer, counted=counted)
    return _read_plan(state, context, answer, record, team.names if team else ())


def request(state: State, settings: Settings, team: Template | None = None) -> Draft:
    """Draft the request: the prompt, and the conversation with what reviewers said."""
    snapshots, prompts = settings.rollback.snapshots, settings.prompts
    goal = state.task.goal if state.task else ""
    workspace = state.task.workspace if state.task else None
    place = f"\nWorkspace: {workspace}" if workspace else ""
    lines = [PROMPT, *([SNAPSHOT] if workspace and snapshots else ())]
    lines += [RUBRIC] if settings.llm.judge_model else []
    if team:
        lines.append(TEAM.format(experts="\n".join(f"  {e.name}: {e.about}" for e in team.experts)))
    system = "\n".join(lines)
    learned = learned_instruction(state.lessons, "plan", "plan")
    task = f"Task: {goal}{place}"
    own = repository_instructions(state)
    told = (system, own, task, *pieces(state, prompts, "plan"), learned)
    head = [SystemMessage("\n\n".join(part for part in told if part)), *said_before(state, prompts)]
    known = [*memory_messages(state), *pitfall_messages(state, "plan")]
    return Draft("plan", head, sent_history(state), recalled=known)


def _read_plan(
    state: State, context: Context, answer: Answer, record: RecordStep, experts: Sequence[str]
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
