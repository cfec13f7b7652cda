"""What may be taken in as documents, and cutting it into passages."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from typing_extensions import override

from daruma.state.errors import DarumaError
from daruma.state.text import digest
from daruma.tools.errors import FileUnavailable
from daruma.tools.files import TextFile

# --- Where knowledge lies in a store, and the names that things have there. Pure.

KNOWLEDGE_NAMESPACE: Final = ("daruma", "knowledge")
"""All collections lie beneath it."""


class KnowledgeRefused(DarumaError, ValueError):
    """Raised for documents and collections that can not be taken in."""


def collection_namespace(collection: str, kind: str) -> tuple[str, ...]:
    """Return the namespace of one kind of thing of a collection.

    Raises :class:`KnowledgeRefused` for a name that a namespace can not have.
    """
    if not collection or set(collection) & {".", "\0"}:
        raise KnowledgeRefused(f"a collection is named without dots, and not {collection!r}")
    return (*KNOWLEDGE_NAMESPACE, collection, kind)


def collection_of(namespace: tuple[str, ...]) -> str:
    """Return the collection that a namespace belongs to."""
    return namespace[len(KNOWLEDGE_NAMESPACE)]


def key_of(*parts: object) -> str:
    """Return the key of a thing by what it is, so that the same thing is there but once."""
    return digest([str(part).encode(errors="surrogatepass").hex() for part in parts])


# --- The text of an HTML page: headings and paragraphs, without what only a browser is for. Pure.

_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg", "nav"})
_APART: Final = """
    address article aside blockquote br dd div dl dt footer form header hr li main ol p pre section
    table td th title tr ul
"""
_BLOCKS: Final = frozenset(_APART.split())
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def html_text(page: str) -> str:
    """Return the text of a page, with its headings as Markdown has them.

    >>> html_text("<h1>A</h1><p>one<br>two<script>x</script></p>")
    '# A\\n\\none\\ntwo'
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.text


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._unseen = 0

    @property
    def text(self) -> str:
        lines = [" ".join(line.split()) for line in "".join(self._parts).split("\n")]
        kept = [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]
        return "\n".join(kept).strip()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        if tag in _HEADINGS:
            self._parts.append(f"\n\n{_HEADINGS[tag]}")
        elif tag in _BLOCKS:
            self._parts.append("\n" if tag == "br" else "\n\n")

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN and self._unseen:
            self._unseen -= 1
        if tag in _HEADINGS or tag in _BLOCKS:
            self._parts.append("\n\n")

    @override
    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._parts.append(" ".join(data.split("\n")))


# --- The files of a folder that are documents, and their text.

KINDS: Final = (".md", ".markdown", ".txt", ".rst", ".py", ".html", ".htm")
"""Suffixes of the files of a folder that are taken in."""
LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file; what is larger is data rather than a document."""
_OTHERS: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


@dataclass(frozen=True)
class Skipped:
    """What was not taken in, and why."""

    source: str
    reason: str


def files_in(path: Path) -> Iterator[Path | Skipped]:
    """Yield a file, or the documents of a folder in their order, by absolute names.

    Hidden folders, packages of others and links out of the folder are left out; a folder that can
    not be read is named. Raises
    :class:`~daruma.tools.knowledge.KnowledgeRefused` where there is nothing.
    """
    place = absolute(path)
    if place.is_file():
        yield place
    elif place.is_dir():
        closed: list[OSError] = []
        for folder, folders, names in os.walk(place, onerror=closed.append):
            folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in _OTHERS)
            found = (Path(folder, name) for name in sorted(names) if not name.startswith("."))
            yield from (each for each in found if each.suffix.lower() in KINDS and _is_file(each))
        yield from (Skipped(str(error.filename), str(error.strerror)) for error in closed)
    else:
        raise KnowledgeRefused(f"there is no file or folder {path}")


def absolute(path: Path) -> Path:
    """Return the name that a file is cited by, wherever the program is run."""
    return Path(os.path.expanduser(path)).absolute()  # noqa: PTH111 - Path.expanduser raises without a home


def _is_file(file: Path) -> bool:
    try:
        return file.is_file() and not file.is_symlink()
    except OSError:
        return True  # reading it says why not


def read_file(file: Path) -> str | Skipped:
    """Return a file's text with plain line ends, of HTML what is read; else why there is none."""
    try:
        if file.suffix.lower() == ".pdf":
            return Skipped(str(file), "PDF is not read: give its text, or LangChain Documents")
        if file.stat().st_size > LARGEST:
            return Skipped(str(file), f"larger than {LARGEST // 1024 // 1024} MiB")
        text = TextFile.of(file.read_bytes(), file.name).text
    except FileUnavailable as error:
        return Skipped(str(file), str(error).partition(": ")[2])
    except OSError as error:
        return Skipped(str(file), error.strerror or type(error).__name__)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if file.suffix.lower() in (".html", ".htm"):
        text = html_text(text)
    return text if text.strip() else Skipped(str(file), "it is empty")


