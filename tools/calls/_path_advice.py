"""Which path was meant, where a call gave only the tail of one shown before (CX-06)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from langchain_core.messages import AnyMessage, ToolMessage

from daruma.state.calls import ToolTask
from daruma.tools.errors import FileMissing, ToolError
from daruma.tools.files import FilesBeneath, printable_path
from daruma.tools.threads import in_thread

# --- Whole paths, shown before, of which a call gives only the tail (CX-06). Pure.

EDITOR: Final = "str_replace_editor"

MOST: Final = 10
"""Paths that are carried with a call; which of them are there is looked up if it fails."""

MOST_TEXT: Final = 1_000_000
"""Characters of results that are looked through, the newest first: some milliseconds."""

MOST_SHOWN: Final = 2_000
"""Times that paths are shown in results which are looked at, the newest first: a millisecond or
two. The one path that all the work is about is shown in most of a long thread's results."""

LONGEST: Final = 300
"""Characters of a path."""

_TOKEN: Final = re.compile(r"[^\s'\"`()\[\]{}<>|,;=:]*\Z")


def candidate_paths(call: ToolTask, messages: Sequence[AnyMessage]) -> tuple[str, ...]:
    """Return the paths in earlier results that the editor may be meant to be called with.

    They end with the path that is given, by whole components: after a leading ``./`` or
    ``workspace/`` is taken off, and with backslashes for slashes. The one shown last is the first.
    """
    given = call.args.get("path")
    if call.name != EDITOR or not isinstance(given, str) or len(given) > LONGEST:
        return ()
    found: dict[str, None] = {}
    for path in islice(_shown(_tails(given), messages), MOST_SHOWN):
        found[path] = None
        if len(found) > MOST:
            break
    return tuple(path for path in found if path != given)[:MOST]


def _shown(tails: Sequence[str], messages: Sequence[AnyMessage]) -> Iterator[str]:
    for text in _texts(messages):
        for tail in tails:
            if tail in text:
                yield from _ending(tail, text)


def _texts(messages: Sequence[AnyMessage]) -> Iterator[str]:
    left = MOST_TEXT
    for message in reversed(messages):
        if isinstance(message, ToolMessage) and message.status == "success":
            whole = message.content if isinstance(message.content, str) else str(message.text)
            text = whole[-left:]
            left -= len(text)
            yield text
        if left <= 0:
            return


def _tails(given: str) -> list[str]:
    plain = "/".join(part for part in given.replace("\\", "/").split("/") if part not in ("", "."))
    if not plain or ".." in plain.split("/"):
        return []
    return list(dict.fromkeys((plain, plain.removeprefix("workspace/"))))


def _ending(tail: str, text: str) -> Iterable[str]:
    """Yield the paths in a text that end with a tail: as a word, and from the line's beginning.

    The latter is how paths with spaces are shown; a diff has ``a/`` or ``b/`` before them.
    """
    for match in re.finditer(rf"{re.escape(tail)}(?![\w-])(?!\.\w)", text):
        line = text[max(text.rfind("\n", 0, match.start()) + 1, match.start() - LONGEST) :]
        before = line[: len(line) - len(text) + match.start()].lstrip()
        word = _TOKEN.search(before)
        for head in (word[0] if word else "", before):
            if not head or head.endswith("/"):
                yield head + tail
                yield head.removeprefix("a/").removeprefix("b/") + tail


# --- Saying which path was meant, where a call gave only the tail of one shown before (CX-06).

MOST_NAMED: Final = 5


async def advise_paths(error: ToolError, paths: Sequence[str], workspace: str | None) -> str:
    """Return what is said of an error; for a missing file, which of ``paths`` are there."""
    meant = isinstance(error, FileMissing) and workspace and paths
    there = await in_thread(_there, paths, workspace) if meant and workspace else []
    if not there:
        return str(error)
    whole = "it was shown as" if len(there) == 1 else "shown before were"
    named = ", ".join(printable_path(path) for path in there[:MOST_NAMED])
    one = "it" if len(there) == 1 else "one of them"
    return f"{str(error).partition(': list ')[0]}; {whole} {named}: use {one} whole"


def _there(paths: Sequence[str], workspace: str) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        try:
            found[FilesBeneath(Path(workspace)).locate(path)] = None
        except (ToolError, OSError):
            continue
    return list(found)
