"""Knowledge: documents taken into a store, and found in it by words, by meaning, by relations."""

from daruma.tools.knowledge.documents import Document
from daruma.tools.knowledge.files import Skipped
from daruma.tools.knowledge.ingesting import (
    Ingested,
    Source,
    aforget,
    aingest,
    asources,
    forget,
    ingest,
    sources,
)
from daruma.tools.knowledge.places import KnowledgeRefused
from daruma.tools.knowledge.relations import Relation
from daruma.tools.knowledge.web_search import web_search

__all__ = [
    "Document",
    "Ingested",
    "KnowledgeRefused",
    "Relation",
    "Skipped",
    "Source",
    "aforget",
    "aingest",
    "asources",
    "forget",
    "ingest",
    "sources",
    "web_search",
]
