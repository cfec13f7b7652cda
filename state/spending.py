"""Tokens, money and time: what is spent, what members may spend, and granting more. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from daruma.state import budget
from daruma.state.budget import record_step
from daruma.state.calls import ToolTask, calls_to_run
from daruma.state.errors import DarumaError
from daruma.state.lessons import Lessons
from daruma.state.mode import KEEP_WORKING, Mode
from daruma.state.plan import Assignment, Phase, Plan
from daruma.state.savepoint import savepoint_id
from daruma.state.steps import Grant, Overrun, Paying, Step, StepKind
from daruma.state.task import Amounts, Limits, Measure, Scope, Task
from daruma.state.usage import Usage

if TYPE_CHECKING:  # readers of threads import no LangGraph with it (FA-13)
    from daruma.state.channels import State
    from daruma.state.settings import Settings, Spendable

# --- Tokens, money and time that were spent: computed from the record of steps, as all budgets are.
#
# No counter is kept anywhere: a fork or a resume has spent what its history says (BU-03, BU-04).

WAITING: Final = frozenset({"pause", "consult"})
"""Steps in which a person was asked: no work."""
_NO_LIMITS: Final = Amounts()


@dataclass(frozen=True)
class Spending:
    """What was spent. ``usd`` sums what has a price; None where calls were made and none has."""

    tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0

    def of(self, measure: Measure) -> float:
        """Return what was spent of one measure; what has no price counts nothing."""
        found = {"tokens": self.tokens, "usd": self.usd, "seconds": self.seconds}[measure]
        return found or 0.0


def spending(steps: Iterable[Step]) -> Spending:
    """Sum up steps, in whatever order they were recorded.

    Seconds are those in which any of them was at work: what ran at the same time counts once.
    """
    steps = list(steps)
    usages = [usage for step in steps for usage in usages_of(step)]
    prices = sorted(usage.usd for usage in usages if usage.usd is not None)
    return Spending(
        tokens=sum(usage.input_tokens + usage.output_tokens for usage in usages),
        usd=sum(prices) if prices or not usages else None,
        seconds=_covered((s.at, s.at + s.seconds) for s in steps if s.kind not in WAITING),
    )


def usages_of(step: Step) -> Iterator[Usage]:
    """Yield what the model calls of a step used: the answer, and failed requests charged for."""
    if step.usage:
        yield step.usage
    failover = step.audit.failover if step.audit else None
    for attempt in failover.attempts if failover else ():
        if attempt.usage:
            yield attempt.usage


def spent_by_task(state: State) -> Spending:
    """Return what the task at hand has spent, in all its phases."""
    return spending(_steps(state, "task"))


def allowed_amounts(state: State, scope: Scope) -> Amounts:
    """Return the limits of the task or of its phase, with all that was granted since."""
    if state.task is None:
        return _NO_LIMITS
    limits = state.task.limits
    base = limits.spend if scope == "task" else limits.spend_in_phase
    taken = limits.taken if scope == "task" else limits.taken_in_phase
    if base is None:
        return _NO_LIMITS
    grants = [step.grant for step in _steps(state, scope) if step.grant]
    more = [each.more for each in grants if each.scope == scope and not each.stopped]

    def allowed(measure: Measure) -> float | None:
        limit, others = base.of(measure), (taken.of(measure) or 0) if taken else 0
        granted = [each.of(measure) or 0 for each in more]
        return None if limit is None else limit + sum([*granted, -others])

    return _amounts_by(allowed)


def _amounts_by(amount: Callable[[Measure], float | None]) -> Amounts:
    by_measure: dict[str, Any] = {each: amount(each) for each in get_args(Measure)}
    tokens = by_measure.pop("tokens")  # a record takes no float above 2**63 for a whole number
    return Amounts(tokens=None if tokens is None else int(tokens), **by_measure)


def overrun(state: State, node: Paying) -> Overrun | None:
    """Return the first limit that is reached of those that ``node`` would spend of.

    A verification takes time alone, so that work is still checked when tokens or money are spent.
    """
    measures: tuple[Measure, ...] = ("seconds",) if node == "verify" else get_args(Measure)
    for scope in _scopes(state):
        limits = allowed_amounts(state, scope)
        if limits == _NO_LIMITS:
            continue  # most tasks: nothing is to be summed up
        spent = spending(_steps(state, scope))
        for measure in measures:
            limit, used = limits.of(measure), spent.of(measure)
            if limit is not None and used >= limit:
                return Overrun(node=node, scope=scope, measure=measure, spent=used, limit=limit)
    return None


def is_stopped(state: State, *, steps: bool = False) -> bool:
    """Whether it was said that the task, or its phase, stops where its budget is spent.

    That is the budget of tokens, money and time, or that of ``steps``.
    """
    for step in reversed(_steps(state, "task")):
        grant = step.grant
        if grant is None or grant.steps != steps or step.helper:
            continue
        if grant.scope == "task" or step in _steps(state, "phase"):
            return grant.stopped
    return False


def has_unchecked_work(state: State) -> bool:
    """Whether the model has worked since the last verification of the phase."""
    own = (step for step in _steps(state, "phase") if not step.helper)
    kinds = [step.kind for step in own if step.kind in {"think", "verify"}]
    return bool(kinds) and kinds[-1] == "think"


def _scopes(state: State) -> tuple[Scope, ...]:
    begun = state.plan and state.plan.current
    planning = state.task and state.task.mode in KEEP_WORKING and not begun
    return ("task",) if planning else ("task", "phase")


def _steps(state: State, scope: Scope) -> list[Step]:
    if state.task is None:
        return []
    ours = [s for s in state.steps if s.task_id == state.task.id]
    phase = state.plan.current if state.plan else None
    return ours if scope == "task" or phase is None else [s for s in ours if s.phase_id == phase]


def _covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of what intervals cover together."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


# --- What each of several team members may spend of the task's budget, as they work at once. Pure.


def with_shares(state: State, tasks: Sequence[Task], phases: Sequence[str]) -> list[Task]:
    """Return the members' tasks, each with its share of the tokens and the money that are left.

    Time passes for all of them at once, so each has all that is left of it. What a phase has spent
    before, in a try that failed, counts against its own limit. Where the task was stopped, nobody
    is asked again.
    """
    return [
        replace(
            task,
            limits=replace(
                task.limits,
                taken=reserved_amounts(state, len(tasks), number),
                taken_in_phase=_spent_before(state, phase),
                when_spent="stop" if is_stopped(state) else task.limits.when_spent,
                replan=budget.replans_left(state),
            ),
        )
        for number, (task, phase) in enumerate(zip(tasks, phases, strict=True))
    ]


def reserved_amounts(state: State, members: int, number: int) -> Amounts | None:
    """Return what of the task's limits is not for one member: what is spent, and others' shares."""
    limits = state.task.limits.spend if state.task else None
    if limits is None:
        return None
    whole, spent = allowed_amounts(state, "task"), spent_by_task(state)
    tokens = usd = seconds = None
    if whole.tokens is not None and limits.tokens is not None:
        each, over = divmod(max(whole.tokens - spent.tokens, 0), members)
        tokens = limits.tokens - each - (number < over)
    if whole.usd is not None and limits.usd is not None:
        usd = limits.usd - max(whole.usd - (spent.usd or 0.0), 0.0) / members
    if whole.seconds is not None and limits.seconds is not None:
        seconds = limits.seconds - max(whole.seconds - spent.seconds, 0.0)
    return Amounts(tokens=tokens, usd=usd, seconds=seconds)


def _spent_before(state: State, phase: str) -> Amounts:
    ours = [s for s in state.steps if s.task_id == state.task_id and s.phase_id == phase]
    spent = spending(ours)
    more = [s.grant.more for s in ours if s.grant and s.grant.scope == "phase"]
    return _amounts_by(lambda each: spent.of(each) - sum(grant.of(each) or 0 for grant in more))


def assignments(state: State) -> list[object]:
    """Return what the members are sent: one assignment for each phase that is running.

    Helpers are sent one for each call that was delegated.
    """
    if calls := calls_to_run(state.calls, delegated=True):
        return [*delegations(state, calls)]
    if state.task is None or state.plan is None:
        return []
    snapshots = {each.id: each.snapshot for each in state.savepoints}
    running = [each for each in enumerate(state.plan.phases, 1) if each[1].status == "running"]
    tasks = shares(state.task, state.steps, len(running))
    tasks = with_shares(state, tasks, [phase.id for _, phase in running])
    return [
        Assignment(
            task=task,
            phase=phase,
            plan_id=state.plan.id,
            number=number,
            of=len(state.plan.phases),
            known=describe_dependencies(state.plan, phase),
            snapshot=snapshots.get(savepoint_id(task.id, phase.id, "phase")),
            lessons=_lessons_for(state, phase.expert),
            instructions=state.instructions,
            unmerged=settled.unmerged if (settled := state.plan.phase(phase.settles)) else None,
        )
        for task, (number, phase) in zip(tasks, running, strict=True)
    ]


def _lessons_for(state: State, expert: str | None) -> Lessons | None:
    """Return what was learned for an expert; the pitfalls are the planner's to avoid."""
    given = state.lessons.instructions if state.lessons else ()
    own = tuple(each for each in given if each.actor == expert)
    return replace(state.lessons, pitfalls=(), instructions=own) if state.lessons and own else None


