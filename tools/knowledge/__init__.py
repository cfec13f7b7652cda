"""Knowledge: documents taken into a store, and found in it by words, by meaning, by relations."""

from daruma.tools.knowledge.documents import Document, KnowledgeRefused, Skipped
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
from daruma.tools.knowledge.knowledge_tools import web_search
from daruma.tools.knowledge.relations import Relation

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
