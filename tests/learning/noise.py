"""Whether learning does harm: failures that teach nothing, and a gullible model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from langgraph.store.base import BaseStore
from tests.learning.arms import OFF, ON, Arm
from tests.learning.misleading import Misleading, gullible
from tests.learning.passes import Passes, carried_out, learning_settings

from daruma.tools.evolution import Variants

TIMES = 3
"""What leads astray once is told no more."""


@dataclass(frozen=True)
class Heard:
    """Three passes under noise: what they came to, and the prompts that the last one was sent.

    ``variants`` are the additions to prompts that were so much as proposed, by their status.
    """

    passes: Passes
    prompts: Sequence[str]
    variants: Sequence[str]


def under_noise(
    arm: Arm, tasks: Sequence[Misleading], store: BaseStore, folder: Path, name: str = "noise"
) -> Heard:
    """Carry tasks out three times in one arm."""
    owner, model = f"{name} {arm.name}", gullible(tasks)
    passes = carried_out(
        model, tasks, learning_settings(owner, **arm.evolution), store, folder, TIMES
    )
    again = model.requests[-passes.requests[1] :]
    known = asyncio.run(Variants(store, owner).all())
    return Heard(passes, [str(sent[0].text) for sent in again], [each.status for each in known])


def report(
    tasks: Sequence[Misleading], store: BaseStore, folder: Path, name: str = "noise"
) -> None:
    """Print both arms beside each other, and whether prompts differ."""
    heard = [under_noise(arm, tasks, store, folder / name / arm.name, name) for arm in (ON, OFF)]
    for arm, each in zip((ON, OFF), heard, strict=True):
        failed = " | ".join(map(str, each.passes.failures))
        told = " | ".join(str(sum(bool(d.lessons) for d in done)) for done in each.passes.done[1:])
        print(f"| {name} | {arm.name} | {len(tasks)} | {failed} | {told} |")  # noqa: T201
    on, off = heard
    same = "the same" if on.prompts == off.prompts else "not the same"
    made = ", ".join(on.variants) or "none"
    print(f"{name}: prompts are {same}; additions to prompts: {made}")  # noqa: T201
