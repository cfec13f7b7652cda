"""The tool that tells what a thing is related to, as the documents say."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict, Field, model_validator

from daruma.tools.finding import find
from daruma.tools.knowledge.named import same
from daruma.tools.knowledge.places import ROOT
from daruma.tools.knowledge.search_tools import AS_DATA
from daruma.tools.tool import Surroundings

_EACH: Final = 20
"""Relations that are followed from one thing, and passages that are looked at for its company."""
_MOST: Final = 40
"""Relations of one answer."""
_WIDEST: Final = 8
"""Things that are gone on from at each depth."""

_BY_RULE: Final = (
    "[The relations were read from the texts by rule, each from the sentence shown: what a text "
    "says in other words is not among them.]"
)


class GraphContextArgs(BaseModel):
    """Show what a thing (a name, a module, a person, a term) is related to in the documents.

    Give its name as `entity`, or a `query` to find the thing by. Shows relations such as "depends
    on", "is part of" or "links to", with the sentence and its source, and what it is named beside.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    entity: str | None = Field(default=None, max_length=200, description="Name of the thing.")
    query: str | None = Field(default=None, max_length=2000, description="Words to find it by.")
    depth: int = Field(default=1, ge=1, le=3, description="How many relations away.")

    @model_validator(mode="after")
    def _one_of_them(self) -> "GraphContextArgs":
        if not (self.entity or self.query):
            raise ValueError("give an entity or a query")
        return self


async def graph_context(args: GraphContextArgs, at: Surroundings) -> str:
    """Tell of a thing's relations."""
    graph = _Graph(at.needs_store())
    starts = await graph.starts(args.entity, args.query)
    relations = await graph.around(starts, args.depth)
    company = await graph.company(starts)
    if not relations and not company:
        return await graph.nothing(args.entity or args.query or "")
    lines = [_line(each) for each in relations[:_MOST]]
    if len(relations) > _MOST:
        lines.append(f"[{len(relations) - _MOST} more left out]")
    if company:
        told = ", ".join(f"{name} ({count})" for name, count in company)
        lines.append(f"Named in the same passages, with how many: {told}")
    return "\n".join([AS_DATA, *lines, _BY_RULE])


def _line(relation: Mapping[str, Any]) -> str:
    said = f': "{relation["sentence"]}"' if relation["sentence"] else ""
    where = f"{relation['source']}:{relation['line']}"
    ends = relation["subject"], relation["relation"], relation["object"]
    return f"- {' — '.join(ends)}{said[:400]} [{where}]"


@dataclass
class _Graph:
    """The relations in a store, of all collections; those seen are told once."""

    store: BaseStore
    _seen: dict[tuple[Any, ...], Mapping[str, Any]] = field(default_factory=dict)

    async def starts(self, entity: str | None, query: str | None) -> list[str]:
        """Return the things that are meant: the one named, else the ones that are found."""
        if entity and await self._of(same(entity)):
            return [same(entity)]
        found = await self._found(entity or query or "", 3)
        wanted = set(same(entity or query or "").split())
        ends = [value[end] for value in found for end in ("subject_is", "object_is")]
        return list(dict.fromkeys(end for end in ends if wanted & set(end.split())))[:3] or (
            [same(entity)] if entity else []
        )

    async def around(self, starts: Sequence[str], depth: int) -> list[Mapping[str, Any]]:
        """Return the relations that are at most so many steps away, the nearest first."""
        self._seen.clear()
        frontier, known = list(starts), set(starts)
        for _ in range(depth):
            reached: list[str] = []
            for name in frontier[:_WIDEST]:
                for each in await self._of(name):
                    ends = each["subject_is"], each["relation"], each["object_is"]
                    self._seen.setdefault((*ends, each["sentence"]), each)
                    reached += [end for end in (ends[0], ends[2]) if end not in known]
            frontier = list(dict.fromkeys(reached))
            known |= set(frontier)
        return list(self._seen.values())

    async def company(self, starts: Sequence[str]) -> list[tuple[str, int]]:
        """Return what is named in the same passages, what is so most often first."""
        counts = Counter[str]()
        for name in starts:
            found = await find(
                self.store, ROOT, name, way="words", limit=_EACH, filter={"kind": "passage"}
            )
            for item in found.items:
                names = item.value["names"]
                if name in names:
                    counts.update(set(names) - set(starts))
        return counts.most_common(10)

    async def nothing(self, asked: str) -> str:
        """Say that nothing is known, and what there is that sounds alike."""
        near = await self._found(asked, 5)
        names = list(
            dict.fromkeys(name for each in near for name in (each["subject"], each["object"]))
        )
        alike = f"; there are: {', '.join(names[:10])}" if names else ""
        return f"nothing is known of {asked[:200]!r} by that name{alike}"

    async def _of(self, name: str) -> list[Mapping[str, Any]]:
        """Return the relations that a thing stands in, at either end."""
        found = []
        for end in ("subject_is", "object_is"):
            wanted = {"kind": "relation", end: name}
            found += await self.store.asearch(ROOT, filter=wanted, limit=_EACH)
        return [item.value for item in found]

    async def _found(self, words: str, limit: int) -> list[Mapping[str, Any]]:
        found = await find(
            self.store, ROOT, words, way="words", limit=limit, filter={"kind": "relation"}
        )
        return [item.value for item in found.items]
