"""How a task ended, and the result that is built from its record (MO-07)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, get_args

from langchain_core.messages import AIMessage

from daruma.state import budget
from daruma.state import plan as phases
from daruma.state.budget import ended_with, outcomes
from daruma.state.channels import State
from daruma.state.failure import Code, Failure
from daruma.state.lessons import Instructions, Lessons, Recalled
from daruma.state.result import Checked, TaskResult
from daruma.state.spending import describe_overrun, format_amount, is_stopped, overrun, usages_of
from daruma.state.steps import Step, StepKind
from daruma.state.task import Measure, Status
from daruma.state.usage import usage_by_role
from daruma.state.verification import LOST, Verification, excerpt

# --- How the work of a phase, or of a task without phases, ended: a pure reading of the state.

_AVOIDABLE: Final[frozenset[Code]] = frozenset(
    {
        "verification_failed",
        "max_steps_exceeded",
        "loop_detected",
        "llm_failure",
        "workspace_conflict",
        "plan_contradicted",
    }
)
"""What another plan may avoid. Not a model that is not heard, a bug, a spent budget, a no."""


def is_planned_anew(state: State) -> bool:
    """Whether what is left of the plan is planned anew, now that a phase has failed (PL-01b).

    So it is once all phases that can run have ended, or at once where the plan is contradicted, as
    long as ``budgets.replan`` lasts. A member's part is not its own to plan.
    """
    plan, task = state.plan, state.task
    own = [phase for phase in plan.phases if phase.failure] if plan else []
    if plan is None or task is None or task.expert is not None or state.failure or not own:
        return False
    if budget.replans_left(state) == 0 or budget.turn_is_over(state):
        return False
    failures = [phase.failure for phase in own if phase.failure]
    lasting = any(f.final or f.unanswered or f.code not in _AVOIDABLE for f in failures)
    if lasting or any(phase.outcome == "blocked" for phase in own):
        return False
    return not is_stopped(state) and overrun(replace(state, plan=None), "plan") is None


LONGEST_ANSWER: Final = 4000
"""Characters of a phase's answer that are kept."""


def _failed_with(*codes: Code) -> Callable[[State], bool]:
    return lambda state: state.failure is not None and state.failure.code in codes


def _red(state: State) -> bool:
    return state.verification is not None and not state.verification.passed


def waits(state: State) -> bool:
    """Whether the turn ends with a question to the user, and goes on with what they say."""
    asked = state.clarification
    return asked is not None and asked.status == "open" and asked.task_id == state.task_id


def rubric_of(state: State) -> tuple[str, ...]:
    """Return the criteria of the phase at hand; with the last phase also those of the whole task.

    A team's members are held against those of their phases; the whole is judged when it is merged.
    """
    task, plan = state.task, state.plan
    if task is None or not task.verify:
        return ()
    if plan is None:
        return task.rubric
    phase = plan.phase(plan.current)
    others = all(each.status == "completed" for each in plan.phases if each.id != plan.current)
    whole = task.rubric if others and task.expert is None else ()
    return tuple(dict.fromkeys((*(phase.rubric if phase else ()), *whole)))


def _unjudged(state: State) -> bool:
    """Whether a criterion of the work at hand has no verdict: nothing was left to ask a judge."""
    checks = state.verification.checks if state.verification else ()
    judged = {v.criterion for check in checks for v in check.verdicts}
    return not judged.issuperset(rubric_of(state))


ENDINGS: Final[tuple[tuple[Callable[[State], bool], Status], ...]] = (
    (_failed_with("approval_denied"), "blocked"),
    (_failed_with("budget_exceeded"), "budget_exceeded"),
    (_failed_with("stopped"), "cancelled"),
    (lambda state: state.failure is not None, "failed"),
    (waits, "parked"),
    (lambda state: not answer(state) and is_stopped(state), "budget_exceeded"),
    (lambda state: not answer(state), "max_steps_exceeded"),
    (lambda state: _red(state) and is_stopped(state), "budget_exceeded"),
    (lambda s: _red(s) and budget.count_reflections(s) > 0, "gave_up_after_reflections"),
    (lambda state: _red(state) and not budget.can_think(state), "max_steps_exceeded"),
    (_red, "failed"),
    (_unjudged, "failed"),
    (lambda _: True, "completed"),
)
"""How work ends: the first line that holds. Nothing else decides it (MO-08, MO-10, VE-05).

A failure counts first, then whether there is an answer at all, whatever the checks say, then what
they said. ``completed`` never goes with a verification that failed, nor with a rubric that no judge
held the work against (VE-11).
"""


def work_status(state: State) -> Status:
    """Name the outcome of the work at hand, by :data:`ENDINGS`."""
    return next(status for holds, status in ENDINGS if holds(state))