def shares(task: Task, steps: Iterable[Step], members: int) -> list[Task]:
    """Return the task once for each member, with its share of what is left of the turn (TL-16)."""
    turn = task.limits.turn
    if turn is None:
        return [task] * members
    spent = sum(step.kind == "think" and step.task_id == task.id for step in steps)
    turns = _split(max(turn - spent, 0), members) if members else []
    return [replace(task, limits=replace(task.limits, turn=share)) for share in turns]


# --- What helpers may spend, and what they are sent (PL-08). Pure.


def helper_limits(state: State, helpers: int) -> list[Limits]:
    """Return what each of so many helpers may spend: an equal share of what their caller has left.

    Together they never have more of anything than is left of the task and of its phase: each may
    overstep its share by the call under way, as anybody does (BU-04). One model call of the tool
    loop is not shared: with it the caller reads what they say. Time passes for all of them at once.
    A helper asks nobody for more: what it does not get done its caller is told.
    """
    if state.task is None:
        return []
    thinks = _split(max(budget.thinks_left(state) - 1, 0), helpers)
    left = amounts_left(state)
    tokens = _split(left.tokens or 0, helpers)
    return [
        replace(
            state.task.limits,
            think=thinks[number],
            turn=None,
            spend=Amounts(
                tokens=None if left.tokens is None else tokens[number],
                usd=None if left.usd is None else left.usd / helpers,
                seconds=left.seconds,
            ),
            spend_in_phase=None,
            taken=None,
            taken_in_phase=None,
            when_spent="stop",
            ask=False,
            replan=0,
        )
        for number in range(helpers)
    ]


