"""The files of a folder that are documents, and their text."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daruma.tools.errors import FileUnavailable
from daruma.tools.files.text_file import TextFile
from daruma.tools.knowledge.places import KnowledgeRefused

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
    :class:`~daruma.tools.knowledge.places.KnowledgeRefused` where there is nothing.
    """
    place = absolute(path)
    if place.is_file():
        yield place
    elif place.is_dir():
        closed: list[OSError] = []
        for folder, folders, names in os.walk(place, onerror=closed.append):
            folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in _OTHERS)
            found = (Path(folder, name) for name in sorted(names) if not name.startswith("."))
            yield from (file for file in found if _is_document(file))
        yield from (Skipped(str(error.filename), _why(error)) for error in closed)
    else:
        raise KnowledgeRefused(f"there is no file or folder {path}")


def absolute(path: Path) -> Path:
    """Return the name that a file is cited by, wherever the program is run."""
    return path.expanduser().absolute()


def _is_document(file: Path) -> bool:
    try:
        return file.suffix.lower() in KINDS and file.is_file() and not file.is_symlink()
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
        return Skipped(str(file), _why(error))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if file.suffix.lower() in (".html", ".htm"):
        from daruma.tools.knowledge.html_text import html_text

        text = html_text(text)
    return text if text.strip() else Skipped(str(file), "it is empty")


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__
