"""The pitfall detector: what one task says of pitfalls, put on record (EV-03)."""

from collections.abc import Collection, Iterator

from daruma.state.experience import Experience
from daruma.state.pitfall import Pitfall
from daruma.tools.evolution.evidence import Evidence, How, goal_of, seen_in, told_of
from daruma.tools.evolution.likeness import ask_for_the_same
from daruma.tools.evolution.pitfalls import Pitfalls


async def detect(experience: Experience, pitfalls: Pitfalls, min_confidence: float) -> None:
    """Put on record what a task met, and what it did not meet.

    What is passing makes no pitfall. Done twice, it changes nothing the second time.
    """
    for setback in experience.setbacks:
        if not setback.passing:
            await pitfalls.record(seen_in(setback, experience), min_confidence)
    if experience.countable:
        for fact in not_met(experience, await _known(experience, pitfalls)):
            await pitfalls.record(fact, min_confidence)


def not_met(experience: Experience, known: list[Pitfall]) -> Iterator[Evidence]:
    """Yield a fact for each group of pitfalls that a task did not meet.

    See :func:`how_not_met`.
    """
    met = {(each.actor, each.signature) for each in experience.setbacks}
    told = {each.id for each in told_of(experience)}
    ours = [each for each in known if (each.actor, each.signature) not in met]
    facts: dict[str, Evidence] = {}
    for pitfall in sorted(ours, key=lambda each: each.id):
        if how := how_not_met(experience, pitfall, told):
            fact = _fact(experience, pitfall, how)
            facts.setdefault(fact.group, fact)
    yield from facts.values()


def how_not_met(experience: Experience, pitfall: Pitfall, told: Collection[str]) -> How | None:
    """Return what a task says of a pitfall that it did not meet; None for nothing.

    ``told`` are the ids of those that it was told of. Told, and well: avoided. The same task as one
    that had met it: clear if it went well without being told of any at all, and told in vain if it
    was told of this one and fell to something else.
    """
    same = any(ask_for_the_same(goal_of(experience), goal) for goal in pitfall.goals)
    if pitfall.id in told:
        if experience.completed:
            return "avoided"
        return "in_vain" if same else None
    later = pitfall.first_at < experience.at
    return "clear" if experience.completed and same and later and not told else None


async def _known(experience: Experience, pitfalls: Pitfalls) -> list[Pitfall]:
    """Return the owner's own pitfalls that a task was told of, or that its goal may be alike to."""
    told = [await pitfalls.get(each.id) for each in told_of(experience)]
    near = await pitfalls.near(goal_of(experience))
    found = [each for each in (*told, *near) if each and each.owner == pitfalls.owner]
    return list({each.id: each for each in found}.values())


def _fact(experience: Experience, pitfall: Pitfall, how: How) -> Evidence:
    return Evidence(
        task=experience.task_id,
        how=how,
        at=experience.at,
        owner=experience.owner,
        actor=pitfall.actor,
        signature=pitfall.signature,
        goal=goal_of(experience),
        kind=pitfall.kind,
        pitfall=pitfall.id,
    )
