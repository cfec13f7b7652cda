"""Budgets: pure functions of the record of steps, so a fork or a resume has what its history says.

No counter is kept anywhere (BU-03).
"""

from collections.abc import Iterable, Iterator

from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.step import Step, StepKind
from daruma.state.task import Limits

_STEP_OF: dict[str, StepKind] = {"main": "think", "plan": "plan", "verify": "verify"}

MAX_FAILED_PLANS = 3
"""Tries in a row that may come to no usable plan: a model seldom mends a fourth."""


def in_scope(state: State) -> Iterator[Step]:
    """Yield the steps that count against the limits: the current phase's, or the whole task's."""
    if state.task is None:
        return
    phase_id = state.plan.current if state.plan else None
    for step in state.steps:
        if step.task_id == state.task.id and (phase_id is None or step.phase_id == phase_id):
            yield step


def spent(steps: Iterable[Step], kind: StepKind) -> int:
    """Count the steps of a kind."""
    return sum(step.kind == kind for step in steps)


def of_task(state: State) -> list[Step]:
    """Return the steps of the task at hand, of all its phases."""
    return [step for step in state.steps if state.task and step.task_id == state.task.id]


def can_think(state: State) -> bool:
    """Whether another model call of the tool loop fits the phase's quota and the turn's limit."""
    limits = _limits(state)
    if limits.turn is not None and spent(of_task(state), "think") >= limits.turn:
        return False
    return spent(in_scope(state), "think") < limits.think


def can_verify(state: State) -> bool:
    """Whether another verification fits the quota."""
    return spent(in_scope(state), "verify") < _limits(state).verify


def can_reflect(state: State) -> bool:
    """Whether another reflection fits the quota: once recovery has stepped in, one (VE-04)."""
    limit = _limits(state).reflect
    recovered = spent(in_scope(state), "recover") > 0
    return reflected(state) < (min(limit, 1) if recovered else limit)


def can_recover(state: State) -> bool:
    """Whether recovery is switched on at all; how often, the failure itself decides (EM-05)."""
    return _limits(state).recoveries > 0


def reflected(state: State) -> int:
    """Count the reflections of the phase."""
    return spent(in_scope(state), "reflect")


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
    for step in reversed([*in_scope(state)]):
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