def amounts_left(state: State) -> Amounts:
    """Return what is left of the limits of the task and its phase, the less of both."""
    left: dict[Measure, float] = {}
    for scope in _scopes(state):
        allowed, spent = allowed_amounts(state, scope), spending(_steps(state, scope))
        for measure in get_args(Measure):
            if (limit := allowed.of(measure)) is not None:
                rest = max(limit - spent.of(measure), 0)
                left[measure] = min(left.get(measure, rest), rest)
    return _amounts_by(left.get)


def _split(amount: int, among: int) -> list[int]:
    each, over = divmod(amount, among)
    return [each + (number < over) for number in range(among)]


def delegations(state: State, calls: Sequence[ToolTask]) -> list[Assignment]:
    """Return what the helpers of an answer's calls are sent: a phase of its own for each.

    It has the id of its call. Who only reads changes nothing that could be verified; the rubric is
    for the caller's work.
    """
    if state.task is None:
        return []
    snapshots = {each.id: each.snapshot for each in state.savepoints}
    drawn = next((savepoint_name(state, call) for call in calls if writes(call)), None)
    sent = zip(calls, helper_limits(state, len(calls)), strict=True)
    return [
        Assignment(
            task=replace(
                state.task,
                goal=text_of(call, "task"),
                limits=limits,
                rubric=(),
                verify=state.task.verify and writes(call),
                helps="writes" if writes(call) else "reads",
            ),
            phase=Phase(
                id=call.id,
                title=text_of(call, "task").strip().partition("\n")[0][:80],
                instructions=text_of(call, "task"),
                expert=text_of(call, "expert") or None,
                status="running",
            ),
            plan_id=call.message_id,
            number=number,
            of=len(calls),
            snapshot=snapshots.get(savepoint_id(state.task.id, drawn, "phase")),
            lessons=_lessons_for(state, text_of(call, "expert") or None),
            instructions=state.instructions,
        )
        for number, (call, limits) in enumerate(sent, 1)
    ]


