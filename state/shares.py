"""What each of several team members may spend of the task's budget, as they work at once. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from daruma.state.amounts import Amounts
from daruma.state.spending import allowed, spending, spent_by_task, stopped
from daruma.state.task import Task

if TYPE_CHECKING:
    from daruma.state.channels import State


def with_shares(state: "State", tasks: Sequence[Task], phases: Sequence[str]) -> list[Task]:
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
                taken=taken(state, len(tasks), number),
                taken_in_phase=_spent_before(state, phase),
                when_spent="stop" if stopped(state) else task.limits.when_spent,
            ),
        )
        for number, (task, phase) in enumerate(zip(tasks, phases, strict=True))
    ]


def taken(state: "State", members: int, number: int) -> Amounts | None:
    """Return what of the task's limits is not for one member: what is spent, and others' shares."""
    limits = state.task.limits.spend if state.task else None
    if limits is None:
        return None
    whole, spent = allowed(state, "task"), spent_by_task(state)
    tokens = usd = seconds = None
    if whole.tokens is not None and limits.tokens is not None:
        each, over = divmod(max(whole.tokens - spent.tokens, 0), members)
        tokens = limits.tokens - each - (number < over)
    if whole.usd is not None and limits.usd is not None:
        usd = limits.usd - max(whole.usd - (spent.usd or 0.0), 0.0) / members
    if whole.seconds is not None and limits.seconds is not None:
        seconds = limits.seconds - max(whole.seconds - spent.seconds, 0.0)
    return Amounts(tokens=tokens, usd=usd, seconds=seconds)


def _spent_before(state: "State", phase: str) -> Amounts:
    ours = [s for s in state.steps if s.task_id == state.task_id and s.phase_id == phase]
    spent = spending(ours)
    more = [s.grant.more for s in ours if s.grant and s.grant.scope == "phase"]
    return Amounts(
        tokens=spent.tokens - sum(each.tokens or 0 for each in more),
        usd=(spent.usd or 0.0) - sum(each.usd or 0.0 for each in more),
        seconds=spent.seconds - sum(each.seconds or 0.0 for each in more),
    )
