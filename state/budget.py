"""Budgets: pure functions of the record of steps, so forks and resumes follow their history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from daruma.state.failure import Failure, Recovered
from daruma.state.messages import growing
from daruma.state.mode import KEEP_WORKING
from daruma.state.plan import replaced_plans
from daruma.state.steps import Step, StepKind
from daruma.state.task import Limits

if TYPE_CHECKING:  # readers of threads import no LangGraph with it (FA-13)
    from daruma.state.channels import State

# --- Adding to the record of steps.


def record_step(state: State, kind: StepKind, *, at: float, **details: Any) -> list[Step]:
    """Return the update of ``steps`` for one step of the task, in the phase that is current.

    ``details`` are further fields of :class:`Step`.
    """
    phase_id = state.plan.current if state.plan else None
    return [Step(kind=kind, task_id=state.task_id, phase_id=phase_id, at=at, **details)]


# --- Budgets: pure functions of the record of steps, so a fork or a resume has what its history
# says.
#
# No counter is kept anywhere (BU-03).

_STEP_OF: dict[str, StepKind] = {"main": "think", "plan": "plan", "verify": "verify"}

MAX_FAILED_PLANS = 3
"""Tries in a row that may come to no usable plan: a model seldom mends a fourth."""
MAX_NO_PLANS = 2
"""Those of them that may come to no plan at all: it is asked for once more (MO-11)."""
NO_PLAN = "no_plan"
"""The signature of a step whose answer was no plan."""
GAVE_UP = "gave_up"
"""That of the step with which planning anew ended without a plan: the old one's end stands."""

Tally = Mapping[tuple[str, str | None, str], int]
"""How many steps there are, by their task, phase and kind; ``HELPER`` stands before a helper's."""

HELPER: Final = "helper:"

_NONE: Final[Tally] = {}


def in_scope(state: State) -> Iterator[Step]:
    """Yield the steps that count against the limits: the current phase's, or the whole task's.

    What helpers did is none of it: :func:`thinks` has what of theirs counts.
    """
    return _scoped(state, state.steps)


def latest_in_scope(state: State) -> Iterator[Step]:
    """Yield the same steps, the last one first: for who needs the last few."""
    return _scoped(state, reversed(state.steps))


def _scoped(state: State, steps: Iterable[Step]) -> Iterator[Step]:
    if state.task is None:
        return
    phase_id = state.plan.current if state.plan else None
    for step in steps:
        ours = step.task_id == state.task.id and not step.helper
        if ours and (phase_id is None or step.phase_id == phase_id):
            yield step


def count_steps(steps: Iterable[Step], kind: StepKind) -> int:
    """Count the steps of a kind."""
    return sum(step.kind == kind for step in steps)


def on_thread(state: State, kind: StepKind) -> int:
    """Count the steps of a kind of all tasks that the thread has had."""
    return sum(number for key, number in _tally(state).items() if key[2] == kind)


def in_task(state: State, kind: str) -> int:
    """Count the steps of a kind of the task at hand, of all its phases."""
    task_id = state.task.id if state.task else None
    return sum(n for key, n in _tally(state).items() if key[0] == task_id and key[2] == kind)


def in_phase(state: State, kind: str) -> int:
    """Count the steps of a kind that count against the limits, as :func:`in_scope` has them."""
    phase_id = state.plan.current if state.plan else None
    if state.task is None or phase_id is None:
        return in_task(state, kind)
    return _tally(state).get((state.task.id, phase_id, kind), 0)


def _tally(state: State) -> Tally:
    return growing(state.steps).known(_counted, _NONE)


def _counted(known: Tally, steps: Sequence[Step]) -> Tally:
    tally = Counter(known)
    tally.update((s.task_id, s.phase_id, HELPER + s.kind if s.helper else s.kind) for s in steps)
    return tally


def of_task(state: State) -> list[Step]:
    """Return the steps of the task at hand, of all its phases."""
    return [step for step in state.steps if state.task and step.task_id == state.task.id]


def latest_of_task(state: State) -> Iterator[Step]:
    """Yield the task's own steps, the last one first: for who needs the last few."""
    task_id = state.task.id if state.task else None
    return (s for s in reversed(state.steps) if s.task_id == task_id and not s.helper)


def can_think(state: State) -> bool:
    """Whether another model call of the tool loop fits the phase's quota and the turn's limit."""
    return thinks(state) < _limits(state).think and not turn_is_over(state)


