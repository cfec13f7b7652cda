"""Which pitfalls a task is told of: those of the most alike goals. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from daruma.state.pitfall import Pitfall
from daruma.tools.evolution.confidence import confidence_at, level_of
from daruma.tools.evolution.likeness import likeness_to_any, needed
from daruma.tools.evolution.pitfall_items import Kept

_FOR_A_SKILL = 0.1
"""What a skill in common adds to the likeness of goals, and never more than 1."""


def as_of(kept: Kept, now: float, min_confidence: float) -> Pitfall:
    """Return a pitfall with the confidence and the level that it has at ``now`` (Unix seconds)."""
    sure = confidence_at(kept.pitfall, now)
    level = level_of(sure, min_confidence, grave=kept.grave)
    return replace(kept.pitfall, confidence=sure, level=level)


def most_alike(
    query: str,
    pitfalls: Iterable[Pitfall],
    *,
    skills: Sequence[str] = (),
    limit: int = 3,
) -> list[Pitfall]:
    """Return the HIGH ones whose goals are alike enough to a goal, the most alike first.

    How alike is enough, the number of tasks that a pitfall was seen in decides. Of equally alike
    ones the surer one comes first, then the one with the smaller id: always the same order.
    """
    high = {each.id: each for each in pitfalls if each.level == "high"}
    alike = {id_: _alike(query, skills, each) for id_, each in high.items()}
    fitting = [each for each in high.values() if alike[each.id] >= needed(each.tasks)]
    fitting.sort(key=lambda each: (-round(alike[each.id], 2), -round(each.confidence, 3), each.id))
    return fitting[:limit]


def _alike(query: str, skills: Sequence[str], pitfall: Pitfall) -> float:
    more = _FOR_A_SKILL if set(skills) & set(pitfall.skills) else 0.0
    return min(1.0, likeness_to_any(query, pitfall.goals) + more)
