"""What the record of steps says of recoveries: pure functions, as for budgets (BU-03)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.recovery import Recovered
from daruma.state.step import Step

MAX_TOOL_RETRIES = 2
"""Retries of one tool, before another has to be chosen (RE-07)."""

_AGAIN = frozenset({"retry", "parameter-adjustment"})
_TRIED = frozenset({"executed", "approved", "instructed", "answered"})


def hidden_tools(state: State, *, answered: bool = False) -> frozenset[str]:
    """Return the tools that the next answer must do without, or the last one (``answered``).

    What a recovery hides is hidden from one model call, and from the repair of that call's answer.
    """
    thinks = 0
    for step in budget.latest_of_task(state):
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
    for recovered in reversed([s.recovery for s in budget.in_scope(state) if s.recovery]):
        if recovered.strategy not in _AGAIN or recovered.tool != tool:
            if recovered.tool or recovered.strategy == "alternative-tool":
                break
            continue
        count += 1
    return count


def retries(state: State) -> int:
    """Count how often recovery has had anything tried again in this phase."""
    return sum(
        step.recovery is not None and step.recovery.strategy == "retry"
        for step in budget.in_scope(state)
    )


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