def work_failure(state: State, status: Status) -> Failure | None:
    """Return the failure behind a status: the first one if there was one, else one made of it."""
    if status == "completed":
        return None
    if state.origin or state.failure:
        return state.origin or state.failure
    if status == "budget_exceeded":
        return Failure(code="budget_exceeded", node="main", message=spent_text(state))
    if _red(state) and state.verification and answer(state):
        why = "; ".join(_ended_by(state, state.verification))
        message = f"verification failed: {state.verification.summary} ({why})"
        detail = excerpt(state.verification)
        return Failure(code="verification_failed", node="verify", message=message, detail=detail)
    if status == "failed":
        message = "the work as it is now was not judged: budgets.verify is used up"
        return Failure(code="verification_failed", node="verify", message=message)
    return Failure(code="max_steps_exceeded", node="main", message=stopped_text(state))


def gave_up_asking(state: State) -> bool:
    """Whether the user was asked for the same so often that it is no use to ask again."""
    asked = state.clarification
    return asked is not None and asked.status == "given_up" and asked.task_id == state.task_id


def answer(state: State) -> str:
    """Return the model's candidate answer: the text of its last message, if that calls no tools.

    What checks and a reflection said behind it is about it; behind anything else there is none.
    """
    about = (f"{state.task_id}:verification:", f"{state.task_id}:reflection:")
    for message in reversed(state.messages):
        if isinstance(message, AIMessage):
            ours = not message.tool_calls and not str(message.id).endswith(END)
            return message.text.strip() if ours else ""
        if not str(message.id).startswith(about):
            break
    return ""


END: Final = ":end"
"""How the id of a message ends that says how a task ended: it is no answer of the model."""


def last_answer(state: State) -> str:
    """Return the last text without a tool call that the model gave in this phase, or task."""
    began = {state.task.request} if state.task else set()
    if state.plan and state.plan.current:
        began.add(phases.message_id(state.plan.id, state.plan.current))
    for message in reversed(state.messages):
        if message.id and message.id in began:
            break
        own = str(message.id).startswith(f"{state.task_id}:")  # not another agent's on the thread
        said = isinstance(message, AIMessage) and not message.tool_calls and own
        planned = str(message.id).startswith(f"{state.task_id}:plan:")
        if said and not planned and not str(message.id).endswith(END) and message.text.strip():
            return message.text.strip()
    return ""


def checked_of(state: State) -> Checked:
    """Say whether the work was checked: of a plan, whether each of its phases was (MO-10).

    A judge of the whole has looked at what each phase came to (VE-11).
    """
    if state.plan is None or state.failure:
        return _checked(state, state.verification)
    closed = [phase for phase in state.plan.phases if phase.status in {"completed", "failed"}]
    each = [_checked(state, phase.verification) for phase in closed]
    if state.verification:  # of a team: of the whole
        each.append(_checked(state, state.verification))
    by = tuple(dict.fromkeys(command for one in each for command in one.by))
    asked = set(state.task.rubric if state.task else ())
    checks = state.verification.checks if state.verification else ()
    judged = {verdict.criterion for check in checks for verdict in check.verdicts}
    for outcome in ("failed",) if asked and asked <= judged else ("failed", "none"):
        if found := next((one for one in each if one.outcome == outcome), None):
            return replace(found, by=by)
    return replace(each[-1], by=by) if each else _checked(state, None)


def _checked(state: State, verification: Verification | None) -> Checked:
    if verification:
        by = tuple(check.command for check in verification.checks)
        return Checked(outcome=verification.outcome, by=by, why=verification.why)
    task = state.task
    if task and task.mode == "direct_chat":
        why = "a direct chat is not checked"
    elif task and task.workspace is None:
        why = "the task has no workspace"
    elif task and not task.verify:
        why = "verification is switched off (verification.enabled)"
    else:
        why = "the work ended before it was checked"
    return Checked(outcome="none", why=why)


def stopped_text(state: State) -> str:
    """Say which limit ended the loop, by its one setting; of the turn's in the words of TL-16."""
    if budget.turn_is_over(state):
        return "Stopped: exceeded max_steps_per_turn."
    return f"Stopped: exceeded {budget.bounding_setting(state)}."


def spent_text(state: State) -> str:
    """Say which budget ended the work, and what the last checks said."""
    checked = state.verification.summary if state.verification else ""
    over = overrun(state, "main")
    why = describe_overrun(over) if over else "The budget is spent."
    return f"Stopped: {why[0].lower()}{why[1:]} {checked}".strip()


