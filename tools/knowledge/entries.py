"""What is put into the store for a document: its passages, its relations, and what belongs to it.

Pure. A thing's key is made of what it is: the same document makes the same entries.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langgraph.store.base import PutOp

from daruma.tools.knowledge.documents import Document
from daruma.tools.knowledge.named import names_in, same
from daruma.tools.knowledge.passages import passages
from daruma.tools.knowledge.places import key_of, place
from daruma.tools.knowledge.relations import Relation, relations_in

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
            there = place(collection, kind)
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
        yield PutOp(place(collection, "sources"), key_of(self.source), told, index=False)


INDEXED: Final[Mapping[str, list[str]]] = {
    "passages": ["title", "headings[*]", "text"],
    "relations": ["subject", "relation", "object"],
}


def digest_of(document: Document, stated: Iterable[Relation]) -> str:
    """Return what tells a document from what it was before."""
    told = [(r.subject, r.relation, r.object, r.sentence) for r in stated]
    return key_of(MADE, document.text, document.title, document.kind, told)


def entries_of(document: Document, stated: Iterable[Relation] = ()) -> Entries:
    """Return the items of a document, with relations that are ``stated`` beside it."""
    stated, times = list(stated), Counter[str]()
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
