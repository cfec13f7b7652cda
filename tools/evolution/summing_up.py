"""The pitfalls that the facts of a group make: one for each kind of goal. Pure.

They depend on the facts alone, and not on the order in which these became known.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from daruma.state.digest import digest
from daruma.state.pitfall import Pitfall
from daruma.tools.evolution.confidence import confidence, level_of
from daruma.tools.evolution.evidence import Evidence
from daruma.tools.evolution.likeness import SAME_KIND, likeness

MOST_GOALS: Final = 5
"""Goals of a pitfall that are kept: the newest different ones."""
_MOST_SKILLS: Final = 10


@dataclass
class _Cluster:
    """Facts of tasks with alike goals; the first one seen gives the cluster its goal and id."""

    first: Evidence
    facts: list[Evidence] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.first.group}-{digest(self.first.task)[:8]}"

    @property
    def seen(self) -> list[Evidence]:
        return [each for each in self.facts if each.seen]


@dataclass(frozen=True)
class Summary:
    """A pitfall, whether it is grave enough to be told of, and the facts that speak of it."""

    pitfall: Pitfall
    grave: bool
    facts: tuple[Evidence, ...]


def summed_up(facts: Iterable[Evidence], min_confidence: float) -> list[Summary]:
    """Return the pitfalls that facts of one group make, the one that was seen first before others.

    A fact joins the first cluster whose first goal is alike, the earlier facts before the later; a
    seen one that is alike to none begins another. One that was not seen says nothing of others.
    """
    ordered = sorted(facts, key=lambda each: (each.at, each.task))
    clusters: list[_Cluster] = []
    for fact in (each for each in ordered if each.seen):
        home = _home(fact, clusters)
        if home is None:
            home = _Cluster(fact)
            clusters.append(home)
        home.facts.append(fact)
    for fact in (each for each in ordered if not each.seen):
        if home := _home(fact, clusters):
            home.facts.append(fact)
    return [_summary(each, min_confidence) for each in clusters]


def _home(fact: Evidence, clusters: Sequence[_Cluster]) -> _Cluster | None:
    if not fact.seen and (told := [each for each in clusters if each.id == fact.pitfall]):
        return told[0]
    alike = (each for each in clusters if likeness(fact.goal, each.first.goal) >= SAME_KIND)
    return next(alike, None)


def _summary(cluster: _Cluster, min_confidence: float) -> Summary:
    seen, first, last = cluster.seen, cluster.first, cluster.seen[-1]
    counts = Counter(each.how for each in cluster.facts)
    # Goals of one kind are half alike at least: that much is sure, the rest is what they share.
    alike = (1 + fmean(likeness(each.goal, first.goal) for each in seen)) / 2
    against = counts["clear"] + counts["in_vain"]
    sure, grave = confidence(len(seen), against, alike), any(each.grave for each in seen)
    pitfall = Pitfall(
        id=cluster.id,
        owner=first.owner,
        actor=first.actor,
        kind=last.kind,
        signature=first.signature,
        text=last.text,
        advice=next((each.advice for each in reversed(seen) if each.advice), ""),
        goals=tuple(dict.fromkeys(each.goal for each in reversed(seen)))[:MOST_GOALS],
        skills=tuple(sorted({skill for each in seen for skill in each.skills}))[:_MOST_SKILLS],
        tasks=len(seen),
        clear=counts["clear"],
        avoided=counts["avoided"],
        repeated=counts["repeated"],
        in_vain=counts["in_vain"],
        confidence=sure,
        level=level_of(sure, min_confidence, grave=grave),
        first_at=first.at,
        last_at=last.at,
    )
    return Summary(pitfall, grave, tuple(cluster.facts))
