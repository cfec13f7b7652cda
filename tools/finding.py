"""Finding items of a store by a query: as well as the store can, and by words where it can not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, runtime_checkable

from langgraph.store.base import BaseStore, SearchItem

from daruma.tools.fusion import BY_CHANCE, fused
from daruma.tools.lexical import ranked
from daruma.tools.value_texts import texts_in

Way = Literal["words", "meaning", "both"]

READ: Final = 2000
"""Items, the first that a store gives, that are ranked here where the store does not rank."""
_WIDE: Final = 50
"""Items of each ranking that are brought together."""

WORDS_ONLY: Final = "by words alone: the store has no embedding model"


@dataclass(frozen=True)
class Found:
    """The items found, the best first; ``note`` says what could not be done, in one line."""

    items: tuple[SearchItem, ...] = ()
    note: str = ""


@runtime_checkable
class Finding(Protocol):
    """A store that finds in several ways, and says which of them it went."""

    async def afind(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        way: Way = "both",
        limit: int = 10,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
    ) -> Found:
        """Return the items beneath a namespace that a query finds."""


async def find(
    store: BaseStore,
    namespace_prefix: tuple[str, ...],
    query: str,
    *,
    way: Way = "both",
    limit: int = 10,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
) -> Found:
    """Find in any store. One that ranks by meaning has that ranking fused with one by words."""
    if isinstance(store, Finding):
        return await store.afind(namespace_prefix, query, way=way, limit=limit, filter=filter)
    conditions = dict(filter) if filter else None
    items = await store.asearch(namespace_prefix, filter=conditions, limit=READ)
    by_meaning = []
    if way != "words":
        given = await store.asearch(
            namespace_prefix, query=query, filter=conditions, limit=max(limit, _WIDE)
        )
        by_meaning = [item for item in given if item.score is not None]
    note = "" if way == "words" or by_meaning or not items else WORDS_ONLY
    if not by_meaning:
        return Found(tuple(_by_words(query, items)[:limit]), note)
    by_words = _by_words(query, items, BY_CHANCE) if way == "both" else []
    return Found(tuple(_together([by_words, by_meaning])[:limit]), note)


def _by_words(query: str, items: Sequence[SearchItem], least: float = 0.0) -> list[SearchItem]:
    texts = ["\n".join(texts_in(item.value)) for item in items]
    return [_scored(items[place], score) for place, score in ranked(query, texts, least)]


def _together(rankings: Sequence[Sequence[SearchItem]]) -> list[SearchItem]:
    items = {(item.namespace, item.key): item for ranking in rankings for item in ranking}
    names = [[(item.namespace, item.key) for item in ranking] for ranking in rankings]
    return [_scored(items[name], score) for name, score in fused(names)]


def _scored(item: SearchItem, score: float) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)
