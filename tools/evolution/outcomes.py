"""Counting how tasks ended that were given a variant, and deciding on it by them (EV-03)."""

import logging
from dataclasses import replace
from typing import Final

from langgraph.store.base import BaseStore
from pydantic import TypeAdapter

from daruma.state.digest import digest
from daruma.state.experience import Experience
from daruma.tools.evolution.ab_test import Decision, Outcome, Verdict, decision, setback_in_use
from daruma.tools.evolution.kept import Namespace, all_in, plain
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.variant import Status, Variant, taken_back
from daruma.tools.evolution.variants import Variants
from daruma.tools.evolution.withdrawal import withdrawn

_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
_MOST: Final = 5000
_ROUNDS: Final = 10
_AFTER_TEST: Final[dict[Verdict, Status]] = {
    "better": "promoted",
    "worse": "rejected",
    "no difference": "rejected",
}
_LOG = logging.getLogger("daruma.evolution")


async def count_outcomes(experience: Experience, store: BaseStore) -> None:
    """Count a task's outcome for each variant that it was given or compared with, and decide.

    An outcome that says nothing of the work, such as a provider's outage, counts for neither side.
    """
    if experience.lessons is None or not experience.countable:
        return
    variants = Variants(store, experience.owner)
    for given in experience.lessons.instructions:
        variant = await variants.get(given.variant)
        if variant is None or await _counted_before(variant, experience.task_id, store):
            continue
        outcome = Outcome(
            task_id=experience.task_id,
            variant=given.variant,
            arm=given.arm,
            ok=experience.completed,
            at=experience.at,
        )
        key = digest(experience.task_id)
        await store.aput(_place(variant), key, plain(_OUTCOME, outcome), index=False)
        await decide(variant, store)


async def decide(variant: Variant, store: BaseStore) -> None:
    """Decide on a variant by the outcomes there are, again if others have added to them."""
    if variant.status not in ("testing", "promoted"):
        return
    before, variants = None, Variants(store, variant.owner)
    for _ in range(_ROUNDS):
        outcomes = await all_in(store, _OUTCOME, _place(variant), _MOST)
        gone = await withdrawn(store, variant.owner, variant.id)
        facts = sorted(map(repr, outcomes)), gone
        found = taken_back(variant, gone) if gone else decided(variant, outcomes)
        if facts == before or found == variant:
            return
        now = await variants.get(variant.id)
        if now is None or (not gone and now.review > found.review):
            return  # removed, or others are further on
        await variants.put(found)
        _LOG.info("instruction %s of %s: %s, %s", found.id, found.actor, found.status, found.why)
        before = facts
        await _let_go(_place(found, 2), store)


async def _let_go(place: Namespace, store: BaseStore) -> None:
    """Delete the outcomes of a comparison that is long over: what is counted once is told by now.

    Those of the one before stay, as a task may still be learned from again.
    """
    for item in await store.asearch(place, limit=_MOST):
        if tuple(item.namespace) == place:
            await store.adelete(place, item.key)


def decided(variant: Variant, outcomes: list[Outcome]) -> Variant:
    """Return a variant as its outcomes leave it. Pure."""
    in_use = variant.status == "promoted"
    found = setback_in_use(outcomes) if in_use else decision(outcomes)
    if found is None:
        return variant
    if not in_use:
        return _with(variant, found, _AFTER_TEST[found.verdict])
    return _with(variant, found, "withdrawn" if found.verdict == "worse" else "promoted")


def _with(variant: Variant, found: Decision, status: Status) -> Variant:
    review = variant.review + 1
    return replace(variant, status=status, why=found.why, decided_at=found.at, review=review)


def _place(variant: Variant, back: int = 0) -> Namespace:
    return shelf(variant.owner, "outcomes", variant.id, str(variant.review - back))


async def _counted_before(variant: Variant, task_id: str, store: BaseStore) -> bool:
    """Whether the outcome was counted in the comparison before the one that goes on now."""
    if not variant.review:
        return False
    return await store.aget(_place(variant, 1), digest(task_id)) is not None
