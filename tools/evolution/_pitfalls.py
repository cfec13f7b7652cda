"""An owner's pitfalls: observed, found by a goal, marked, forgotten (EV-03, EV-04)."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langgraph.store.base import BaseStore, Item, Op, PutOp, Result, SearchItem, SearchOp

from daruma.state.lessons import Experience, Pitfall
from daruma.state.record import record
from daruma.tools.evolution._evidence import (
    Evidence,
    EvidenceKind,
    Summary,
    choose_excess,
    confidence_at,
    evidence_of,
    evidence_of_setback,
    goal_of,
    level_of,
    summarise,
    told_pitfalls,
)
from daruma.tools.evolution._records import (
    EVOLUTION_NAMESPACE,
    PAGE,
    Shelf,
    found_in,
    read_record,
    shelf,
)
from daruma.tools.text import (
    RANKED_ITEMS,
    SearchableStore,
    ask_for_the_same,
    likeness_to_any,
    needed_likeness,
)
from daruma.tools.threads import in_thread

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
