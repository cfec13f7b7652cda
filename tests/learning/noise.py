"""Whether learning does harm: failures that teach nothing, and a gullible model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from langgraph.store.base import BaseStore
from tests.learning.arms import OFF, ON, Arm
from tests.learning.misleading import Misleading, gullible
from tests.learning.passes import Twice, learning_settings, twice

from daruma.tools.evolution.variants import Variants


@dataclass(frozen=True)
class Heard:
    """Two passes under noise: what they came to, and the prompts that the second one was sent.

    ``variants`` are the additions to prompts that were so much as proposed, by their status.
    """

    passes: Twice
    prompts: Sequence[str]
    variants: Sequence[str]


def under_noise(
    arm: Arm, tasks: Sequence[Misleading], store: BaseStore, folder: Path, name: str = "noise"
) -> Heard:
    """Carry tasks out twice in one arm."""
    owner, model = f"{name} {arm.name}", gullible(tasks)
    passes = twice(model, tasks, learning_settings(owner, **arm.evolution), store, folder)
    again = model.requests[-passes.requests[1] :]
    known = asyncio.run(Variants(store, owner).all())
    return Heard(passes, [str(sent[0].text) for sent in again], [each.status for each in known])


def report(
    tasks: Sequence[Misleading], store: BaseStore, folder: Path, name: str = "noise"
) -> None:
    """Print both arms beside each other, and whether prompts differ."""
    heard = [under_noise(arm, tasks, store, folder / name / arm.name, name) for arm in (ON, OFF)]
    for arm, each in zip((ON, OFF), heard, strict=True):
        first, again = each.passes.failures
        told = sum(bool(done.lessons) for done in each.passes.second)
        print(f"| {name} | {arm.name} | {len(tasks)} | {first} | {again} | {told} |")  # noqa: T201
    on, off = heard
    same = "the same" if on.prompts == off.prompts else "not the same"
    made = ", ".join(on.variants) or "none"
    print(f"{name}: prompts are {same}; additions to prompts: {made}")  # noqa: T201
