"""Written instructions: skills, which the model reads when a task asks for it (CX-05), and those
that a repository has for whoever works in it (FA-12).
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import Field

from daruma.state.lessons import Instructions
from daruma.state.settings import ProjectInstructions, Settings, is_trusted_text
from daruma.state.settings import Skills as SkillSettings
from daruma.state.text import NotYaml, is_hidden, read_yaml
from daruma.tools.calls import Surroundings, Tool, ToolArgs, shipped_tool
from daruma.tools.errors import FileMissing, FileUnavailable, PathRefused, ToolError
from daruma.tools.files import (
    FilesBeneath,
    TextFile,
    list_entries,
    printable_path,
    repository_above,
    unix_newlines,
)
from daruma.tools.text import is_related
from daruma.tools.threads import in_thread

# --- Reading a ``SKILL.md``: front matter as the Agent Skills format has it, or none at all.

LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024
"""Characters, both by the format; a longer description is cut, a longer name refused."""

LONGEST_FRONT_MATTER: Final = 16_000
"""Characters; some lines are usual."""

_FENCE: Final = "---"


class SkillRefused(ToolError):
    """Raised for a skill that is not there, or whose ``SKILL.md`` can not be used; says why."""


@dataclass(frozen=True)
class Described:
    """What a skill is called, and what it is for, in one line each."""

    name: str
    description: str


def read_description(text: str, folder: str) -> Described:
    """Return what a ``SKILL.md`` says of itself.

    What it leaves out is the name of its folder, and the first paragraph of its text. Raises
    :class:`SkillRefused`.
    """
    front, body = _parted(text.replace("\r\n", "\n").replace("\r", "\n"))
    name = _one_line(front.get("name"), "name") or folder
    if len(name) > LONGEST_NAME:
        raise SkillRefused(f"its name has {len(name)} characters, at most {LONGEST_NAME} are usual")
    description = _one_line(front.get("description"), "description") or _first_paragraph(body)
    return Described(name, description[:LONGEST_DESCRIPTION])


def _parted(text: str) -> tuple[dict[str, object], str]:
    lines = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").split("\n")
    if lines[0].rstrip() != _FENCE:
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise SkillRefused("its front matter has no end: close it with a line ---")
    front = "\n".join(lines[1:end])
    if len(front) > LONGEST_FRONT_MATTER:
        raise SkillRefused(f"its front matter is longer than {LONGEST_FRONT_MATTER} characters")
    return _mapping(front), "\n".join(lines[end + 1 :])


def _mapping(front: str) -> dict[str, object]:
    try:
        read = read_yaml(front)
    except NotYaml as error:
        raise SkillRefused(f"its front matter is no YAML: {str(error)[:200]}") from None
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise SkillRefused("its front matter has to hold keys and values: name, description")
    return read


def _one_line(value: object, key: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise SkillRefused(f"key {key!r} of its front matter has to be a text")
    return _visible(str(value))


def _first_paragraph(body: str) -> str:
    """A heading alone says less than what stands below it."""
    parts = [part for part in re.split(r"\n\s*\n", body) if part.strip(" #\n")]
    plain = next((part for part in parts if not part.lstrip().startswith("#")), None)
    return _visible((plain or (parts[0] if parts else "")).strip(" #\n"))


def _visible(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


# --- The skills that there are, in the folders of the settings. All of this blocks.

FILE: Final = "SKILL.md"
MOST: Final = 1_000
"""Sub-folders of one folder that are looked into."""

_NAMED: Final = 3

UNTRUSTED: Final = "nobody has agreed to it as it is: a person can, with `daruma trust`"
"""Of one that a task could have written: nothing of what it says is read (SE-02)."""


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


def skills_in(folders: Sequence[str], workspace: str | None = None) -> list[Skill]:
    """Return all skills, those that can not be used too, in the order of the folders.

    Of two with one name the first counts. A folder is taken as it is written, from the current one
    on; one that is not there holds none. Those in a task's ``workspace`` need a person's trust.
    """
    found: list[Skill] = []
    for folder in folders:
        for skill in _of_folder(folder, workspace):
            first = next((s for s in found if s.name == skill.name and not s.problem), None)
            hidden = f"hidden by {first.place}, which has the same name" if first else ""
            told = replace(skill, description="", problem=hidden)
            found.append(told if hidden and not skill.problem else skill)
    return found


def missing_in(folders: Sequence[str]) -> list[str]:
    """Return the folders that are not there."""
    return [folder for folder in folders if not Path(folder).is_dir()]


def usable_in(folders: Sequence[str], workspace: str | None = None) -> list[Skill]:
    """Return the skills that can be used."""
    return [skill for skill in skills_in(folders, workspace) if not skill.problem]


def skills_about(goal: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the skills that a goal is about.

    The rule is that of recalled memories: a skill's name and description share a third of the
    goal's telling words, two at most, or a name as code writes it.
    """
    there = usable_in(folders) if folders else []
    return tuple(
        skill.name for skill in there if is_related(goal, f"{skill.name} {skill.description}")
    )


