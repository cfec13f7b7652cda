"""Where knowledge lies in a store, and the names that things have there. Pure."""

from typing import Final

from daruma.state.digest import digest
from daruma.state.errors import DarumaError

ROOT: Final = ("daruma", "knowledge")
"""All collections lie beneath it."""


class KnowledgeRefused(DarumaError, ValueError):
    """Raised for documents and collections that can not be taken in."""


def place(collection: str, kind: str) -> tuple[str, ...]:
    """Return the namespace of one kind of thing of a collection.

    Raises :class:`KnowledgeRefused` for a name that a namespace can not have.
    """
    if not collection or set(collection) & {".", "\0"}:
        raise KnowledgeRefused(f"a collection is named without dots, and not {collection!r}")
    return (*ROOT, collection, kind)


def collection_of(namespace: tuple[str, ...]) -> str:
    """Return the collection that a namespace belongs to."""
    return namespace[len(ROOT)]


def key_of(*parts: object) -> str:
    """Return the key of a thing by what it is, so that the same thing is there but once."""
    return digest([str(part).encode(errors="surrogatepass").hex() for part in parts])
