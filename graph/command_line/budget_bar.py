"""How much of its budget a task has spent, as a bar of blocks and as words."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast, get_args

from rich.text import Text

from daruma.state.channels import State
from daruma.state.spending import shown, standing
from daruma.state.steps import StepKind
from daruma.state.task import Measure

_WIDEST = 10
_KNOWN = frozenset(field.name for field in fields(State))


@dataclass(frozen=True)
class Spent:
    """Steps of one kind, or a measure: how much was spent, and how much may be."""

    kind: StepKind | Measure
    spent: float
    of: float

    @property
    def amounts(self) -> tuple[str, str]:
        """What was spent and what may be, as people write it."""
        if self.kind in get_args(Measure):
            measure = cast(Measure, self.kind)
            spent, of = (
                shown(measure, each).removesuffix(" tokens") for each in (self.spent, self.of)
            )
            return spent, of
        return f"{self.spent:g}", f"{self.of:g}"


def spent_of(values: Mapping[str, Any]) -> tuple[Spent, ...]:
    """Count what a state has spent against the limits of its current phase, or without one its own.

    Tokens, money and time are those of the whole task, where it has a limit of them.
    """
    state = State(**{key: value for key, value in values.items() if key in _KNOWN})
    if state.task is None:
        return ()
    hidden = () if state.task.verify else ("verify", "reflect")
    return tuple(
        Spent(cast("StepKind | Measure", kind), *amounts)
        for kind, amounts in standing(state).items()
        if kind not in hidden
    )


def in_words(spent: tuple[Spent, ...]) -> str:
    """Return ``think 3 of 7, verify 1 of 2``."""
    return ", ".join(f"{each.kind} {' of '.join(each.amounts)}" for each in spent)


def bar(spent: tuple[Spent, ...], *, ascii_only: bool = False) -> Text:
    """Draw the budget: one block for each step, or ten blocks for more than ten."""
    full, empty = ("#", ".") if ascii_only else ("▰", "▱")
    text = Text()
    for each in spent:
        blocks = int(min(each.of, _WIDEST)) if each.kind not in get_args(Measure) else _WIDEST
        filled = int(min(blocks, -(-each.spent * blocks // each.of))) if each.of else 0
        text.append(f"  {each.kind} ", style="dim")
        text.append(full * filled, style="yellow" if filled == blocks else "green")
        text.append(empty * (blocks - filled), style="dim")
        text.append(f" {'/'.join(each.amounts)}", style="dim")
    return text