def untrusted_note(folders: Sequence[str], workspace: str | None) -> tuple[str, ...]:
    """Say in one line which skills were not read, for the person whose task it was."""
    unread = [each.place for each in skills_in(folders, workspace) if each.problem == UNTRUSTED]
    if not unread:
        return ()
    more = f" and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
    return (
        f"skills not read: {', '.join(map(printable_path, unread[:_NAMED]))}{more}: {UNTRUSTED}",
    )


def with_trusted_skills(settings: Settings, workspace: str | None) -> Settings:
    """Return settings without the folders in a workspace that hold what nobody has agreed to.

    Members of a team work elsewhere, and could not tell by their own workspace.
    """
    kept = tuple(
        folder
        for folder in settings.skills.folders
        if all(each.problem != UNTRUSTED for each in skills_in([folder], workspace))
    )
    return settings.model_copy(update={"skills": SkillSettings(folders=kept)})


def skill_named(name: str, folders: Sequence[str], workspace: str | None = None) -> Skill:
    """Return a skill that can be used. Raises :class:`SkillRefused`, naming the nearest one."""
    there = skills_in(folders, workspace)
    for skill in sorted(there, key=lambda each: bool(each.problem)):
        if skill.name == name:
            if skill.problem:
                raise SkillRefused(f"the skill {name!r} can not be used: {skill.problem}")
            return skill
    close = get_close_matches(name, [s.name for s in there if not s.problem], n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise SkillRefused(f"there is no skill {name!r:.80}: {hint}skills_list shows those that are")


def _of_folder(folder: str, workspace: str | None) -> Iterator[Skill]:
    if not Path(folder).is_dir():
        return
    try:
        files = FilesBeneath(Path(folder))
        there = [entry for entry in list_entries(files, ".") if entry.kind in ("directory", "link")]
    except (ToolError, OSError) as error:
        problem = in_words_of_skills(str(error))
        yield Skill(name=printable_path(folder), folder=folder, at="", problem=problem)
        return
    for entry in there[:MOST]:
        if skill := _read(files, folder, entry.path, workspace):
            yield skill


def _read(files: FilesBeneath, folder: str, at: str, workspace: str | None) -> Skill | None:
    """Return what a sub-folder holds; None for one that is no skill's."""
    path = f"{at}/{FILE}"
    try:  # entries of a linked folder have the path of where it leads
        entries = list_entries(files, at) if files.is_directory(at) else ()
        if FILE not in [Path(entry.path).name for entry in entries]:
            return None
        if not is_trusted_text(Path(folder, at), workspace):
            return Skill(name=printable_path(at), folder=folder, at=at, problem=UNTRUSTED)
        told = read_description(TextFile.of(files.read(path), path).text, at)
    except (ToolError, OSError) as error:
        problem = in_words_of_skills(str(error))
        return Skill(name=printable_path(at), folder=folder, at=at, problem=problem)
    return Skill(name=told.name, folder=folder, at=at, description=told.description)


def in_words_of_skills(text: str) -> str:
    """Return what is wrong with a file: the rules are the workspace's, and so are their words."""
    named = text.replace("the workspace's root", "the skill's folder")
    return named.replace("the workspace", "the skills' folder")


# --- What is in a skill's folder: nothing outside of it can be read, by the workspace's rules.

MOST_FOLDERS: Final = 200
"""Folders of a skill that are looked through for its files."""


def read_text(skill: Skill, path: str) -> str:
    """Return the text of a skill's file.

    Raises :class:`~daruma.tools.errors.ToolError`: for what leads out of the skill's folder, and
    what is no text, no plain file or too large.
    """
    with _explained():
        within = _within(skill, path)
        return TextFile.of(FilesBeneath(Path(skill.folder)).read(within), within).text


def files_of(skill: Skill, most: int) -> list[str]:
    """Return the files beside a skill's ``SKILL.md``, at most so many, by their paths in it."""
    with _explained():
        files, waiting, found = FilesBeneath(Path(skill.folder)), [skill.at], list[str]()
        for _ in range(MOST_FOLDERS):
            if not waiting or len(found) >= most:
                break
            for entry in list_entries(files, waiting.pop(0)):
                if entry.kind == "directory":
                    waiting.append(entry.path)
                elif entry.path != f"{skill.at}/{FILE}":
                    found.append(entry.path.removeprefix(f"{skill.at}/"))
    return found[:most]


def _within(skill: Skill, path: str) -> str:
    if not path or path.startswith("/"):
        raise PathRefused(f"{printable_path(path)}: name a file by its path in the skill's folder")
    return f"{skill.at}/{path}"


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except PathRefused as error:
        raise PathRefused(in_words_of_skills(str(error))) from None
    except FileUnavailable as error:
        raise FileUnavailable(in_words_of_skills(str(error))) from None


# --- The tools with which the model finds and reads skills (CX-05).

SKILLS_LIST: Final = "skills_list"

PAGE: Final = 16_000
"""Characters of a file that are shown at once: about 4,000 tokens."""

MOST_LISTED: Final = 200
"""Skills; beyond that a list is no help."""

MOST_FILES: Final = 50
"""Files of a skill that are named when it is loaded."""


class SkillsListArgs(ToolArgs):
    """List the skills: instructions for kinds of work, each with what it is for."""


class SkillsLoadArgs(ToolArgs):
    """Read a skill's instructions, before doing work of its kind; names its other files."""

    name: str = Field(description="The name that skills_list shows.")


class SkillsReadFileArgs(ToolArgs):
    """Read a file that a skill's instructions name."""

    name: str = Field(description="The skill's name.")
    path: str = Field(description="The file, as it is named within the skill's folder.")
    offset: int = Field(default=0, ge=0, description="Character to begin with, from 0.")


async def _list(_: SkillsListArgs, at: Surroundings) -> str:
    return await in_thread(list_skills, at.settings.skills.folders, _workspace(at))


async def _load(args: SkillsLoadArgs, at: Surroundings) -> str:
    return await in_thread(load_skill, args.name, at.settings.skills.folders, _workspace(at))


async def _read_file(args: SkillsReadFileArgs, at: Surroundings) -> str:
    skill = await in_thread(skill_named, args.name, at.settings.skills.folders, _workspace(at))
    return await in_thread(_shown, skill, args.path, args.offset)


def _workspace(at: Surroundings) -> str | None:
    return str(at.workspace.root) if at.workspace else None


def list_skills(folders: Sequence[str], workspace: str | None = None) -> str:
    """Say which skills there are, and of those that can not be used, why."""
    found = skills_in(folders, workspace)
    there = [skill for skill in found if skill.problem != UNTRUSTED]
    lines = [_skill_line(skill) for skill in sorted(there, key=lambda each: bool(each.problem))]
    more = len(lines) - MOST_LISTED
    lines = lines[:MOST_LISTED] + ([f"[{more} more are not shown]"] if more > 0 else [])
    lines += [
        f"[the skills' folder {printable_path(each)} is not there]" for each in missing_in(folders)
    ]
    if unread := len(found) - len(there):
        lines.append(f"[{unread} more: {UNTRUSTED}]")
    return "\n".join(lines) or "there are no skills"


def load_skill(name: str, folders: Sequence[str], workspace: str | None = None) -> str:
    """Return a skill's instructions, and the names of its other files. Raises ToolError."""
    skill = skill_named(name, folders, workspace)
    text = _shown(skill, FILE, 0)
    files = files_of(skill, MOST_FILES + 1)
    if not files:
        return text
    cut = "\n[there are more]" if len(files) > MOST_FILES else ""
    names = "\n".join(printable_path(each) for each in files[:MOST_FILES])
    return f"{text}\n\n[files of this skill, for skills_read_file:]\n{names}{cut}"


def _shown(skill: Skill, path: str, offset: int) -> str:
    text = read_text(skill, path)
    if offset and offset >= len(text):
        raise ToolError(f"{printable_path(path)} has {len(text)} characters: nothing at {offset}")
    part = text[offset : offset + PAGE]
    end = offset + len(part)
    if end == len(text):
        return part or "(an empty file)"
    return f"{part}\n[cut: go on with skills_read_file, path {path!r}, offset {end} of {len(text)}]"


def _skill_line(skill: Skill) -> str:
    if skill.problem:
        return f"{skill.name}: can not be used: {skill.problem}"
    return f"{skill.name}: {skill.description}" if skill.description else skill.name


SKILL_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool(SKILLS_LIST, SkillsListArgs, "none", _list, toolset="skills"),
    shipped_tool("skills_load", SkillsLoadArgs, "none", _load, toolset="skills"),
    shipped_tool("skills_read_file", SkillsReadFileArgs, "none", _read_file, toolset="skills"),
)


