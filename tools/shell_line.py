"""A shell line taken apart into the simple commands that it may run. Pure; nothing is expanded.

This reads for those who want to refuse: a line that can not be read with certainty is
:class:`Unclear`, never guessed.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from daruma.tools.shell_tokens import TOKEN, TOKEN_IN_QUOTES

UNKNOWN: Final = "\0"
"""Stands in a word for what only the shell will know: a variable, a pattern, a command's output."""

MOST_TEXT: Final = 20_000
"""Characters; a longer line is unclear."""

Words = tuple[str, ...]


class Unclear(Exception):
    """Raised for a line whose commands can not be told with certainty."""


def simple_commands(line: str) -> list[Words]:
    """Return the words of each simple command, quotes removed, those inside others too.

    Redirections are left out; assignments, reserved words and ``UNKNOWN`` parts are kept. Raises
    :class:`Unclear`, for example for here-documents, open quotes, ``case`` and control characters.
    """
    if len(line) > MOST_TEXT or re.search(r"[\0-\x08\x0b-\x1f\x7f]", line):
        raise Unclear
    reader = _Reader(line)
    reader.read()
    if any("case" in words for words in reader.commands):
        raise Unclear  # its patterns end in a parenthesis that was never opened
    return reader.commands


@dataclass
class _Command:
    """A simple command as far as it was read.

    ``word`` is the one being read: ``quoted`` if inside double quotes, a ``target`` if it follows a
    redirection, ``bare`` if nothing of it was quoted.
    """

    words: list[str] = field(default_factory=list)
    word: str | None = None
    quoted: bool = False
    target: bool = False
    bare: bool = False


class _Reader:
    """Reads a line once, from left to right; a method per kind of token.

    Its stack holds the command being read, last, and those in whose parentheses it stands.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.commands: list[Words] = []
        self.stack = [_Command()]

    def read(self) -> None:
        at = 0
        while at < len(self.line):
            found = (TOKEN_IN_QUOTES if self.now.quoted else TOKEN).match(self.line, at)
            if found is None or found.lastgroup is None:
                raise Unclear
            getattr(self, found.lastgroup)(found[0])
            at = found.end()
        if len(self.stack) > 1 or self.now.quoted:
            raise Unclear
        self.end()

    @property
    def now(self) -> _Command:
        return self.stack[-1]

    def literal(self, text: str) -> None:
        self.now.word = (self.now.word or "") + text
        self.now.bare = False

    def plain(self, text: str) -> None:
        bare = self.now.word is None
        self.literal(text)
        self.now.bare = bare

    def continued(self, _: str) -> None:
        """The backslash and the line feed are nothing, not even the end of a word."""

    def escaped(self, text: str) -> None:
        self.literal(text[1:])

    def single(self, text: str) -> None:
        self.literal(text[1:-1])

    def quote(self, _: str) -> None:
        self.literal("")
        self.now.quoted = not self.now.quoted

    def refused(self, _: str) -> None:
        raise Unclear

    def variable(self, _: str) -> None:
        self.literal(UNKNOWN)

    pattern = variable

    def opening(self, text: str) -> None:
        if text[0] != "$":
            self.blank()
        self.literal(UNKNOWN)
        self.stack.append(_Command())

    def ticks(self, text: str) -> None:
        if self.now.quoted and '\\"' in text:
            raise Unclear  # shells differ
        self.literal(UNKNOWN)
        self.commands += simple_commands(re.sub(r"\\([$`\\])", r"\1", text[1:-1]))

    def redirect(self, _: str) -> None:
        word = self.now.word or ""
        if word.startswith(UNKNOWN) and word.endswith("}"):
            raise Unclear  # {name}> is a redirection in bash
        if self.now.bare and re.fullmatch("[0-9]+", word):
            self.now.word = None
        self.blank()
        self.now.target = True

    def group(self, _: str) -> None:
        self.end()
        self.stack.append(_Command())

    def close(self, _: str) -> None:
        self.end()
        self.stack.pop()
        if not self.stack:
            raise Unclear

    def comment(self, _: str) -> None:
        if self.now.word is not None:
            raise Unclear  # inside a word it is no comment

    def end(self, _: str = "") -> None:
        self.blank()
        if self.now.words:
            self.commands.append(tuple(self.now.words))
        self.now.words, self.now.target = [], False

    def blank(self, _: str = "") -> None:
        if self.now.word is None:
            return
        if not self.now.target:
            self.now.words.append(self.now.word)
        self.now.word, self.now.target = None, False
