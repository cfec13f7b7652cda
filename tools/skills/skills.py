"""The skills that there are, in the folders of the settings. All of this blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from daruma.tools.errors import ToolError
from daruma.tools.files.files_beneath import FilesBeneath
from daruma.tools.files.listing import entries
from daruma.tools.files.paths import shown
from daruma.tools.files.text_file import TextFile
from daruma.tools.skills.skill_file import SkillRefused, described

FILE: Final = "SKILL.md"
MOST: Final = 1_000
"""Sub-folders of one folder that are looked into."""


@dataclass(frozen=True)
class Skill:
    """One skill, in the sub-folder ``at`` of ``folder``; ``problem`` says why it is of no use."""

    name: str
    folder: str
    at: str
    description: str = ""
    problem: str = ""

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return str(Path(self.folder, self.at))


def skills_in(folders: Sequence[str]) -> list[Skill]:
    """Return all skills, those that can not be used too, in the order of the folders.

    Of two with one name the first counts. A folder is taken as it is written, from the current one
    on; one that is not there holds none.
    """
    found: list[Skill] = []
    for folder in folders:
        for skill in _of_folder(folder):
            first = next((s for s in found if s.name == skill.name and not s.problem), None)
            hidden = f"hidden by {first.place}, which has the same name" if first else ""
            found.append(_refused(skill, hidden) if hidden and not skill.problem else skill)
    return found


def missing_in(folders: Sequence[str]) -> list[str]:
    """Return the folders that are not there."""
    return [folder for folder in folders if not Path(folder).is_dir()]


def usable_in(folders: Sequence[str]) -> list[Skill]:
    """Return the skills that can be used."""
    return [skill for skill in skills_in(folders) if not skill.problem]


def skill_named(name: str, folders: Sequence[str]) -> Skill:
    """Return a skill that can be used. Raises :class:`SkillRefused`, naming the nearest one."""
    there = skills_in(folders)
    for skill in sorted(there, key=lambda each: bool(each.problem)):
        if skill.name == name:
            if skill.problem:
                raise SkillRefused(f"the skill {name!r} can not be used: {skill.problem}")
            return skill
    close = get_close_matches(name, [s.name for s in there if not s.problem], n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise SkillRefused(f"there is no skill {name!r:.80}: {hint}skills_list shows those that are")


def _of_folder(folder: str) -> Iterator[Skill]:
    if not Path(folder).is_dir():
        return
    try:
        files = FilesBeneath(Path(folder))
        there = [entry for entry in entries(files, ".") if entry.kind in ("directory", "link")]
    except (ToolError, OSError) as error:
        yield Skill(
            name=shown(folder), folder=folder, at="", problem=in_words_of_skills(str(error))
        )
        return
    for entry in there[:MOST]:
        if skill := _read(files, folder, entry.path):
            yield skill


def _read(files: FilesBeneath, folder: str, at: str) -> Skill | None:
    """Return what a sub-folder holds; None for one that is no skill's."""
    try:
        if not files.is_directory(at) or FILE not in _names(files, at):
            return None
        path = f"{at}/{FILE}"
        told = described(TextFile.of(files.read(path), path).text, at)
    except (ToolError, OSError) as error:
        return Skill(name=shown(at), folder=folder, at=at, problem=in_words_of_skills(str(error)))
    return Skill(name=told.name, folder=folder, at=at, description=told.description)


def _names(files: FilesBeneath, at: str) -> set[str]:
    return {entry.path.rpartition("/")[2] for entry in entries(files, at)}


def _refused(skill: Skill, problem: str) -> Skill:
    return Skill(name=skill.name, folder=skill.folder, at=skill.at, problem=problem)


def in_words_of_skills(text: str) -> str:
    """Return what is wrong with a file: the rules are the workspace's, and so are their words."""
    named = text.replace("the workspace's root", "the skill's folder")
    return named.replace("the workspace", "the skills' folder")