def thinks(state: State) -> int:
    """Count the model calls of the tool loop in this phase, those of its helpers too (PL-08)."""
    return in_phase(state, "think") + in_phase(state, f"{HELPER}think")


def thinks_left(state: State) -> int:
    """Return how many more of them fit the phase's quota and the turn's limit."""
    limits = _limits(state)
    left = limits.think - thinks(state)
    return max(0, left if limits.turn is None else min(left, limits.turn - _in_turn(state)))


def turn_is_over(state: State) -> bool:
    """Whether the turn's limit of model calls is reached (TL-16)."""
    turn = _limits(state).turn
    return turn is not None and _in_turn(state) >= turn


def _in_turn(state: State) -> int:
    return in_task(state, "think") + in_task(state, f"{HELPER}think")


def can_verify(state: State) -> bool:
    """Whether another verification fits the quota."""
    return in_phase(state, "verify") < _limits(state).verify


def can_reflect(state: State) -> bool:
    """Whether another reflection fits: one in all once recovery stepped in (VE-04, RE-10)."""
    limit = _limits(state).reflect
    recovered = in_phase(state, "recover") > 0
    return count_reflections(state) < (min(limit, 1) if recovered else limit)


def can_recover(state: State) -> bool:
    """Whether recovery is switched on at all; how often, the failure itself decides (EM-05)."""
    return _limits(state).recoveries > 0


def count_reflections(state: State) -> int:
    """Count the reflections of the phase."""
    return in_phase(state, "reflect")


def can_reinject(state: State) -> bool:
    """Whether a failed verification may go back to the model without a reflection (VE-03)."""
    red = sum(step.kind == "verify" and not step.ok for step in in_scope(state))
    return red - 1 - count_reflections(state) < _limits(state).reinjections


def can_go_on(state: State) -> bool:
    """Whether work goes on after red checks: it does while there is quota left (BU-02)."""
    again = can_reinject(state) or can_reflect(state)
    return again and can_think(state) and can_verify(state)


def bounding_setting(state: State) -> str:
    """Name the one setting that bounds the steps of the work at hand, with its value."""
    limits = _limits(state)
    if turn_is_over(state):
        return f"budgets.max_steps_per_turn ({limits.turn})"
    red = state.verification is not None and not state.verification.passed
    if not red or not can_think(state):
        name = "think" if state.task and state.task.mode in KEEP_WORKING else "max_steps"
        return f"budgets.{name} ({limits.think})"
    if can_reflect(state) or can_reinject(state):
        return f"budgets.verify ({limits.verify})"
    if count_reflections(state) < limits.reflect:
        return "one reflection after a recovery"  # VE-04
    return f"budgets.reflect ({limits.reflect})"


def count_grants(state: State) -> int:
    """Count how often a person granted the quotas of steps once more, in this phase (RE-03a)."""
    if not in_phase(state, "pause"):
        return 0
    grants = (step.grant for step in in_scope(state) if step.grant)
    return sum(grant.steps and not grant.stopped for grant in grants)


def recoveries(state: State, failure: Failure) -> int:
    """Count how often recovery has dealt with a failure (RE-07), in this phase.

    Once what failed has gone well again, the next time is another failure. A loop is the same one
    for the whole phase: that its calls run is no sign of anything.
    """
    count = 0
    for step in latest_in_scope(state):
        if step.ok and step.kind == _STEP_OF.get(failure.node) and failure.code != "loop_detected":
            break
        count += step.kind == "recover" and step.signature == failure.signature
    return count


def repairs(state: State, signature: str) -> int:
    """Count the model calls that were made to repair one answer in one way."""
    own = (step for step in of_task(state) if not step.helper)
    return sum(step.kind == "repair" and step.signature == signature for step in own)


def failed_plans(state: State) -> int:
    """Count the tries to plan that came to nothing since the last usable plan."""
    return sum(1 for _ in _failed_plans(state))


def no_plans(state: State) -> int:
    """Count those of the failed tries whose answer was no plan at all (MO-11)."""
    return sum(step.signature == NO_PLAN for step in _failed_plans(state))


def _failed_plans(state: State) -> Iterator[Step]:
    tries = (step for step in latest_of_task(state) if step.kind == "plan")
    return takewhile(lambda step: not step.ok, tries)


def can_plan(state: State) -> bool:
    """Whether planning may be tried again."""
    return failed_plans(state) < MAX_FAILED_PLANS


