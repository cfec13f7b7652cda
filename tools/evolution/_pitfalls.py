"""An owner's pitfalls: summed up from what tasks met, found by a goal, forgotten (EV-03, EV-04)."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Final, Literal

from langgraph.store.base import BaseStore, Item, Op, PutOp, Result, SearchItem, SearchOp

from daruma.state.lessons import Experience, KnownPitfall, Level, Pitfall, Setback, SetbackKind
from daruma.state.record import record
from daruma.state.text import digest
from daruma.tools.evolution._records import (
    EVOLUTION_NAMESPACE,
    PAGE,
    Shelf,
    found_in,
    read_record,
    shelf,
    storable_line,
)
from daruma.tools.text import (
    RANKED_ITEMS,
    SAME_KIND,
    SearchableStore,
    ask_for_the_same,
    likeness,
    likeness_to_any,
    needed_likeness,
)
from daruma.tools.threads import in_thread

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


# --- A pitfall as an item of a store, and back. Pure.

_LONGEST_ABOUT: Final = 2000


@record
class StoredPitfall:
    """A pitfall as a store keeps it, with plain values that filters ask for.

    ``about`` is what it is searched by: the goals and skills of its tasks, and not its own text,
    whose words any goal may have. ``grave`` says that it is high wherever it is sure enough.
    """

    about: str
    id: str
    group: str
    owner: str
    grave: bool
    again: bool
    shared: bool
    last_at: float
    pitfall: Pitfall

    def as_of(self, now: float, min_confidence: float) -> Pitfall:
        """Return it with the confidence and the level that it has at ``now`` (Unix seconds)."""
        sure = confidence_at(self.pitfall, now)
        level = level_of(sure, min_confidence, grave=self.grave)
        return replace(self.pitfall, confidence=sure, level=level)


def stored_pitfall(summary: Summary, *, shared: bool) -> StoredPitfall:
    """Return a pitfall as it is kept."""
    pitfall = replace(summary.pitfall, shared=shared)
    return StoredPitfall(
        about="\n".join((*pitfall.goals, *pitfall.skills))[:_LONGEST_ABOUT],
        id=pitfall.id,
        group=pitfall.id.partition("-")[0],
        owner=pitfall.owner,
        grave=summary.grave,
        again=pitfall.tasks > 1,
        shared=shared,
        last_at=pitfall.last_at,
        pitfall=pitfall,
    )


def pitfalls_in(items: Iterable[Item]) -> Iterator[StoredPitfall]:
    """Yield the pitfalls that items hold; not what is none, or lies where it does not belong.

    Whose it says it is has to be whose namespace it lies in, and its id its key.
    """
    for item in items:
        found = read_record(StoredPitfall, item)
        if found and (item.namespace, item.key) == (_place(found.pitfall.owner), found.pitfall.id):
            yield found


def _place(owner: str) -> tuple[str, ...]:
    return shelf(owner, "pitfalls")


# --- Which pitfalls a task is told of: those of the most alike goals. Pure.

_NOTHING_MEANT: Final[Mapping[str, float]] = {}

_FOR_A_SKILL = 0.1
"""What a skill in common adds to the likeness of goals, and never more than 1."""


def most_alike(
    query: str,
    pitfalls: Iterable[Pitfall],
    *,
    skills: Sequence[str] = (),
    limit: int = 3,
    meant: Mapping[str, float] = _NOTHING_MEANT,
) -> list[Pitfall]:
    """Return the HIGH ones whose goals are alike enough to a goal, the most alike first.

    How alike is enough, the number of tasks that a pitfall was seen in decides. Those in ``meant``
    are near in meaning, each as near as it says, and need share no word (EV-05a). Of equally alike
    ones the surer one comes first, then the one with the smaller id: always the same order.
    """
    high = {each.id: each for each in pitfalls if each.level == "high"}
    more = {id_: _FOR_A_SKILL * bool({*skills} & {*each.skills}) for id_, each in high.items()}
    alike = {
        id_: min(1.0, likeness_to_any(query, each.goals) + more[id_]) for id_, each in high.items()
    }
    fitting = [
        each
        for each in high.values()
        if each.id in meant or alike[each.id] >= needed_likeness(each.tasks)
    ]
    alike = {id_: max(value, meant.get(id_, 0.0)) for id_, value in alike.items()}
    fitting.sort(key=lambda each: (-round(alike[each.id], 2), -round(each.confidence, 3), each.id))
    return fitting[:limit]


# --- An owner's pitfalls in any of LangGraph's stores: observed, found, marked and forgotten.

CANDIDATES: Final = 32
"""Pitfalls that a store which ranks by words is asked for, to choose the most alike goals from."""
MOST_FACTS: Final = 300
"""Tasks of one group of pitfalls that are kept: of more, the newest. Each is compared with each
pitfall of the group, which takes tenths of a second where all goals are different."""
_MOST_READ: Final = 2 * MOST_FACTS
_ROUNDS: Final = 50
"""Times that facts may have changed while they were summed up, which each time another did."""
_LONGEST_QUERY: Final = 1000
_ID: Final = re.compile(r"[0-9a-f]{12}-[0-9a-f]{8}")


@dataclass(frozen=True)
class Pitfalls:
    """The pitfalls of an owner; with ``shared`` also those of others that share theirs, to read.

    What another owner has, and does not share, is answered like what does not exist; only the
    owner's own are ever written (EV-04).
    """

    store: BaseStore
    owner: str
    shared: bool = False

    @property
    def kept(self) -> Shelf[StoredPitfall]:
        """The owner's own, as a store keeps them."""
        return Shelf(self.store, StoredPitfall, _place(self.owner), ("about",))

    def _facts_of(self, group: str) -> Shelf[Evidence]:
        return Shelf(self.store, Evidence, shelf(self.owner, "evidence", group))

    async def get(self, id_: str) -> Pitfall | None:
        """Return a pitfall by its id, with the confidence of when it was last seen."""
        if not _ID.fullmatch(id_):
            return None
        item = await self.store.aget(_place(self.owner), id_)
        found = list(pitfalls_in([item] if item else []))
        if not found and self.shared:
            wanted = {"id": id_, "shared": True}
            items = await self.store.asearch(EVOLUTION_NAMESPACE, filter=wanted, limit=RANKED_ITEMS)
            found = list(pitfalls_in(items))
        return found[0].pitfall if found else None

    async def all(self, limit: int = 1000) -> list[Pitfall]:
        """Return the owner's own pitfalls, at most ``limit``, the one seen last first."""
        found = await self.own(max(limit, RANKED_ITEMS))
        return sorted(found, key=lambda each: (-each.last_at, each.id))[:limit]

    async def own(
        self, most: int, query: str | None = None, wanted: dict[str, Any] | None = None
    ) -> list[Pitfall]:
        """Return own pitfalls of those plain values, those that a query finds before others."""
        place = _place(self.owner)
        items = await self.store.asearch(place, query=query, filter=wanted, limit=most)
        return [each.pitfall for each in pitfalls_in(self.kept.own(items))]

    async def near(self, goal: str) -> list[Pitfall]:
        """Return some own pitfalls, of any level, that may be of tasks alike to one with a goal."""
        query = goal[:_LONGEST_QUERY]
        found = await self.own(self._most, query)
        rank = lambda each: (-likeness_to_any(query, each.goals), each.id)  # noqa: E731
        return await in_thread(lambda: sorted(found, key=rank)[:CANDIDATES])

    @property
    def _most(self) -> int:
        return CANDIDATES if isinstance(self.store, SearchableStore) else RANKED_ITEMS

    async def nearest(
        self, ops: Sequence[SearchOp], results: Sequence[Result], least: float
    ) -> Sequence[SearchItem]:
        """Return what is as near in meaning to the operations' queries; empty without an index.

        ``least`` is a cosine. A store of LangGraph's scores its ``results`` so; ours is asked once
        more (EV-05a).
        """
        store = self.store
        items = [item for each in results for item in found_in(each)]
        if isinstance(store, SearchableStore):
            items = []
            for op in () if store.note else ops:  # with a note it would go by words
                found = await store.afind(
                    op.namespace_prefix,
                    op.query or "",
                    way="meaning",
                    limit=op.limit,
                    filter=op.filter,
                )
                items += [] if found.note else found.items
        scored = [item for item in items if isinstance(item, SearchItem)]
        return [item for item in scored if item.score is not None and item.score >= least]

    def similar_ops(self, query: str, skills: Sequence[str] = ()) -> list[SearchOp]:
        """Return the operations that find a goal's pitfalls: part of a larger batch (EV-05)."""
        asked = "\n".join((query[:_LONGEST_QUERY], *skills))
        own = SearchOp(_place(self.owner), {"grave": True}, self._most, 0, asked)
        wanted = {"grave": True, "shared": True}
        others = SearchOp(EVOLUTION_NAMESPACE, wanted, self._most, 0, asked)
        return [own, others] if self.shared else [own]

    def similar_of(
        self,
        results: Sequence[Result],
        query: str,
        now: float,
        *,
        min_confidence: float,
        limit: int = 3,
        skills: Sequence[str] = (),
        near: Sequence[SearchItem] = (),
    ) -> list[Pitfall]:
        """Return the HIGH pitfalls that fit a goal best, as of ``now``. Pure, and no coroutine.

        ``results`` are what the operations came to, in their order. Where the store does not rank
        it takes time for each pitfall: call it in a thread.
        """
        items = [item for found in results for item in found_in(found)]
        readable = (
            each
            for each in pitfalls_in([*items, *near])
            if each.pitfall.owner == self.owner or (self.shared and each.shared)
        )
        pitfalls = [each.as_of(now, min_confidence) for each in readable]
        meant = {item.key: item.score or 0.0 for item in near}
        return most_alike(query[:_LONGEST_QUERY], pitfalls, skills=skills, limit=limit, meant=meant)

    async def record(self, fact: Evidence, min_confidence: float) -> list[Summary]:
        """Put a fact on record, and sum its group up anew; return what that came to.

        What a task met once it has met, though it was taken up again and went well.
        """
        facts = self._facts_of(fact.group)
        before = await facts.get(fact.key)
        if fact.seen or not (before and before.seen):
            await facts.put(fact.key, fact)
        return await self.sum_up(fact.group, min_confidence)

    async def sum_up(self, group: str, min_confidence: float) -> list[Summary]:
        """Make the pitfalls of a group what its facts say, whoever adds to these meanwhile."""
        facts, found = await self._facts(group), list[Summary]()
        for _ in range(_ROUNDS):
            found = summarise(facts, min_confidence)
            if gone := choose_excess(facts, found, MOST_FACTS):
                await self._facts_of(group).delete(sorted({each.key for each in gone}))
                facts = [each for each in facts if each not in gone]
                found = summarise(facts, min_confidence)
            if changes := await self._changes(group, found):
                await self.store.abatch(changes)
            before, facts = facts, await self._facts(group)
            if facts == before:
                break
        return found

    async def forget(self, id_: str) -> bool:
        """Forget an own pitfall and its evidence; say whether there was one."""
        item = await self.store.aget(_place(self.owner), id_) if _ID.fullmatch(id_) else None
        if item is None:
            return False
        evidence = await self.evidence(id_)
        await self._facts_of(id_.partition("-")[0]).delete(each.key for each in evidence)
        await self.kept.delete([id_])
        return True

    async def evidence(self, id_: str) -> list[Evidence]:
        """Return what tasks say of an own pitfall, the oldest first; nothing for any other id."""
        if not _ID.fullmatch(id_):
            return []
        found = summarise(await self._facts(id_.partition("-")[0]), 0.0)
        return [fact for each in found if each.pitfall.id == id_ for fact in each.facts]

    async def settle_sharing(self) -> int:
        """Mark all own pitfalls as shared, or as not; return how many were changed."""
        own, wanted, changed = self.kept, {"shared": not self.shared}, 0
        while True:
            items = await self.store.asearch(own.place, filter=wanted, limit=PAGE)
            marked = [
                replace(each, shared=self.shared, pitfall=replace(each.pitfall, shared=self.shared))
                for each in pitfalls_in(own.own(items))
            ]
            if not marked:
                return changed
            await self.store.abatch([own.to_put(each.id, each) for each in marked])
            changed += len(marked)

    async def not_seen_since(self, at: float, most: int) -> list[str]:
        """Return the ids of at most so many own pitfalls that were seen last before ``at``."""
        old = {"last_at": {"$lt": at}}
        found = await self.store.asearch(_place(self.owner), filter=old, limit=most)
        return [item.key for item in self.kept.own(found)]

    async def _facts(self, group: str) -> list[Evidence]:
        facts = await self._facts_of(group).all(_MOST_READ)
        return sorted(facts, key=lambda each: (each.at, each.task))

    async def _changes(self, group: str, summaries: list[Summary]) -> list[Op]:
        """Return what makes a group's pitfalls what they are to be; one that is so already stays.

        A failure that any task can meet has hundreds of them, and a task changes one.
        """
        own = self.kept
        items = await self.store.asearch(own.place, filter={"group": group}, limit=_MOST_READ)
        before = {item.key: item.value for item in own.own(items)}
        stored = [stored_pitfall(each, shared=self.shared) for each in summaries]
        wanted = [own.to_put(each.id, each) for each in stored]
        gone = sorted(before.keys() - {each.key for each in wanted})
        changed: list[Op] = [each for each in wanted if each.value != before.get(each.key)]
        return [*changed, *(PutOp(own.place, key, None) for key in gone)]