def text_of(call: ToolTask, name: str) -> str:
    """Return an argument as text, whatever was given: calls may go unchecked (TL-07)."""
    return str(call.args.get(name) or "")


def writes(call: ToolTask) -> bool:
    """Whether a call lets its helper write: where it goes unchecked, by nothing but a true."""
    return call.args.get("write") is True


def savepoint_name(state: State, call: ToolTask) -> str:
    """Name what helpers begin from after a call, never as a phase, whose own beginning stays."""
    phases, name = state.plan.phases if state.plan else (), call.id
    while name in {phase.id for phase in phases}:
        name += "/helpers"
    return name


def describe_dependencies(plan: Plan, phase: Phase) -> str:
    """Say what the phases that a phase depends on came to."""
    before = (plan.phase(id_) for id_ in phase.depends_on)
    return "\n\n".join(f"Done before, {p.id}: {p.title}\n{p.answer}".strip() for p in before if p)


# --- What a task may spend, and whether it is verified: by its mode and the settings. Pure.


def limits_of(settings: Settings, mode: Mode) -> Limits:
    """Settle the limits of a task: quotas per phase where there is a plan, else a plain total."""
    budgets = settings.budgets
    think = {"direct_chat": 1, "react": budgets.max_steps}.get(mode, budgets.think)
    return Limits(
        think=think,
        verify=budgets.verify,
        reflect=budgets.reflect,
        reinjections=settings.verification.max_reinjections,
        turn=budgets.max_steps_per_turn,
        recoveries=recoveries_of(settings),
        spend=_amounts(budgets),
        spend_in_phase=_amounts(budgets.per_phase),
        when_spent=budgets.when_spent,
        ask=settings.fallback_chain.recovery.ask or False,
        look=budgets.look,
        replan=budgets.replan if settings.fallback_chain.enabled else 0,
    )


def _amounts(limited: Spendable) -> Amounts | None:
    found = Amounts(tokens=limited.tokens, usd=limited.usd, seconds=limited.seconds)
    return None if found == Amounts() else found


def recoveries_of(settings: Settings) -> int:
    """Say how often recovery may deal with one failure; none when it is switched off."""
    chain = settings.fallback_chain
    active = chain.enabled and chain.recovery.enabled
    return chain.recovery.max_retries if active else 0


def verifies(settings: Settings, mode: Mode) -> bool:
    """Say whether a task in a workspace is verified: in direct chat never (MO-03)."""
    return mode != "direct_chat" and settings.verification.enabled is not False


def only_if_changed(settings: Settings, mode: Mode) -> bool:
    """Say whether it is verified only where it changed the workspace: in react, if auto (MO-04)."""
    return mode == "react" and settings.verification.enabled == "auto"


# --- What can be said to a budget that is spent: more of it, as much again, or to stop. Pure.

AGAIN: Final = "go on with as much again"
STOP: Final = "stop"


def says_stop(said: str, *others: str) -> bool:
    """Whether an answer is the word for stop, or one of others; case and full stop do not count."""
    return said.lower().strip(" .!。！") in (STOP, "停止", *others)


_AMOUNT: Final = re.compile(
    rf"(?P<measure>{'|'.join(get_args(Measure))})\s+"
    r"(?P<number>(?:\d{1,12}|\d{1,3}(?:[,_]\d{3}){1,3})(?:\.\d{1,9})?)",
    re.IGNORECASE | re.ASCII,
)
"""Commas stand between thousands only: ``2,5`` is two and a half to some, and 25 to nobody."""


def amount_in(answer: str) -> tuple[Measure, float] | None:
    """Read an amount such as ``tokens 50000`` or ``usd 2.5``; None where there is none above 0."""
    found = _AMOUNT.fullmatch(answer.strip())
    if found is None:
        return None
    named = found["measure"].lower()
    measure: Measure = next(each for each in get_args(Measure) if each == named)
    number = float(found["number"].replace(",", "").replace("_", ""))
    if number <= 0 or (measure == "tokens" and number != int(number)):
        return None
    return measure, number


