"""The pitfall detector: what one task says of pitfalls, put on record (EV-03)."""

from collections.abc import Iterator

from daruma.state.experience import Experience
from daruma.state.pitfall import Pitfall
from daruma.tools.evolution.evidence import Evidence, goal_of, told_of
from daruma.tools.evolution.likeness import SAME_TASK, likeness_to_any
from daruma.tools.evolution.pitfalls import Pitfalls


async def detect(experience: Experience, pitfalls: Pitfalls, min_confidence: float) -> None:
    """Put on record what a task met, and, if it went well, what it did not meet.

    What is passing makes no pitfall. Done twice, it changes nothing the second time.
    """
    for setback in experience.setbacks:
        if not setback.passing:
            await pitfalls.observe(setback, experience, min_confidence)
    if experience.completed:
        for fact in not_met(experience, await _known(experience, pitfalls)):
            await pitfalls.record(fact, min_confidence)


def not_met(experience: Experience, known: list[Pitfall]) -> Iterator[Evidence]:
    """Yield a fact for each group of pitfalls that a completed task did not meet.

    Of those that it was told of, that they were avoided; of those that nearly the same tasks had
    met before, that it went well without, where it was told of none at all.
    """
    met = {(each.actor, each.signature) for each in experience.setbacks}
    told = {each.id for each in told_of(experience)}
    ours = [each for each in known if (each.actor, each.signature) not in met]
    facts: dict[str, Evidence] = {}
    for pitfall in sorted(ours, key=lambda each: (each.id not in told, each.id)):
        fact = _fact(experience, pitfall, told=pitfall.id in told)
        alike = not told and likeness_to_any(experience.goal, pitfall.goals) >= SAME_TASK
        if pitfall.id in told or (alike and pitfall.first_at < experience.at):
            facts.setdefault(fact.group, fact)
    yield from facts.values()


async def _known(experience: Experience, pitfalls: Pitfalls) -> list[Pitfall]:
    """Return the owner's own pitfalls that a task was told of, or that its goal may be alike to."""
    told = [await pitfalls.get(each.id) for each in told_of(experience)]
    near = await pitfalls.near(goal_of(experience))
    found = [each for each in (*told, *near) if each and each.owner == pitfalls.owner]
    return list({each.id: each for each in found}.values())


def _fact(experience: Experience, pitfall: Pitfall, *, told: bool) -> Evidence:
    return Evidence(
        task=experience.task_id,
        how="avoided" if told else "clear",
        at=experience.at,
        owner=experience.owner,
        actor=pitfall.actor,
        signature=pitfall.signature,
        goal=goal_of(experience),
        kind=pitfall.kind,
        pitfall=pitfall.id,
    )