# --- What may be taken in, as documents with a text: files, folders, texts, LangChain's documents.

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

    Blocks on files. Raises :class:`~daruma.tools.knowledge.KnowledgeRefused` for what is no
    document, and for a path where there is nothing.
    """
    each: Sequence[Given] = [given] if isinstance(given, Given) else list(given)
    for one in each:
        if isinstance(one, str):
            yield Document(f"text:{key_of(one)}", _first_line(one), one)
        elif isinstance(one, LangChainDocument):
            text, told = one.page_content, one.metadata
            source = str(told.get("source") or f"text:{key_of(text)}")
            source += f"#page={told['page']}" if "page" in told else ""
            yield Document(source, str(told.get("title") or _first_line(text)), text)
        elif isinstance(one, Path):
            for file in files_in(one):
                read = file if isinstance(file, Skipped) else read_file(file)
                if isinstance(read, Skipped):
                    yield read
                elif isinstance(file, Path):
                    yield Document(str(file), file.name, read, file.suffix.lower())
        else:
            raise KnowledgeRefused(
                f"a document is a path, a text or a LangChain Document, and no {type(one).__name__}"
            )


def _first_line(text: str) -> str:
    line = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "")
    return line[:80]


# --- Cutting a document into passages: along its headings and paragraphs. Pure.
#
# A passage holds some 1,000 characters, and 1,500 at most: one thought or two, so that what is
# found is what was looked for, and several fit into a request.

GOAL: Final = 1000
MOST: Final = 1500

_MARKDOWN: Final = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t#]*$")
_PYTHON: Final = re.compile(r"(?:async\s+)?(?:def|class)\s+(\w+)")
_UNDERLINES: Final = "=-~^\"'#*+"
_UNDERLINE: Final = re.compile(r"([=\-~^\"'#*+])\1{2,}\s*$")
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_SENTENCES: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")


@dataclass(frozen=True)
class Passage:
    """A piece of a document: its text, the headings above it, the line that it begins in."""

    text: str
    headings: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class _Heading:
    level: int
    text: str
    lines: int = 1


def passages(document: Document) -> list[Passage]:
    """Cut a document into passages, in its order; a heading without text makes none."""
    found: list[Passage] = []
    for paragraph in _paragraphs(document):
        last = found[-1] if found else None
        fits = last and len(last.text) + len(paragraph.text) <= GOAL
        if last and fits and last.headings == paragraph.headings:
            found[-1] = replace(last, text=f"{last.text}\n\n{paragraph.text}")
        else:
            found.append(paragraph)
    return found


def _paragraphs(document: Document) -> Iterator[Passage]:
    above: dict[int, str] = {}
    lines: list[str] = []
    begun, fenced = 1, False
    for number, line in _with_headings(document):
        if isinstance(line, _Heading):
            yield from _cut(lines, tuple(above.values()), begun)
            above = {level: text for level, text in above.items() if level < line.level}
            above[line.level] = line.text
            lines = []
            continue
        fenced ^= bool(_FENCE.match(line))
        if line.strip() or (fenced and lines):
            begun = begun if lines else number
            lines.append(line)
        else:
            yield from _cut(lines, tuple(above.values()), begun)
            lines = []
    yield from _cut(lines, tuple(above.values()), begun)


def _with_headings(document: Document) -> Iterator[tuple[int, str | _Heading]]:
    """Yield lines with their numbers; what is a heading as one, without its underline."""
    lines = document.text.split("\n")
    fenced, skipped = False, False
    for place, line in enumerate(lines):
        fenced ^= bool(_FENCE.match(line))
        if skipped:
            skipped = False
            continue
        below = lines[place + 1] if place + 1 < len(lines) else ""
        heading = None if fenced else _heading(document.kind, line, below)
        skipped = heading is not None and heading.lines == 2
        yield place + 1, heading or line
        if heading and document.kind == ".py":
            yield place + 1, line


def _heading(kind: str, line: str, below: str) -> _Heading | None:
    if kind == ".py":
        found = _PYTHON.match(line)
        return _Heading(1, found[1]) if found else None
    if kind in (".rst", ".txt"):
        line, below = line.strip(), below.strip()
        if line and len(below) >= len(line) and _UNDERLINE.match(below):
            return _Heading(_UNDERLINES.index(below[0]) + 1, line, lines=2)
        return None
    found = _MARKDOWN.match(line)
    return _Heading(len(found[1]), found[2]) if found else None


def _cut(lines: list[str], headings: tuple[str, ...], begun: int) -> Iterator[Passage]:
    """Yield a paragraph, in pieces if it is too long: by sentences, else by lines, else so."""
    text = "\n".join(lines)
    for piece in _pieces(text) if len(text) > MOST else [text]:
        bare = piece.lstrip("\n")
        if bare.strip():
            yield Passage(bare.rstrip(), headings, begun + len(piece) - len(bare))
        begun += piece.count("\n")


def _pieces(text: str) -> list[str]:
    pieces = [""]
    for piece in _small(text):
        if pieces[-1] and len(pieces[-1]) + len(piece) > GOAL:
            pieces.append("")
        pieces[-1] += piece
    return pieces


def _small(text: str) -> Iterator[str]:
    """Yield a text in pieces that a passage has room for; together they are the text."""
    for line in text.splitlines(keepends=True):
        ends = chain((m.end() for m in _SENTENCES.finditer(line)), [len(line)])
        start = 0
        for end in ends:
            yield from (line[at : min(at + GOAL, end)] for at in range(start, end, GOAL))
            start = end
