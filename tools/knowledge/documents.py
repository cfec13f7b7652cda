"""What may be taken in, as documents with a text: files, folders, texts, LangChain's documents."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.documents import Document as LangChainDocument

from daruma.tools.knowledge.files import Skipped, files_in, read_file
from daruma.tools.knowledge.places import KnowledgeRefused, key_of

Given = str | Path | LangChainDocument
"""A path is a file or a folder; a ``str`` is a text itself."""


@dataclass(frozen=True)
class Document:
    """A text, and what it is cited as. ``kind`` is the suffix that says how it is written."""

    source: str
    title: str
    text: str
    kind: str = ".md"


def documents_of(given: Given | Iterable[Given]) -> Iterator[Document | Skipped]:
    """Yield documents one by one, and what was left out with the reason.

    Blocks on files. Raises :class:`~daruma.tools.knowledge.places.KnowledgeRefused` for what is no
    document, and for a path where there is nothing.
    """
    each: Sequence[Given] = [given] if isinstance(given, Given) else list(given)
    for one in each:
        if isinstance(one, str):
            yield Document(f"text:{key_of(one)}", _first_line(one), one)
        elif isinstance(one, LangChainDocument):
            yield _from_langchain(one)
        elif isinstance(one, Path):
            yield from _from_files(one)
        else:
            raise KnowledgeRefused(
                f"a document is a path, a text or a LangChain Document, and no {type(one).__name__}"
            )


def _from_files(path: Path) -> Iterator[Document | Skipped]:
    for file in files_in(path):
        text = file if isinstance(file, Skipped) else read_file(file)
        if isinstance(text, Skipped):
            yield text
        elif isinstance(file, Path):
            yield Document(str(file), file.name, text, file.suffix.lower())


def _from_langchain(given: LangChainDocument) -> Document:
    text, told = given.page_content, given.metadata
    source = str(told.get("source") or f"text:{key_of(text)}")
    if "page" in told:
        source = f"{source}#page={told['page']}"
    return Document(source, str(told.get("title") or _first_line(text)), text)


def _first_line(text: str) -> str:
    line = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "")
    return line[:80]
