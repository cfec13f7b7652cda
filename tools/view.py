"""How files and directories are shown to the model: numbered, bounded, and honest about cuts."""

from collections.abc import Sequence
from typing import Final

from daruma.tools.errors import EditRefused
from daruma.tools.files.files_beneath import FilesBeneath
from daruma.tools.files.listing import CACHES, Entry, entries
from daruma.tools.files.text_edit import Edited, lines_of, plain

MOST_CHARACTERS: Final = 50_000
LONGEST_LINE: Final = 2_000
MOST_ENTRIES: Final = 500
AROUND: Final = 3
LONGEST_SNIPPET: Final = 40
MARKS: Final = {"directory": "/", "link": "@", "special": " (special)", "file": ""}


def numbered(text: str, view_range: Sequence[int] | None) -> str:
    """The lines of a text as `cat -n` shows them, from the first to the last of the range.

    A range ends at the last line with -1 or any larger number. EditRefused if it holds no line.
    """
    lines = lines_of(plain(text))
    first, last = _bounds(len(lines), view_range) if view_range else (1, len(lines))
    shown, used = [], 0
    for number in range(first, last + 1):
        line = _numbered_line(number, lines[number - 1])
        used += len(line) + 1
        if used > MOST_CHARACTERS:
            shown.append(f"[cut: {len(lines)} lines in all; go on with view_range [{number}, -1]]")
            break
        shown.append(line)
    return "\n".join(shown) or "(an empty file)"


def snippet(edited: Edited) -> str:
    """The numbered lines that an edit touched, with some around them."""
    lines = lines_of(plain(edited.text))
    first = max(1, edited.first - AROUND)
    last = min(len(lines), edited.last + AROUND)
    cut = min(last, first + LONGEST_SNIPPET - 1)
    shown = [_numbered_line(number, lines[number - 1]) for number in range(first, cut + 1)]
    rest = [f"[{last - cut} more lines of the edit]"] if cut < last else []
    return "\n".join([*shown, *rest]) or "(an empty file)"


def tree(files: FilesBeneath, path: str) -> str:
    """A directory and the directories in it; caches and `.git` are not looked into."""
    shown: list[Entry] = []
    for entry in entries(files, path):
        shown.append(entry)
        if entry.kind == "directory" and entry.path.rpartition("/")[2] not in CACHES:
            shown += entries(files, entry.path)
        if len(shown) > MOST_ENTRIES:
            break
    lines = [entry.path + MARKS[entry.kind] for entry in shown[:MOST_ENTRIES]]
    cut = ["[cut: there are more entries; view one of the directories]"]
    return "\n".join(lines + cut * (len(shown) > MOST_ENTRIES)) or "(an empty directory)"


def _bounds(count: int, view_range: Sequence[int]) -> tuple[int, int]:
    first, last = view_range
    last = count if last == -1 else min(last, count)
    if not 1 <= first <= last:
        asked = list(view_range)
        raise EditRefused(f"view_range {asked}: the file has lines 1 to {count}; -1 is the last")
    return first, last


def _numbered_line(number: int, line: str) -> str:
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]} [cut: {len(line) - LONGEST_LINE} more characters]"
    return f"{number:6}\t{line}"