def _ended_by(state: State, found: Verification) -> Iterator[str]:
    """Yield which limit ended the work on red checks, and what else they want (VE-06, VE-08)."""
    if state.task and state.task.limits.reflect == 0 and budget.can_verify(state):
        yield "no reflections: budgets.reflect (0)"
    else:
        yield f"the limit is {budget.bounding_setting(state)}"
    red = [check for check in found.checks if not check.passed]
    if any(check.timed_out for check in red):
        yield "a check that needs longer wants a higher verification.timeout"
    if any(LOST in check.note for check in red):
        yield "tests that are to go have to be named in the goal or the plan"


# --- Building the result of a task from the record: what was spent, used, changed, recovered from.

MOST_NAMED = 10
"""Files named in a note; of more, their number is told."""


def result_of(
    state: State,
    status: Status,
    output: str,
    now: float,
    *,
    notes: tuple[str, ...] = (),
    sandbox: str | None = None,
) -> TaskResult:
    """Return the result of the task at hand; ``now`` is Unix time in seconds."""
    steps, completed = budget.of_task(state), status == "completed"
    used = {step.kind for step in steps}
    every: tuple[StepKind, ...] = get_args(StepKind)
    kinds = [kind for kind in every if kind in used or kind not in ("look", "judge")]
    seconds: dict[str, float] = {
        kind: sum(s.seconds for s in steps if s.kind == kind) for kind in kinds
    }
    started = state.task.started_at if state.task else now
    fallen = phases.first_failed(state.plan) if state.plan else None
    return TaskResult(
        task_id=state.task_id,
        status=status,
        output=output,
        answer=last_answer(state),
        checked=checked_of(state),
        error_message=state.error.to_error_message() if state.error else None,
        error_struct=state.error,
        phases=state.plan.phases if state.plan else (),
        replaced=phases.replaced_plans(state.plan) if state.plan else (),
        verification=fallen.verification if fallen else state.verification,
        verifications=tuple(step.verification for step in steps if step.verification),
        budgets={kind: budget.count_steps(steps, kind) for kind in kinds},
        usage=usage_by_role(usage for step in steps for usage in usages_of(step)),
        timings={**seconds, "total": now - started},
        audit=tuple(step.audit for step in steps if step.audit),
        recoveries=outcomes(steps, ended_with(state)),
        context_cost=tuple(step.context_cost for step in steps if step.context_cost),
        notes=(*notes, *_of_budget(steps), *_of_what_was_given(state), *_of_workspace(state)),
        sandbox=sandbox,
        clarification=state.clarification if status == "parked" and waits(state) else None,
        lessons=_lessons(state),
        structured=state.structured.value if completed and state.structured else None,
    )


def _of_workspace(state: State) -> tuple[str, ...]:
    """Say what a reader must know of the workspace: who else changed it, what has no snapshot."""
    of_task = [each for each in state.savepoints if each.task_id == state.task_id]
    notes = [f"savepoint {each.id}: {each.note}" for each in of_task if each.note]
    if state.drifted and state.drifted.task_id == state.task_id:
        paths = join_paths(state.drifted.paths)
        notes.insert(0, f"files that somebody else changed meanwhile: {paths}")
    return tuple(dict.fromkeys(notes))


def _of_budget(steps: list[Step]) -> tuple[str, ...]:
    """Say what was granted, where work stopped as limits were spent, and what is estimated."""
    grants = [step.grant for step in steps if step.grant and not step.helper]
    measures: tuple[Measure, ...] = get_args(Measure)
    more = {m: sum(each.more.of(m) or 0.0 for each in grants) for m in measures}
    notes = [f"granted beyond its budget: {format_amount(m, more[m])}" for m in measures if more[m]]
    if times := sum(each.steps and not each.stopped for each in grants):
        often = "once more" if times == 1 else f"{times} times more"
        notes.append(f"a person granted the steps {often}")
    if any(each.stopped and not each.steps for each in grants):
        notes.append("stopped where its budget of tokens, money or time was spent")
    if guessed := sum(usage.estimated for step in steps for usage in usages_of(step)):
        notes.append(f"tokens of {guessed} model calls are estimated: the provider tells none")
    return tuple(notes)


def _of_what_was_given(state: State) -> tuple[str, ...]:
    given: tuple[Recalled | Lessons | Instructions | None, ...]
    given = (state.recalled, state.lessons, state.instructions)
    ours = (each for each in given if each and each.task_id == state.task_id)
    return tuple(each.note for each in ours if each.note)


def _lessons(state: State) -> Lessons | None:
    lessons = state.lessons
    ours = lessons is not None and lessons.task_id == state.task_id and lessons.given
    return lessons if ours else None


def join_paths(paths: tuple[str, ...]) -> str:
    """Name some paths on one line, at most ``MOST_NAMED`` of them."""
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
