"""The facts that pitfalls are summed up from, and how sure they are. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final, Literal

from daruma.state.lessons import Experience, KnownPitfall, Level, Pitfall, Setback, SetbackKind
from daruma.state.record import record
from daruma.state.text import digest
from daruma.tools.evolution._records import storable_line
from daruma.tools.text import SAME_KIND, likeness

# --- How sure a pitfall is: the tasks that it was seen in, those that it was not, time. Pure.

HALF_LIFE: Final = 90 * 86_400.0
"""Seconds after which a pitfall that was not seen again is half as sure: a quarter of a year, in
which code and tools change. Our own choice."""


def confidence(hits: int, against: int, alike: float = 1.0, age: float = 0.0) -> float:
    """Return how sure it is that tasks of a kind meet a pitfall, from 0 to 1.

    ``(hits + 0.5) / (hits + against + 1.5) * alike * 0.5 ** (age / 90 days)``: the share of tasks
    that it was seen in, as if there had been one and a half more, half a one of them a hit. So one
    task alone makes 0.6, three 0.78, and one beside one that went well 0.43. ``against`` are the
    tasks that went well without being told of it, and those that were told and fell to something
    else: a pitfall that leads astray is soon not told any more. Of what went well only the sampled
    part is known, so it says less of how often than of whether it comes again. ``alike`` is how
    alike their goals are, from 0 to 1; ``age`` are the seconds since it was seen last.
    """
    share = (hits + 0.5) / (hits + against + 1.5)
    return float(share * alike * 0.5 ** (max(age, 0.0) / HALF_LIFE))


def confidence_at(pitfall: Pitfall, now: float) -> float:
    """Return how sure a pitfall is at ``now``, Unix time in seconds."""
    return float(pitfall.confidence * 0.5 ** (max(now - pitfall.last_at, 0.0) / HALF_LIFE))


def level_of(sure: float, least: float, *, grave: bool) -> Level:
    """Return a pitfall's level. ``grave`` is one that a task fell to, or a person objected to."""
    if sure < least:
        return "low"
    return "high" if grave else "medium"


# --- What one task says of a group of pitfalls: the facts that pitfalls are summed up from.

EvidenceKind = Literal["failed", "clear", "avoided", "repeated", "in_vain"]
"""It was seen; an alike task went well untold; one that was told went well; it was seen, told; one
that was told fell to something else."""

SEEN: Final = ("failed", "repeated")

_LONGEST_GOAL: Final = 500


@record
class Evidence:
    """What a task says of the pitfalls of one actor and signature: one fact for each task.

    ``at`` is Unix time in seconds, ``pitfall`` the id of the one that the task was told of.
    """

    task: str
    how: EvidenceKind
    at: float
    owner: str
    actor: str
    signature: str
    goal: str
    kind: SetbackKind
    text: str = ""
    advice: str = ""
    ended: bool = False
    skills: tuple[str, ...] = ()
    pitfall: str = ""
    schema_version: int = 1

    @property
    def seen(self) -> bool:
        """Whether the task met the pitfall."""
        return self.how in SEEN

    @property
    def grave(self) -> bool:
        """Whether the task, or a phase, fell to it, or a person objected."""
        return self.seen and (self.ended or self.kind == "person")

    @property
    def group(self) -> str:
        """The group of pitfalls that it is about."""
        return group_of(self.owner, self.actor, self.signature)

    @property
    def key(self) -> str:
        """The key that it is kept under."""
        return digest(self.task)


def group_of(owner: str, actor: str, signature: str) -> str:
    """Return the name of all pitfalls of an actor and a signature, whatever the goals."""
    return digest([owner, actor, signature])[:12]


def evidence_of(
    experience: Experience, how: EvidenceKind, met: Setback | Pitfall, told: str
) -> Evidence:
    """Return what a task says of the pitfalls of an actor and a signature, but for words."""
    return Evidence(
        task=experience.task_id,
        how=how,
        at=experience.at,
        owner=experience.owner,
        actor=met.actor,
        signature=met.signature,
        goal=goal_of(experience),
        kind=met.kind,
        pitfall=told,
    )


def evidence_of_setback(setback: Setback, experience: Experience) -> Evidence:
    """Return the fact that a task met a setback."""
    group = group_of(experience.owner, setback.actor, setback.signature)
    told = [each.id for each in told_pitfalls(experience) if each.id.startswith(f"{group}-")]
    fact = evidence_of(experience, "repeated" if told else "failed", setback, (*told, "")[0])
    return replace(
        fact,
        text=storable_line(setback.text),
        advice=storable_line(setback.advice),
        ended=setback.ended,
        skills=experience.skills,
    )


def told_pitfalls(experience: Experience) -> Sequence[KnownPitfall]:
    """Return the pitfalls that a task was told of."""
    return experience.lessons.pitfalls if experience.lessons else ()


def goal_of(experience: Experience) -> str:
    """Return a task's goal as it is kept with what is learned from it."""
    return storable_line(experience.goal, _LONGEST_GOAL)


# --- The pitfalls that the facts of a group make: one for each kind of goal. Pure.
#
# They depend on the facts alone, and not on the order in which these became known.

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


def summarise(facts: Iterable[Evidence], min_confidence: float) -> list[Summary]:
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


# --- Which facts of a group are let go of where there are more than are counted. Pure.


def choose_excess(
    facts: Sequence[Evidence], summaries: Sequence[Summary], most: int
) -> tuple[Evidence, ...]:
    """Return the facts, the oldest first, without which there are ``most`` of them.

    The first fact of a pitfall, which gives it its id and its goal, is as new as its newest: it
    goes only after all others of that pitfall.
    """
    newest = {each.facts[0]: max(fact.at for fact in each.facts) for each in summaries}

    def order(fact: Evidence) -> tuple[float, bool, str]:
        return newest.get(fact, fact.at), fact in newest, fact.task

    return tuple(sorted(facts, key=order)[: max(0, len(facts) - most)])
