"""Knowledge: documents taken into a store, and found in it by words, by meaning, by relations.

``ingest`` cuts documents into passages and notes what they name, are part of and link to.
``KNOWLEDGE_TOOLS`` is what the model may search them with; ``web_search`` puts an application's
search tool beside them.
"""

from daruma.tools.knowledge._documents import (
    KNOWLEDGE_NAMESPACE,
    Document,
    KnowledgeRefused,
    Skipped,
    collection_namespace,
)
from daruma.tools.knowledge._ingesting import (
    Ingested,
    Relation,
    Source,
    aforget,
    aingest,
    asources,
    forget,
    ingest,
    sources,
)
from daruma.tools.knowledge._knowledge_tools import KNOWLEDGE_TOOLS, web_search

__all__ = [
    "KNOWLEDGE_NAMESPACE",
    "KNOWLEDGE_TOOLS",
    "Document",
    "Ingested",
    "KnowledgeRefused",
    "Relation",
    "Skipped",
    "Source",
    "aforget",
    "aingest",
    "asources",
    "collection_namespace",
    "forget",
    "ingest",
    "sources",
    "web_search",
]