# --- What a repository says to whoever works in it: ``AGENTS.md`` and its kin.


def read_instructions(
    task_id: str, workspace: str, settings: ProjectInstructions
) -> Instructions | None:
    """Return what a workspace's repository says, the nearest file first (FA-12); blocks.

    Files lie in the workspace and in the folders above it, up to the one that holds ``.git`` and
    never beyond: no link leads out of it. A text that stands there twice is shown once. What does
    not fit ``max_chars`` is cut, which the text says. None where there is nothing to tell.
    """
    place = Path(os.path.realpath(workspace))
    if not place.is_dir():
        return None
    root = repository_above(place) or place
    above = [each for each in (place, *place.parents) if each.is_relative_to(root)]
    texts, unread, left = dict[str, str](), list[str](), settings.max_chars
    for path in (str(each.relative_to(root) / name) for each in above for name in settings.files):
        try:
            data = FilesBeneath(root).read(path)
        except FileMissing:
            continue
        except (ToolError, OSError) as error:
            unread.append(f"not read: {error}".replace("the workspace", "the repository"))
            continue
        text = unix_newlines(data.decode("utf-8-sig", errors="replace")).strip()
        if text and text not in texts.values():
            texts[printable_path(path)] = text
    files = dict[str, str]()
    for path, text in texts.items():
        shown = "".join(char for char in text[:left] if not is_hidden(char))
        cut = len(text) - left
        files[path] = f"{shown}\n[cut: {cut} more characters are not shown]" if cut > 0 else shown
        left = max(-cut, 0)
    told = files or unread
    return Instructions(task_id=task_id, files=files, unread=tuple(unread)) if told else None
