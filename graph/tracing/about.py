"""What a trace says of a node: whose work it is on, and how much of the budget is left. Pure."""

from dataclasses import dataclass, field
from typing import Any

from daruma.state.calls import Dispatch
from daruma.state.channels import State
from daruma.state.plan import Assignment
from daruma.state.spending import Standing, standing
from daruma.state.task import Task


@dataclass(frozen=True)
class About:
    """Where a run stands as a node begins; ``budgets`` holds steps (spent, allowed) by kind,
    and tokens, usd and seconds where they are limited.

    Empty texts stand for what there is none of: a phase in a task without a plan, for one.
    """

    node: str
    task_id: str = ""
    mode: str = ""
    phase: str = ""
    member: str = ""
    budgets: Standing = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        """What LangChain tracers see; every key is there, so that nothing older shines through."""
        return {
            "daruma_node": self.node,
            "daruma_task_id": self.task_id,
            "daruma_mode": self.mode,
            "daruma_phase": self.phase,
            "daruma_member": self.member,
            "daruma_budget": {kind: f"{n:g}/{of:g}" for kind, (n, of) in self.budgets.items()},
        }

    @property
    def attributes(self) -> dict[str, str | float]:
        """What spans hold; of what is empty nothing."""
        texts = {
            "daruma.node": self.node,
            "daruma.task_id": self.task_id,
            "daruma.mode": self.mode,
            "daruma.phase": self.phase,
            "daruma.member": self.member,
        }
        told: dict[str, str | float] = {key: text for key, text in texts.items() if text}
        for kind, (spent, of) in self.budgets.items():
            told |= {f"daruma.budget.{kind}.spent": spent, f"daruma.budget.{kind}.of": of}
        return told


def about(node: str, state: object, member: str = "") -> About:
    """Say where a run stands. ``state`` is what the node is given; an unknown kind says nothing.

    ``intake`` is told of no task: what it is given is that of the task before.
    """
    if isinstance(state, State) and state.task and node != "intake":
        phase = state.plan.current if state.plan else None
        return _about(node, state.task, phase, member, standing(state))
    if isinstance(state, Dispatch):
        return _about(node, state.task, state.phase_id, member, {})
    if isinstance(state, Assignment):
        return _about(node, state.task, state.phase.id, state.phase.id, {})
    return About(node, member=member)


def _about(node: str, task: Task, phase: str | None, member: str, budgets: Standing) -> About:
    return About(node, task.id, task.mode, phase or "", member, budgets)
