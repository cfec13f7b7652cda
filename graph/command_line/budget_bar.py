"""How much of its budget a task has spent, as a bar of blocks and as words."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rich.text import Text

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.step import StepKind

_WIDEST = 10
_KNOWN = frozenset(field.name for field in fields(State))


@dataclass(frozen=True)
class Spent:
    """Steps of one kind: how many were made, and how many may be."""

    kind: StepKind
    spent: int
    of: int


def spent_of(values: Mapping[str, Any]) -> tuple[Spent, ...]:
    """Count a state's steps against the limits of the current phase, or of a task without one."""
    state = State(**{key: value for key, value in values.items() if key in _KNOWN})
    if state.task is None:
        return ()
    limits, steps = state.task.limits, list(budget.in_scope(state))
    thought = Spent("think", budget.spent(steps, "think"), limits.think)
    if not state.task.verify:
        return (thought,)
    return (
        thought,
        Spent("verify", budget.spent(steps, "verify"), limits.verify),
        Spent("reflect", budget.spent(steps, "reflect"), limits.reflect),
    )


def in_words(spent: tuple[Spent, ...]) -> str:
    """Return ``think 3 of 7, verify 1 of 2``."""
    return ", ".join(f"{each.kind} {each.spent} of {each.of}" for each in spent)


def bar(spent: tuple[Spent, ...], *, ascii_only: bool = False) -> Text:
    """Draw the budget: one block for each step, or ten blocks for more than ten."""
    full, empty = ("#", ".") if ascii_only else ("▰", "▱")
    text = Text()
    for each in spent:
        blocks = min(each.of, _WIDEST)
        filled = min(blocks, -(-each.spent * blocks // each.of)) if each.of else 0
        text.append(f"  {each.kind} ", style="dim")
        text.append(full * filled, style="yellow" if filled == blocks else "green")
        text.append(empty * (blocks - filled), style="dim")
        text.append(f" {each.spent}/{each.of}", style="dim")
    return text
