"""Cutting a document into passages: along its headings and paragraphs. Pure.

A passage holds some 1,000 characters, and 1,500 at most: one thought or two, so that what is found
is what was looked for, and several fit into a request."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from daruma.tools.knowledge._documents import Document

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
        if last and last.headings == paragraph.headings and _fit(last, paragraph):
            found[-1] = replace(last, text=f"{last.text}\n\n{paragraph.text}")
        else:
            found.append(paragraph)
    return found


def _fit(first: Passage, second: Passage) -> bool:
    return len(first.text) + len(second.text) <= GOAL


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
        return _underlined(line.strip(), below.strip())
    found = _MARKDOWN.match(line)
    return _Heading(len(found[1]), found[2]) if found else None


def _underlined(line: str, below: str) -> _Heading | None:
    if line and len(below) >= len(line) and _UNDERLINE.match(below):
        return _Heading(_UNDERLINES.index(below[0]) + 1, line, lines=2)
    return None


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
