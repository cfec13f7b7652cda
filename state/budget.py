"""Budgets: pure functions of the record of steps, so a fork or a resume has what its history says.

No counter is kept anywhere (BU-03).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.growing import growing
from daruma.state.step import Step, StepKind
from daruma.state.task import Limits

_STEP_OF: dict[str, StepKind] = {"main": "think", "plan": "plan", "verify": "verify"}

MAX_FAILED_PLANS = 3
"""Tries in a row that may come to no usable plan: a model seldom mends a fourth."""


Tally = Mapping[tuple[str, str | None, StepKind], int]
"""How many steps there are, by their task, phase and kind."""

_NONE: Final[Tally] = {}


def in_scope(state: State) -> Iterator[Step]:
    """Yield the steps that count against the limits: the current phase's, or the whole task's."""
    return _scoped(state, state.steps)


def latest_in_scope(state: State) -> Iterator[Step]:
    """Yield the same steps, the last one first: for who needs the last few."""
    return _scoped(state, reversed(state.steps))


def _scoped(state: State, steps: Iterable[Step]) -> Iterator[Step]:
    if state.task is None:
        return
    phase_id = state.plan.current if state.plan else None
    for step in steps:
        if step.task_id == state.task.id and (phase_id is None or step.phase_id == phase_id):
            yield step


def spent(steps: Iterable[Step], kind: StepKind) -> int:
    """Count the steps of a kind."""
    return sum(step.kind == kind for step in steps)


def on_thread(state: State, kind: StepKind) -> int:
    """Count the steps of a kind of all tasks that the thread has had."""
    return sum(number for key, number in _tally(state).items() if key[2] == kind)


def in_task(state: State, kind: StepKind) -> int:
    """Count the steps of a kind of the task at hand, of all its phases."""
    task_id = state.task.id if state.task else None
    return sum(n for key, n in _tally(state).items() if key[0] == task_id and key[2] == kind)


def in_phase(state: State, kind: StepKind) -> int:
    """Count the steps of a kind that count against the limits, as :func:`in_scope` has them."""
    phase_id = state.plan.current if state.plan else None
    if state.task is None or phase_id is None:
        return in_task(state, kind)
    return _tally(state).get((state.task.id, phase_id, kind), 0)


def _tally(state: State) -> Tally:
    return growing(state.steps).known(_counted, _NONE)


def _counted(known: Tally, steps: Sequence[Step]) -> Tally:
    tally = dict(known)
    for step in steps:
        key = step.task_id, step.phase_id, step.kind
        tally[key] = tally.get(key, 0) + 1
    return tally


def of_task(state: State) -> list[Step]:
    """Return the steps of the task at hand, of all its phases."""
    return [step for step in state.steps if state.task and step.task_id == state.task.id]


def latest_of_task(state: State) -> Iterator[Step]:
    """Yield the steps of the task at hand, the last one first: for who needs the last few."""
    return (step for step in reversed(state.steps) if state.task and step.task_id == state.task.id)


def can_think(state: State) -> bool:
    """Whether another model call of the tool loop fits the phase's quota and the turn's limit."""
    limits = _limits(state)
    if limits.turn is not None and in_task(state, "think") >= limits.turn:
        return False
    return in_phase(state, "think") < limits.think


def can_verify(state: State) -> bool:
    """Whether another verification fits the quota."""
    return in_phase(state, "verify") < _limits(state).verify


def can_reflect(state: State) -> bool:
    """Whether another reflection fits the quota: once recovery has stepped in, one (VE-04)."""
    limit = _limits(state).reflect
    recovered = in_phase(state, "recover") > 0
    return reflected(state) < (min(limit, 1) if recovered else limit)


def can_recover(state: State) -> bool:
    """Whether recovery is switched on at all; how often, the failure itself decides (EM-05)."""
    return _limits(state).recoveries > 0


def reflected(state: State) -> int:
    """Count the reflections of the phase."""
    return in_phase(state, "reflect")


def can_reinject(state: State) -> bool:
    """Whether a failed verification may go back to the model without a reflection (VE-03)."""
    red = sum(step.kind == "verify" and not step.ok for step in in_scope(state))
    return red - 1 - reflected(state) < _limits(state).reinjections


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
    return sum(step.kind == "repair" and step.signature == signature for step in of_task(state))


def failed_plans(state: State) -> int:
    """Count the tries to plan that came to nothing since the last usable plan."""
    tries = [step.ok for step in of_task(state) if step.kind == "plan"]
    return next((n for n, ok in enumerate(reversed(tries)) if ok), len(tries))


def can_plan(state: State) -> bool:
    """Whether planning may be tried again."""
    return failed_plans(state) < MAX_FAILED_PLANS


def _limits(state: State) -> Limits:
    return state.task.limits if state.task else Limits(think=0, verify=0, reflect=0)