# --- The pitfall detector: what one task says of pitfalls, put on record (EV-03).


async def detect(experience: Experience, pitfalls: Pitfalls, min_confidence: float) -> None:
    """Put on record what a task met, and what it did not meet.

    What is passing makes no pitfall. Done twice, it changes nothing the second time.
    """
    for setback in experience.setbacks:
        if not setback.passing:
            await pitfalls.record(evidence_of_setback(setback, experience), min_confidence)
    if experience.countable:
        told = [await pitfalls.get(each.id) for each in told_pitfalls(experience)]
        near = await pitfalls.near(goal_of(experience))
        known = {each.id: each for each in (*told, *near) if each and each.owner == pitfalls.owner}
        for fact in not_met(experience, list(known.values())):
            await pitfalls.record(fact, min_confidence)


def not_met(experience: Experience, known: list[Pitfall]) -> Iterator[Evidence]:
    """Yield a fact for each group of pitfalls that a task did not meet.

    See :func:`how_not_met`.
    """
    met = {(each.actor, each.signature) for each in experience.setbacks}
    told = {each.id for each in told_pitfalls(experience)}
    ours = [each for each in known if (each.actor, each.signature) not in met]
    facts: dict[str, Evidence] = {}
    for pitfall in sorted(ours, key=lambda each: each.id):
        if how := how_not_met(experience, pitfall, told):
            fact = evidence_of(experience, how, pitfall, pitfall.id)
            facts.setdefault(fact.group, fact)
    yield from facts.values()


def how_not_met(
    experience: Experience, pitfall: Pitfall, told: Collection[str]
) -> EvidenceKind | None:
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