def read_grant(answer: str, measure: Measure, limit: float) -> Amounts | None:
    """Return what an answer grants of what is spent, None for one that says to stop."""
    if answer == STOP:
        return None
    if answer == AGAIN:
        return amounts(measure, limit)
    found = amount_in(answer)
    return amounts(*found) if found else None


def amounts(measure: Measure, number: float) -> Amounts:
    """Return so much of one measure."""
    return _amounts_by(lambda each: number if each == measure else None)


def in_words(measure: Measure, number: float) -> str:
    """Return an amount as it can be answered: ``tokens 50000``."""
    return f"{measure} {number:.9f}".rstrip("0").rstrip(".")


def describe_overrun(over: Overrun) -> str:
    """Say which budget is spent, in a line, and the one setting that bounds it.

    Not of steps: which of them bound is told by :func:`daruma.state.budget.bounding_setting`.
    """
    measure: Any = over.measure
    whose, key = ("task", measure) if over.scope == "task" else ("phase", f"per_phase.{measure}")
    used = format_amount(measure, over.spent).removesuffix(" tokens")
    spent = f"The {whose}'s budget of {format_amount(measure, over.limit)} is spent ({used} used)."
    return f"{spent} The limit is budgets.{key}."


def format_amount(measure: Measure | Literal["steps"], number: float) -> str:
    """Return an amount as people write it: ``50,000 tokens``, ``$0.25``, ``90 s``, ``7 steps``."""
    if measure in ("tokens", "steps"):
        return f"{number:,.0f} {measure}"
    return f"${number:.4f}".rstrip("0").rstrip(".") if measure == "usd" else f"{number:,.1f} s"


# --- How much of each budget is spent: one count for all who show it.

Standing = Mapping[str, tuple[float, float]]
"""What was spent and what may be, by kind of step or measure."""


def standing(state: State) -> Standing:
    """Return steps of the current phase, or of the whole task, and what of the task is limited.

    Tokens, usd and seconds are there where they have a limit; nothing is without a task.
    """
    if state.task is None:
        return {}
    limits, steps = state.task.limits, [*budget.in_scope(state)]
    times = 1 + budget.count_grants(state)
    most: dict[StepKind, int] = {
        "think": limits.think * times,
        "verify": limits.verify * times,
        "reflect": limits.reflect * times,
    }
    counted: Standing = {kind: (budget.count_steps(steps, kind), of) for kind, of in most.items()}
    return {**counted, "think": (budget.thinks(state), most["think"]), **_measured(state)}


def _measured(state: State) -> Standing:
    limited, measures = allowed_amounts(state, "task"), get_args(Measure)
    spent = spent_by_task(state) if limited != Amounts() else Spending()
    return {
        measure: (spent.of(measure), limit)
        for measure in measures
        if (limit := limited.of(measure)) is not None
    }


# --- Taking up a task that stopped where its budget was spent, once the settings allow more. Pure.


class BudgetTooSmall(DarumaError):
    """Raised where the settings do not allow more than was spent; names the one to raise."""


def raised_limits(state: State, settings: Settings, at: float) -> dict[str, Any]:
    """Return what to write for a task to go on under today's limits, with all grants so far.

    ``at`` is when that was asked for.

    Raises :class:`BudgetTooSmall` where that would stop at once, and nobody would be asked.
    """
    if state.task is None:
        return {}
    now = limits_of(settings, state.task.mode)
    limits = replace(
        state.task.limits,
        spend=now.spend,
        spend_in_phase=now.spend_in_phase,
        when_spent=now.when_spent,
    )
    task, node = replace(state.task, limits=limits), state.overrun.node if state.overrun else "main"
    over = overrun(replace(state, task=task), node)
    if over and now.when_spent == "stop":
        key = f"budgets.{'' if over.scope == 'task' else 'per_phase.'}{over.measure}"
        raise BudgetTooSmall(f"{describe_overrun(over)} Raise {key} above that, then try again.")
    grant = Grant(node=node, scope="task", more=Amounts())
    step = record_step(state, "pause", at=at, grant=grant)
    return {"task": task, "overrun": None, "steps": step}
