"""How much of each budget is spent: one count for all who show it."""

from collections.abc import Mapping
from typing import get_args

from daruma.state import budget
from daruma.state.amounts import Amounts, Measure
from daruma.state.channels import State
from daruma.state.spending import Spending, allowed, spent_by_task
from daruma.state.step import StepKind

Standing = Mapping[str, tuple[float, float]]
"""What was spent and what may be, by kind of step or measure."""


def standing(state: State) -> Standing:
    """Return steps of the current phase, or of the whole task, and what of the task is limited.

    Tokens, usd and seconds are there where they have a limit; nothing is without a task.
    """
    if state.task is None:
        return {}
    limits, steps = state.task.limits, [*budget.in_scope(state)]
    most: dict[StepKind, int] = {
        "think": limits.think,
        "verify": limits.verify,
        "reflect": limits.reflect,
    }
    counted: Standing = {kind: (budget.spent(steps, kind), of) for kind, of in most.items()}
    return {**counted, **_measured(state)}


def _measured(state: State) -> Standing:
    limited, measures = allowed(state, "task"), get_args(Measure)
    spent = spent_by_task(state) if limited != Amounts() else Spending()
    return {
        measure: (spent.of(measure), limit)
        for measure in measures
        if (limit := limited.of(measure)) is not None
    }
