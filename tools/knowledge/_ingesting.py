"""Taking documents into a store, and out again: passages, names, and how these are related."""

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from langgraph.store.base import BaseStore, PutOp

from daruma.tools.knowledge._documents import (
    KNOWLEDGE_NAMESPACE,
    Document,
    Given,
    KnowledgeRefused,
    Passage,
    Skipped,
    absolute,
    collection_namespace,
    collection_of,
    documents_of,
    key_of,
    passages,
)
from daruma.tools.text import mask_keys
from daruma.tools.threads import to_thread

# --- The names in a text: links, code, and words with capitals. By rule, and pure.

MOST_NAMES: Final = 20
"""Names that are kept of one passage."""

_WIKI_LINK: Final = re.compile(r"\[\[([^\[\]|#]{1,80})(?:[|#][^\[\]]*)?\]\]")
_CODE: Final = re.compile(r"`([^`\n]{2,60})`")
_IDENTIFIER: Final = re.compile(
    r"\b(?:[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]\w*_\w+|[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+)\b"
)
_CAPITALS: Final = re.compile(
    r"(?<![\w.])[A-ZÄÖÜÉ][\w'’-]*(?:[ \t]+(?:of |the |de |von |der )?[A-ZÄÖÜÉ][\w'’-]*){0,3}"
)
_BEGINS: Final = re.compile(r"(?:^|[.!?:]\s+|\n\s*(?:[-*>#|]+|\d+[.)])?\s*)$")
_FILLING: Final = """
    a an and as at but by each every for from he her here his how however i if in is it its many
    more most no not of on one only or our she so some such that the their then there these they
    this those to we what when where which while who why with you your
"""
_NO_NAMES: Final = frozenset(_FILLING.split())


def names_in(text: str) -> list[str]:
    """Return the names in a text, each once, in their order.

    A single word with a capital at the beginning of a sentence is none.

    >>> names_in("The Lease Keeper uses `take_lease` of PostgresSaver in Berlin.")
    ['Lease Keeper', 'take_lease', 'PostgresSaver', 'Berlin']
    """
    places: dict[str, int] = {}
    for place, name in _found(text):
        clean = " ".join(name.split()).strip(" .,:;'’-")
        if len(clean) > 1 and clean.casefold() not in _NO_NAMES:
            places[clean] = min(place, places.get(clean, place))
    return sorted(places, key=lambda name: places[name])[:MOST_NAMES]


def same(name: str) -> str:
    """Return what two spellings of one name have in common.

    >>> same("The Postgres-Saver") == same("postgres saver")
    True
    """
    words = re.sub(r"[\W_]+", " ", name).casefold().split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words)


def _found(text: str) -> Iterator[tuple[int, str]]:
    for pattern in (_WIKI_LINK, _CODE):
        for match in pattern.finditer(text):
            yield match.start(), match[1].removesuffix("()")
    bare = _CODE.sub(lambda m: " " * len(m[0]), _WIKI_LINK.sub(lambda m: " " * len(m[0]), text))
    for match in _IDENTIFIER.finditer(bare):
        yield match.start(), match[0]
    for match in _CAPITALS.finditer(bare):
        place, (first, _, rest) = match.start(), match[0].partition(" ")
        if first.casefold() in _NO_NAMES:  # "The Lease" names a lease
            yield place + len(first) + 1, rest
        elif rest or not _BEGINS.search(bare[:place]):
            yield place, match[0]


# --- How things are related: as headings and links say, and as an application states. Pure.
#
# No sentence is read for it: what a text says of two things is found by a search.

MOST_RELATIONS: Final = 40
"""Relations that are kept of one passage."""

_LINK: Final = re.compile(r"\[([^\[\]]{1,80})\]\((?!https?:|mailto:|#)([^()\s]{1,200})\)")


@dataclass(frozen=True)
class Relation:
    """That ``subject`` stands in a relation to ``object``, and the sentence that says so."""

    subject: str
    relation: str
    object: str
    sentence: str = ""


def relations_in(passage: Passage, title: str) -> list[Relation]:
    """Return what a passage is part of, by its headings, and links to; each relation once."""
    above = (title, *passage.headings)
    under = f"heading: {' > '.join(above)}"[:200]
    found = [Relation(inner, "is part of", outer, under) for outer, inner in pairwise(above)]
    links = [(match[1], f"link to {match[2]}") for match in _LINK.finditer(passage.text)]
    links += [(match[1].strip(), "link") for match in _WIKI_LINK.finditer(passage.text)]
    found += [Relation(above[-1], "links to", to, said) for to, said in links]
    kept = {(same(r.subject), r.relation, same(r.object)): r for r in reversed(found)}
    told = [r for (one, _, other), r in kept.items() if one and other and one != other]
    return told[::-1][:MOST_RELATIONS]


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
    stated, done = tuple(relations), list[Ingested]()
    coming = documents_of(documents)
    while batch := await to_thread(lambda: list(islice(coming, _AT_ONCE))):
        done.append(await _taken_in(store, batch, collection))
    if stated:
        beside = Document(f"stated:{key_of(stated)}", "stated relations", "", ".txt")
        done.append(await _taken_in(store, [beside], collection, stated))
    return Ingested(
        sum(each.changed for each in done),
        sum(each.unchanged for each in done),
        sum(each.passages for each in done),
        tuple(skipped for each in done for skipped in each.skipped),
    )


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
    there = collection_namespace(collection, "sources")
    items = [await store.aget(there, key_of(source)) for source in documents]
    known = {item.value["source"]: item.value for item in items if item}
    changed = [
        document
        for source, document in documents.items()
        if known.get(source, {}).get("digest") != digest_of(document, stated)
    ]
    made = await to_thread(lambda: [entries_of(each, stated) for each in changed])
    puts = [put for each in made for put in each.puts(collection, known.get(each.source, {}))]
    await store.abatch(puts)
    return Ingested(
        len(changed),
        len(documents) - len(changed),
        sum(len(each.passages) for each in made),
        tuple(each for each in batch if isinstance(each, Skipped)),
    )


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError("an event loop runs here: await the function of this name with an a before")
