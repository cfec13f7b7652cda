"""Taking up a task that stopped where its budget was spent, once the settings allow more. Pure."""

from dataclasses import replace
from typing import Any

from daruma.state.amounts import Amounts
from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.grant import Grant
from daruma.state.granting import told
from daruma.state.limits import limits_of
from daruma.state.recording import record_step
from daruma.state.settings import Settings
from daruma.state.spending import overrun


class BudgetTooSmall(DarumaError):
    """Raised where the settings do not allow more than was spent; names the one to raise."""


def raised(state: State, settings: Settings) -> dict[str, Any]:
    """Return what to write for a task to go on under today's limits, with all grants so far.

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
        raise BudgetTooSmall(f"{told(over)} Raise {key} above that, then try again.")
    grant = Grant(node=node, scope="task", more=Amounts())
    step = record_step(state, "pause", at=0.0, grant=grant)
    return {"task": task, "overrun": None, "steps": step}
