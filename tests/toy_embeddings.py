"""Embeddings that know a few synonyms: enough to see that what is meant is found."""

import threading
from hashlib import blake2b

from langchain_core.embeddings import Embeddings

from daruma.tools.text import query_terms

SYNONYMS = (
    "car automobile vehicle",
    "dog hound puppy",
    "buy purchase acquire",
    "fast quick rapid",
    "doctor physician",
)
MEANT = {term: group.split()[0] for group in SYNONYMS for term in query_terms(group)}


class ToyEmbeddings(Embeddings):
    """Counts words, synonyms as one; ``broken`` raises it, ``held`` is waited for."""

    SIZE = 1024

    def __init__(self, model: str = "toy", size: int = SIZE) -> None:
        self.model = model
        self.size = size
        self.broken: Exception | None = None
        self.held: threading.Event | None = None
        self.asked: list[int] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(len(texts))
        if self.held:
            self.held.wait()
        if self.broken:
            raise self.broken
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def _vector(self, text: str) -> list[float]:
        vector = [0.001] * self.size
        for term in query_terms(text):
            meant = MEANT.get(term, term).encode()
            vector[int(blake2b(meant).hexdigest()[:8], 16) % self.size] += 1.0
        return vector