def can_look(state: State) -> bool:
    """Whether the planner may look around once more for the plan at hand (PL-01a).

    Not where a model refused the tools that it would look with.
    """
    looks, latest = 0, (step for step in latest_of_task(state) if step.kind in ("look", "plan"))
    for step in takewhile(lambda step: step.kind == "look" or not step.ok, latest):
        if step.kind == "look" and not step.ok:
            return False
        looks += step.kind == "look"
    return looks < _limits(state).look


def replans_left(state: State) -> int:
    """Return how often what is left may still be planned anew: the plan tells how often it was."""
    return max(0, _limits(state).replan - (len(replaced_plans(state.plan)) if state.plan else 0))


def gave_up_planning(state: State) -> bool:
    """Whether the last try to plan anew was given up: no other is made for this plan."""
    last = next((step for step in latest_of_task(state) if step.kind == "plan"), None)
    return last is not None and last.signature == GAVE_UP


def _limits(state: State) -> Limits:
    """Return the limits of the task, each as often as it was granted."""
    if state.task is None:
        return Limits(think=0, verify=0, reflect=0)
    limits, times = state.task.limits, 1 + count_grants(state)
    if times == 1:
        return limits
    return replace(
        limits,
        think=limits.think * times,
        verify=limits.verify * times,
        reflect=limits.reflect * times,
        reinjections=limits.reinjections * times,
        turn=limits.turn and limits.turn * times,
    )


# --- What the record of steps says of recoveries: pure functions, as for budgets (BU-03).

MAX_TOOL_RETRIES = 2
"""Retries of one tool, before another has to be chosen (RE-07)."""

_AGAIN = frozenset({"retry", "parameter-adjustment"})
_TRIED = frozenset({"executed", "approved", "instructed", "answered"})


def hidden_tools(state: State, *, answered: bool = False) -> frozenset[str]:
    """Return the tools that the next answer must do without, or the last one (``answered``).

    What a recovery hides is hidden from one model call, and from the repair of that call's answer.
    """
    thinks = 0
    for step in latest_of_task(state):
        if step.recovery:
            hides = step.recovery.hides if thinks == int(answered) else ""
            return frozenset({hides} if hides else ())
        thinks += step.kind == "think"
        if thinks > int(answered):
            break
    return frozenset()


def retries_of(state: State, tool: str) -> int:
    """Count how often recovery has had a tool tried again, since it last chose another one."""
    count = 0
    for recovered in reversed([s.recovery for s in in_scope(state) if s.recovery]):
        if recovered.strategy not in _AGAIN or recovered.tool != tool:
            if recovered.tool or recovered.strategy == "alternative-tool":
                break
            continue
        count += 1
    return count


def retries(state: State) -> int:
    """Count how often recovery has had anything tried again in this phase."""
    done = (step.recovery for step in in_scope(state) if step.recovery)
    return sum(each.strategy == "retry" for each in done)


def asked_before(steps: Iterable[Step]) -> int:
    """Count the model calls that recovery has made on a thread."""
    return sum(
        step.kind == "recover" and not (step.recovery and step.recovery.by == "learned")
        for step in steps
    )


def ended_with(state: State) -> Mapping[str | None, frozenset[str]]:
    """Return the signatures of the failures that a task ended with, by phase; None: without one."""
    failures = [state.origin, state.failure] if state.plan is None else []
    found = {None: frozenset(each.signature for each in failures if each)}
    phases = state.plan.phases if state.plan else ()
    return found | {p.id: frozenset({p.failure.signature}) for p in phases if p.failure}


def outcomes(
    steps: Sequence[Step], ended: Mapping[str | None, Collection[str]] = MappingProxyType({})
) -> tuple[Recovered, ...]:
    """Return the recoveries of a task, each with whether it worked (RE-08).

    One worked if work went on after it and the same failure did not come again in its phase.
    ``ended`` is what the task :func:`ended_with`: nothing was tried then, so no step tells it.
    """
    return tuple(
        replace(
            step.recovery,
            worked=step.signature not in ended.get(step.phase_id, ())
            and _worked(step, steps[number + 1 :]),
        )
        for number, step in enumerate(steps)
        if step.recovery
    )


def _worked(step: Step, later: Sequence[Step]) -> bool:
    if step.recovery is None or step.recovery.carried not in _TRIED:
        return False
    phase = [each for each in later if each.phase_id == step.phase_id]
    again = any(each.kind == "recover" and each.signature == step.signature for each in phase)
    went_on = any(each.ok for each in phase if each.kind not in ("recover", "consult"))
    return went_on and not again
