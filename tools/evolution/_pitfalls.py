"""An owner's pitfalls: observed, found by a goal, marked, forgotten (EV-03, EV-04)."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langgraph.store.base import BaseStore, Item, Op, PutOp, Result, SearchItem, SearchOp
from pydantic import TypeAdapter, ValidationError

from daruma.state.lessons import Experience, Pitfall
from daruma.tools.evolution._evidence import (
    EVIDENCE,
    Evidence,
    EvidenceKind,
    Summary,
    confidence_at,
    evidence_in,
    goal_of,
    level_of,
    seen_in,
    summed_up,
    surplus,
    told_of,
)
from daruma.tools.evolution._shelf import EVOLUTION_NAMESPACE, shelf
from daruma.tools.text import (
    RANKED_ITEMS,
    SearchableStore,
    ask_for_the_same,
    likeness_to_any,
    needed_likeness,
)
from daruma.tools.threads import in_thread

# --- A pitfall as an item of a store, and back. Pure.

PITFALL: TypeAdapter[Pitfall] = TypeAdapter(Pitfall)

FOUND_BY: Final = ["about"]
"""What a pitfall is searched by: the goals and skills of its tasks, and not its own text, whose
words any goal may have."""

_LONGEST_ABOUT: Final = 2000


@dataclass(frozen=True)
class Kept:
    """A pitfall as it was found. ``grave`` says that it is high wherever it is sure enough."""

    pitfall: Pitfall
    grave: bool


def put_of(summary: Summary, *, shared: bool) -> PutOp:
    """Return the operation that keeps a pitfall, with plain values that filters ask for."""
    pitfall = replace(summary.pitfall, shared=shared)
    return PutOp(shelf(pitfall.owner, "pitfalls"), pitfall.id, _value(pitfall, summary), FOUND_BY)


def _value(pitfall: Pitfall, summary: Summary) -> dict[str, Any]:
    return {
        "about": "\n".join((*pitfall.goals, *pitfall.skills))[:_LONGEST_ABOUT],
        "id": pitfall.id,
        "group": pitfall.id.partition("-")[0],
        "owner": pitfall.owner,
        "grave": summary.grave,
        "again": pitfall.tasks > 1,
        "shared": pitfall.shared,
        "last_at": pitfall.last_at,
        "pitfall": PITFALL.dump_python(pitfall, mode="json"),
    }


def marked(item: Item, *, shared: bool) -> PutOp:
    """Return the operation that marks an item as shared or not, and leaves it as it is else."""
    inner = item.value.get("pitfall")
    whole = {**inner, "shared": shared} if isinstance(inner, dict) else inner
    value = {**item.value, "shared": shared, "pitfall": whole}
    return PutOp(item.namespace, item.key, value, FOUND_BY)


def kept_in(items: Iterable[Item]) -> list[Kept]:
    """Return the pitfalls that items hold; what is none, or lies where it does not belong, is not.

    Whose it says it is has to be whose namespace it lies in, and its id its key.
    """
    found = (_kept(item) for item in items)
    return [each for each in found if each]


def _kept(item: Item) -> Kept | None:
    try:
        pitfall = PITFALL.validate_python(item.value.get("pitfall"))
    except ValidationError:
        return None
    shared = item.value.get("shared") is True
    ours = item.namespace == shelf(pitfall.owner, "pitfalls") and item.key == pitfall.id
    found = replace(pitfall, shared=shared)
    return Kept(found, item.value.get("grave") is True) if ours else None


# --- Which pitfalls a task is told of: those of the most alike goals. Pure.

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
    fitting = [each for each in high.values() if alike[each.id] >= needed_likeness(each.tasks)]
    fitting.sort(key=lambda each: (-round(alike[each.id], 2), -round(each.confidence, 3), each.id))
    return fitting[:limit]


def _alike(query: str, skills: Sequence[str], pitfall: Pitfall) -> float:
    more = _FOR_A_SKILL if set(skills) & set(pitfall.skills) else 0.0
    return min(1.0, likeness_to_any(query, pitfall.goals) + more)


# --- Reading an owner's pitfalls in any of LangGraph's stores: by id, all, and by a goal.

CANDIDATES: Final = 32
"""Pitfalls that a store which ranks by words is asked for, to choose the most alike goals from."""
_LONGEST_QUERY: Final = 1000
_ID: Final = re.compile(r"[0-9a-f]{12}-[0-9a-f]{8}")


@dataclass(frozen=True)
class PitfallLookup:
    """The pitfalls of an owner; with ``shared`` also those of others that share theirs, to read.

    What another owner has, and does not share, is answered like what does not exist.
    """

    store: BaseStore
    owner: str
    shared: bool = False

    async def get(self, id_: str) -> Pitfall | None:
        """Return a pitfall by its id, with the confidence of when it was last seen."""
        if not is_id(id_):
            return None
        item = await self.store.aget(self.place, id_)
        found = kept_in([item] if item else [])
        if not found and self.shared:
            wanted = {"id": id_, "shared": True}
            items = await self.store.asearch(EVOLUTION_NAMESPACE, filter=wanted, limit=RANKED_ITEMS)
            found = list(self._readable(items))
        return found[0].pitfall if found else None

    async def all(self, limit: int = 1000) -> list[Pitfall]:
        """Return the owner's own pitfalls, at most ``limit``, the one seen last first."""
        items = await self.store.asearch(self.place, limit=max(limit, RANKED_ITEMS))
        found = [each.pitfall for each in kept_in(self.ours(items))]
        return sorted(found, key=lambda each: (-each.last_at, each.id))[:limit]

    async def similar(
        self,
        query: str,
        now: float,
        *,
        min_confidence: float,
        limit: int = 3,
        skills: Sequence[str] = (),
    ) -> list[Pitfall]:
        """Return the HIGH pitfalls that fit a goal best, as of ``now``: one call of the store."""
        results = await self.store.abatch(self.similar_ops(query, skills))
        return await in_thread(
            self.similar_of,
            results,
            query,
            now,
            min_confidence=min_confidence,
            limit=limit,
            skills=skills,
        )

    async def near(self, goal: str) -> list[Pitfall]:
        """Return some own pitfalls, of any level, that may be of tasks alike to one with a goal."""
        most = CANDIDATES if isinstance(self.store, SearchableStore) else RANKED_ITEMS
        query = goal[:_LONGEST_QUERY]
        items = await self.store.asearch(self.place, query=query, limit=most)
        found = [each.pitfall for each in kept_in(self.ours(items))]

        def rank() -> list[Pitfall]:
            order = sorted(found, key=lambda each: (-likeness_to_any(query, each.goals), each.id))
            return order[:CANDIDATES]

        return await in_thread(rank)

    def similar_ops(self, query: str, skills: Sequence[str] = ()) -> list[Op]:
        """Return the operations of :meth:`similar`: they may be part of a larger batch."""
        asked = "\n".join((query[:_LONGEST_QUERY], *skills))
        most = CANDIDATES if isinstance(self.store, SearchableStore) else RANKED_ITEMS
        own = SearchOp(self.place, {"grave": True}, most, 0, asked)
        others = SearchOp(EVOLUTION_NAMESPACE, {"grave": True, "shared": True}, most, 0, asked)
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
    ) -> list[Pitfall]:
        """Return the same of what the operations came to, in their order. Pure, and no coroutine.

        Where the store does not rank it takes time for each pitfall: call it in a thread.
        """
        items = [item for found in results if isinstance(found, list) for item in found]
        readable = self._readable(each for each in items if isinstance(each, SearchItem))
        pitfalls = [as_of(each, now, min_confidence) for each in readable]
        return most_alike(query[:_LONGEST_QUERY], pitfalls, skills=skills, limit=limit)

    @property
    def place(self) -> tuple[str, ...]:
        """The namespace of the owner's pitfalls."""
        return shelf(self.owner, "pitfalls")

    def ours(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items that are the owner's pitfalls, of those that a search gave."""
        # A store may take a namespace for the beginning of others.
        return (item for item in items if item.namespace == self.place)

    def _readable(self, items: Iterable[SearchItem]) -> Iterator[Kept]:
        for item, kept in ((item, kept_in([item])) for item in items):
            ours = item.namespace == self.place
            if kept and (ours or (self.shared and kept[0].pitfall.shared)):
                yield kept[0]


def is_id(text: str) -> bool:
    """Whether a text can be the id of a pitfall: the name of its group, and of its first task."""
    return _ID.fullmatch(text) is not None


# --- An owner's pitfalls in any of LangGraph's stores: observed, read, marked and forgotten.

MOST_FACTS: Final = 300
"""Tasks of one group of pitfalls that are kept: of more, the newest. Each is compared with each
pitfall of the group, which takes tenths of a second where all goals are different."""
_MOST_READ: Final = 2 * MOST_FACTS
_ROUNDS: Final = 50
"""Times that facts may have changed while they were summed up, which each time another did."""
_MOST_MARKED: Final = 500


class Pitfalls(PitfallLookup):
    """The pitfalls of an owner, to read and to write; only the owner's own are ever written."""

    async def record(self, fact: Evidence, min_confidence: float) -> list[Summary]:
        """Put a fact on record, and sum its group up anew; return what that came to.

        What a task met once it has met, though it was taken up again and went well.
        """
        place, value = self._facts_place(fact.group), EVIDENCE.dump_python(fact, mode="json")
        before = await self.store.aget(place, fact.key)
        met = any(each.seen for each in evidence_in([before] if before else [], place))
        if fact.seen or not met:
            await self.store.aput(place, fact.key, value, index=False)
        return await self.sum_up(fact.group, min_confidence)

    async def sum_up(self, group: str, min_confidence: float) -> list[Summary]:
        """Make the pitfalls of a group what its facts say, whoever adds to these meanwhile."""
        facts, found = await self._facts(group), list[Summary]()
        for _ in range(_ROUNDS):
            found = summed_up(facts, min_confidence)
            if gone := surplus(facts, found, MOST_FACTS):
                place, keys = self._facts_place(group), {each.key for each in gone}
                await self.store.abatch([PutOp(place, key, None) for key in sorted(keys)])
                facts = [each for each in facts if each.key not in keys]
                found = summed_up(facts, min_confidence)
            if changes := await self._changes(group, found):
                await self.store.abatch(changes)
            before, facts = facts, await self._facts(group)
            if facts == before:
                break
        return found

    async def forget(self, id_: str) -> bool:
        """Forget an own pitfall and its evidence; say whether there was one."""
        item = await self.store.aget(self.place, id_) if is_id(id_) else None
        if item is None or not list(self.ours([item])):
            return False
        group = id_.partition("-")[0]
        gone = [(self._facts_place(group), each.key) for each in await self.evidence(id_)]
        await self.store.abatch([PutOp(*name, None) for name in [*gone, (self.place, id_)]])
        return True

    async def evidence(self, id_: str) -> list[Evidence]:
        """Return what tasks say of an own pitfall, the oldest first; nothing for any other id."""
        if not is_id(id_):
            return []
        found = summed_up(await self._facts(id_.partition("-")[0]), 0.0)
        return [fact for each in found if each.pitfall.id == id_ for fact in each.facts]

    async def settle_sharing(self) -> int:
        """Mark all own pitfalls as shared, or as not; return how many were changed."""
        changed, wanted = 0, {"shared": not self.shared}
        while True:
            items = await self.store.asearch(self.place, filter=wanted, limit=_MOST_MARKED)
            ours = list(self.ours(items))
            if not ours:
                return changed
            await self.store.abatch([marked(item, shared=self.shared) for item in ours])
            changed += len(ours)

    async def not_seen_since(self, at: float, most: int) -> list[str]:
        """Return the ids of at most so many own pitfalls that were seen last before ``at``."""
        old = {"last_at": {"$lt": at}}
        found = await self.store.asearch(self.place, filter=old, limit=most)
        return [item.key for item in self.ours(found)]

    def _facts_place(self, group: str) -> tuple[str, ...]:
        return shelf(self.owner, "evidence", group)

    async def _facts(self, group: str) -> list[Evidence]:
        place = self._facts_place(group)
        return evidence_in(await self.store.asearch(place, limit=_MOST_READ), place)

    async def _changes(self, group: str, summaries: list[Summary]) -> list[Op]:
        """Return what makes a group's pitfalls what they are to be; one that is so already stays.

        A failure that any task can meet has hundreds of them, and a task changes one.
        """
        items = await self.store.asearch(self.place, filter={"group": group}, limit=_MOST_READ)
        before = {item.key: item.value for item in self.ours(items)}
        wanted = [put_of(each, shared=self.shared) for each in summaries]
        gone = before.keys() - {each.key for each in wanted}
        changed: list[Op] = [each for each in wanted if each.value != before.get(each.key)]
        return [*changed, *(PutOp(self.place, key, None) for key in sorted(gone))]


# --- The pitfall detector: what one task says of pitfalls, put on record (EV-03).


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


async def _known(experience: Experience, pitfalls: Pitfalls) -> list[Pitfall]:
    """Return the owner's own pitfalls that a task was told of, or that its goal may be alike to."""
    told = [await pitfalls.get(each.id) for each in told_of(experience)]
    near = await pitfalls.near(goal_of(experience))
    found = [each for each in (*told, *near) if each and each.owner == pitfalls.owner]
    return list({each.id: each for each in found}.values())


def _fact(experience: Experience, pitfall: Pitfall, how: EvidenceKind) -> Evidence:
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
