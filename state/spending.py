"""Tokens, money and time that were spent: computed from the record of steps, as all budgets are.

No counter is kept anywhere: a fork or a resume has spent what its history says (BU-03, BU-04).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from daruma.state.amounts import Amounts, Measure, Scope
from daruma.state.grant import Grant, Overrun, Paying
from daruma.state.mode import KEEP_WORKING
from daruma.state.step import Step
from daruma.state.usage import Usage

if TYPE_CHECKING:
    from daruma.state.channels import State

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


def spent_by_task(state: "State") -> Spending:
    """Return what the task at hand has spent, in all its phases."""
    return spending(_steps(state, "task"))


def spent_in_phase(state: "State") -> Spending:
    """Return what the current phase has spent; of a task without phases, all of it."""
    return spending(_steps(state, "phase"))


def allowed(state: "State", scope: Scope) -> Amounts:
    """Return the limits of the task or of its phase, with all that was granted since."""
    if state.task is None:
        return _NO_LIMITS
    limits = state.task.limits
    base = limits.spend if scope == "task" else limits.spend_in_phase
    taken = limits.taken if scope == "task" else limits.taken_in_phase
    if base is None:
        return _NO_LIMITS
    more = [g.more for g in _grants(state, scope) if g.scope == scope]
    return with_more(base, [*more, less(taken)] if taken else more)


def with_more(base: Amounts, more: Iterable[Amounts]) -> Amounts:
    """Add grants to limits; where there is no limit there is nothing to add to."""
    more = list(more)
    tokens, usd, seconds = base.tokens, base.usd, base.seconds
    return Amounts(
        tokens=None if tokens is None else tokens + sum(each.tokens or 0 for each in more),
        usd=None if usd is None else usd + sum(each.usd or 0.0 for each in more),
        seconds=None if seconds is None else seconds + sum(each.seconds or 0.0 for each in more),
    )


def less(amounts: Amounts) -> Amounts:
    """Return amounts to be taken away."""
    tokens, usd, seconds = amounts.tokens, amounts.usd, amounts.seconds
    return Amounts(tokens=-(tokens or 0), usd=-(usd or 0.0), seconds=-(seconds or 0.0))


def overrun(state: "State", node: Paying) -> Overrun | None:
    """Return the first limit that is reached of those that ``node`` would spend of.

    A verification takes time alone, so that work is still checked when tokens or money are spent.
    """
    measures: tuple[Measure, ...] = ("seconds",) if node == "verify" else get_args(Measure)
    for scope in _scopes(state):
        limits = allowed(state, scope)
        if limits == _NO_LIMITS:
            continue  # most tasks: nothing is to be summed up
        spent = spending(_steps(state, scope))
        for measure in measures:
            limit = limits.of(measure)
            if limit is not None and spent.of(measure) >= limit:
                return Overrun(
                    node=node,
                    scope=scope,
                    measure=measure,
                    spent=spent.of(measure),
                    limit=limit,
                )
    return None


def stopped(state: "State") -> bool:
    """Whether it was said that the task, or its phase, stops where its budget is spent."""
    for step in reversed(_steps(state, "task")):
        if step.grant and (step.grant.scope == "task" or step in _steps(state, "phase")):
            return step.grant.stopped
    return False


def unchecked(state: "State") -> bool:
    """Whether the model has worked since the last verification of the phase."""
    kinds = [step.kind for step in _steps(state, "phase") if step.kind in {"think", "verify"}]
    return bool(kinds) and kinds[-1] == "think"


def _grants(state: "State", scope: Scope) -> list[Grant]:
    return [step.grant for step in _steps(state, scope) if step.grant and not step.grant.stopped]


def _scopes(state: "State") -> tuple[Scope, ...]:
    planning = state.task and state.task.mode in KEEP_WORKING and not _phase(state)
    return ("task",) if planning else ("task", "phase")


def _phase(state: "State") -> str | None:
    return state.plan.current if state.plan else None


def _steps(state: "State", scope: Scope) -> list[Step]:
    if state.task is None:
        return []
    ours, phase = [s for s in state.steps if s.task_id == state.task.id], _phase(state)
    return ours if scope == "task" or phase is None else [s for s in ours if s.phase_id == phase]


def _covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of what intervals cover together."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
