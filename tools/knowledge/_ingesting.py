"""Taking documents into a store, and out again: passages, relations, and what belongs to them."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from langgraph.store.base import BaseStore, PutOp

from daruma.tools.knowledge._documents import (
    KNOWLEDGE_NAMESPACE,
    Document,
    Given,
    KnowledgeRefused,
    Skipped,
    absolute,
    collection_namespace,
    collection_of,
    documents_of,
    key_of,
)
from daruma.tools.knowledge._passages import passages
from daruma.tools.knowledge._relations import Relation, names_in, relations_in, same
from daruma.tools.text import mask_keys
from daruma.tools.threads import to_thread

# --- What is put into the store for a document: its passages, its relations, and what belongs to
# it.
#
# Pure. A thing's key is made of what it is: the same document makes the same entries.

MADE: Final = 1
"""Counts how documents are cut and read: one that was taken in otherwise is taken in anew."""


@dataclass(frozen=True)
class Entries:
    """The items of one document, by the kind of thing and its key."""

    source: str
    digest: str
    passages: Mapping[str, dict[str, Any]]
    relations: Mapping[str, dict[str, Any]]
    title: str

    def puts(self, collection: str, known: Mapping[str, Any]) -> Iterator[PutOp]:
        """Yield what brings a collection up to date, where ``known`` is what it has of the source.

        What is there already, with the same key, is put again: its line may be another.
        """
        for kind, items in (("passages", self.passages), ("relations", self.relations)):
            there = collection_namespace(collection, kind)
            for key in known.get(kind, ()):
                if key not in items:
                    yield PutOp(there, key, None)
            for key, value in items.items():
                yield PutOp(there, key, value, index=INDEXED[kind])
        told = {
            "kind": "source",
            "source": self.source,
            "title": self.title,
            "digest": self.digest,
            "passages": list(self.passages),
            "relations": list(self.relations),
        }
        yield PutOp(
            collection_namespace(collection, "sources"), key_of(self.source), told, index=False
        )


INDEXED: Final[Mapping[str, list[str]]] = {
    "passages": ["title", "headings[*]", "text"],
    "relations": ["subject", "relation", "object"],
}


def digest_of(document: Document, stated: Iterable[Relation]) -> str:
    """Return what tells a document from what it was before."""
    told = [(r.subject, r.relation, r.object, r.sentence) for r in stated]
    return key_of(MADE, document.text, document.title, document.kind, told)


def entries_of(document: Document, stated: Iterable[Relation] = ()) -> Entries:
    """Return the items of a document, with relations that are ``stated`` beside it; keys masked."""
    document, stated, times = mask_keys(document), mask_keys(list(stated)), Counter[str]()
    cut, related = dict[str, dict[str, Any]](), dict[str, dict[str, Any]]()
    for passage in passages(document):
        times[passage.text] += 1
        key = key_of(document.source, passage.headings, passage.text, times[passage.text])
        cut[key] = {
            "kind": "passage",
            "text": passage.text,
            "title": document.title,
            "headings": list(passage.headings),
            "source": document.source,
            "line": passage.line,
            "names": [same(name) for name in names_in(passage.text)],
        }
        for relation in relations_in(passage, document.title):
            related |= _entry(document.source, passage.line, relation)
    for relation in stated:
        related |= _entry(document.source, 0, relation)
    return Entries(document.source, digest_of(document, stated), cut, related, document.title)


def _entry(source: str, line: int, relation: Relation) -> dict[str, dict[str, Any]]:
    ends = same(relation.subject), same(relation.object)
    value = {
        "kind": "relation",
        "subject": relation.subject,
        "relation": relation.relation,
        "object": relation.object,
        "subject_is": ends[0],
        "object_is": ends[1],
        "sentence": relation.sentence,
        "source": source,
        "line": line,
    }
    return {key_of(source, relation.relation, *ends): value}


# --- Taking documents into a store, and out again.

T = TypeVar("T")

DEFAULT: Final = "default"
_AT_ONCE: Final = 32
"""Documents that are read before they are put, in one batch: all of a document, or nothing."""
_PAGE: Final = 500


@dataclass(frozen=True)
class Source:
    """A document that was taken in."""

    collection: str
    source: str
    title: str
    passages: int
    relations: int


@dataclass(frozen=True)
class Ingested:
    """What came of taking documents in: how many were new or changed, or known as they are."""

    changed: int = 0
    unchanged: int = 0
    passages: int = 0
    skipped: tuple[Skipped, ...] = ()


async def aingest(
    store: BaseStore,
    documents: Given | Iterable[Given],
    collection: str = DEFAULT,
    *,
    relations: Iterable[Relation] = (),
) -> Ingested:
    """Take documents into a collection: files and folders (paths), texts, LangChain's documents.

    One that is known and has not changed costs a look; of one that has changed the passages are
    replaced. What a folder holds no more stays until :func:`forget`. ``relations`` are stated
    beside those that are read from the texts. Files are Markdown, text, reStructuredText, Python
    and HTML, of 4 MiB at most.

    Raises :class:`~daruma.tools.knowledge.KnowledgeRefused`.
    """
    collection_namespace(collection, "sources")
    stated, total = tuple(relations), Ingested()
    coming = documents_of(documents)
    while batch := await to_thread(lambda: list(islice(coming, _AT_ONCE))):
        total = _sum(total, await _taken_in(store, batch, collection))
    if stated:
        beside = Document(f"stated:{key_of(stated)}", "stated relations", "", ".txt")
        total = _sum(total, await _taken_in(store, [beside], collection, stated))
    return total


def ingest(
    store: BaseStore,
    documents: Given | Iterable[Given],
    collection: str = DEFAULT,
    *,
    relations: Iterable[Relation] = (),
) -> Ingested:
    """Do the same where no event loop runs; see :func:`aingest`."""
    return _run(aingest(store, documents, collection, relations=relations))


async def aforget(store: BaseStore, source: str | Path, collection: str | None = None) -> int:
    """Take a document out, or all of a folder; return how many. None means all collections.

    Raises :class:`~daruma.tools.knowledge.KnowledgeRefused` for a source without a name.
    """
    if not str(source).strip():  # an unset variable of a shell would mean every file there is
        raise KnowledgeRefused("name the document, or the folder, that is to be taken out")
    name = source if isinstance(source, str) else str(absolute(source))
    gone = 0
    for item in await _sources(store, collection):
        own = str(item.value["source"])
        if own == name or own.startswith((f"{name.rstrip('/')}/", f"{name}#page=")):
            known, where = item.value, collection_of(item.namespace)
            kinds = ("passages", "relations")
            names = [
                (collection_namespace(where, kind), key) for kind in kinds for key in known[kind]
            ]
            names.append((item.namespace, item.key))
            await store.abatch([PutOp(namespace, key, None) for namespace, key in names])
            gone += 1
    return gone


def forget(store: BaseStore, source: str | Path, collection: str | None = None) -> int:
    """Do the same where no event loop runs; see :func:`aforget`."""
    return _run(aforget(store, source, collection))


async def asources(store: BaseStore, collection: str | None = None) -> list[Source]:
    """Return the documents of a collection, or of all, by their names."""
    found = [
        Source(
            collection_of(item.namespace),
            item.value["source"],
            item.value["title"],
            len(item.value["passages"]),
            len(item.value["relations"]),
        )
        for item in await _sources(store, collection)
    ]
    return sorted(found, key=lambda each: (each.collection, each.source))


def sources(store: BaseStore, collection: str | None = None) -> list[Source]:
    """Do the same where no event loop runs; see :func:`asources`."""
    return _run(asources(store, collection))


async def _sources(store: BaseStore, collection: str | None) -> list[Any]:
    prefix = collection_namespace(collection, "sources") if collection else KNOWLEDGE_NAMESPACE
    found: list[Any] = []
    while True:
        page = await store.asearch(
            prefix, filter={"kind": "source"}, limit=_PAGE, offset=len(found)
        )
        found += page
        if len(page) < _PAGE:
            return found


async def _taken_in(
    store: BaseStore,
    batch: Sequence[Document | Skipped],
    collection: str,
    stated: Sequence[Relation] = (),
) -> Ingested:
    documents = {each.source: each for each in batch if isinstance(each, Document)}
    known = await _known(store, collection, documents)
    changed = [
        document
        for document in documents.values()
        if known.get(document.source, {}).get("digest") != digest_of(document, stated)
    ]
    made = await to_thread(lambda: [entries_of(each, stated) for each in changed])
    await store.abatch(list(_puts(made, collection, known)))
    return Ingested(
        len(changed),
        len(documents) - len(changed),
        sum(len(each.passages) for each in made),
        tuple(each for each in batch if isinstance(each, Skipped)),
    )


async def _known(store: BaseStore, collection: str, sources: Iterable[str]) -> dict[str, Any]:
    there = collection_namespace(collection, "sources")
    items = [await store.aget(there, key_of(source)) for source in sources]
    return {item.value["source"]: item.value for item in items if item}


def _puts(made: Iterable[Entries], collection: str, known: dict[str, Any]) -> Iterator[PutOp]:
    for each in made:
        yield from each.puts(collection, known.get(each.source, {}))


def _sum(one: Ingested, other: Ingested) -> Ingested:
    return Ingested(
        one.changed + other.changed,
        one.unchanged + other.unchanged,
        one.passages + other.passages,
        one.skipped + other.skipped,
    )


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError("an event loop runs here: await the function of this name with an a before")
