"""What is in a skill's folder: nothing outside of it can be read, by the workspace's rules."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from daruma.tools.errors import FileUnavailable, PathRefused
from daruma.tools.files.files_beneath import FilesBeneath
from daruma.tools.files.listing import entries
from daruma.tools.files.paths import shown
from daruma.tools.files.text_file import TextFile
from daruma.tools.skills.skills import FILE, Skill, in_words_of_skills

MOST_FOLDERS: Final = 200
"""Folders of a skill that are looked through for its files."""


def read_text(skill: Skill, path: str) -> str:
    """Return the text of a skill's file.

    Raises :class:`~daruma.tools.errors.ToolError`: for what leads out of the skill's folder, and
    what is no text, no plain file or too large.
    """
    with _explained():
        within = _within(skill, path)
        return TextFile.of(_files(skill.folder).read(within), within).text


def files_of(skill: Skill, most: int) -> list[str]:
    """Return the files beside a skill's ``SKILL.md``, at most so many, by their paths in it."""
    with _explained():
        files, waiting, found = _files(skill.folder), [skill.at], list[str]()
        for _ in range(MOST_FOLDERS):
            if not waiting or len(found) >= most:
                break
            for entry in entries(files, waiting.pop(0)):
                if entry.kind == "directory":
                    waiting.append(entry.path)
                elif entry.path != f"{skill.at}/{FILE}":
                    found.append(entry.path.removeprefix(f"{skill.at}/"))
    return found[:most]


def _files(folder: str) -> FilesBeneath:
    return FilesBeneath(Path(folder))


def _within(skill: Skill, path: str) -> str:
    if not path or path.startswith("/"):
        raise PathRefused(f"{shown(path)}: name a file by its path in the skill's folder")
    return f"{skill.at}/{path}"


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except PathRefused as error:
        raise PathRefused(in_words_of_skills(str(error))) from None
    except FileUnavailable as error:
        raise FileUnavailable(in_words_of_skills(str(error))) from None
