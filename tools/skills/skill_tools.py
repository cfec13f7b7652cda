"""The tools with which the model finds and reads skills (CX-05)."""

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from daruma.tools.errors import ToolError
from daruma.tools.files.paths import shown
from daruma.tools.files.threads import in_thread
from daruma.tools.shipped_tool import shipped_tool
from daruma.tools.skills.skill_contents import files_of, read_text
from daruma.tools.skills.skills import FILE, Skill, missing_in, skill_named, skills_in
from daruma.tools.tool import Surroundings, Tool

SKILLS_LIST: Final = "skills_list"

PAGE: Final = 16_000
"""Characters of a file that are shown at once: about 4,000 tokens."""

MOST_LISTED: Final = 200
"""Skills; beyond that a list is no help."""

MOST_FILES: Final = 50
"""Files of a skill that are named when it is loaded."""


class SkillsListArgs(BaseModel):
    """List the skills: instructions for kinds of work, each with what it is for."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SkillsLoadArgs(BaseModel):
    """Read a skill's instructions, before doing work of its kind; names its other files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="The name that skills_list shows.")


class SkillsReadFileArgs(BaseModel):
    """Read a file that a skill's instructions name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="The skill's name.")
    path: str = Field(description="The file, as it is named within the skill's folder.")
    offset: int = Field(default=0, ge=0, description="Character to begin with, from 0.")


async def _list(_: SkillsListArgs, at: Surroundings) -> str:
    return await in_thread(listed, at.settings.skills.folders)


async def _load(args: SkillsLoadArgs, at: Surroundings) -> str:
    return await in_thread(loaded, args.name, at.settings.skills.folders)


async def _read_file(args: SkillsReadFileArgs, at: Surroundings) -> str:
    folders = at.settings.skills.folders
    return await in_thread(_page, args.name, args.path, folders, args.offset)


def listed(folders: Sequence[str]) -> str:
    """Say which skills there are, and of those that can not be used, why."""
    there = skills_in(folders)
    lines = [_line(skill) for skill in sorted(there, key=lambda each: bool(each.problem))]
    more = len(lines) - MOST_LISTED
    lines = lines[:MOST_LISTED] + ([f"[{more} more are not shown]"] if more > 0 else [])
    lines += [f"[the skills' folder {shown(each)} is not there]" for each in missing_in(folders)]
    return "\n".join(lines) or "there are no skills"


def loaded(name: str, folders: Sequence[str]) -> str:
    """Return a skill's instructions, and the names of its other files. Raises ToolError."""
    skill = skill_named(name, folders)
    text = _shown(skill, FILE, 0)
    files = files_of(skill, MOST_FILES + 1)
    if not files:
        return text
    cut = "\n[there are more]" if len(files) > MOST_FILES else ""
    names = "\n".join(shown(each) for each in files[:MOST_FILES])
    return f"{text}\n\n[files of this skill, for skills_read_file:]\n{names}{cut}"


def _page(name: str, path: str, folders: Sequence[str], offset: int) -> str:
    return _shown(skill_named(name, folders), path, offset)


def _shown(skill: Skill, path: str, offset: int) -> str:
    text = read_text(skill, path)
    if offset and offset >= len(text):
        raise ToolError(f"{shown(path)} has {len(text)} characters: nothing at {offset}")
    part = text[offset : offset + PAGE]
    end = offset + len(part)
    if end == len(text):
        return part or "(an empty file)"
    return f"{part}\n[cut: go on with skills_read_file, path {path!r}, offset {end} of {len(text)}]"


def _line(skill: Skill) -> str:
    if skill.problem:
        return f"{skill.name}: can not be used: {skill.problem}"
    return f"{skill.name}: {skill.description}" if skill.description else skill.name


SKILL_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool(SKILLS_LIST, SkillsListArgs, "none", _list, toolset="skills"),
    shipped_tool("skills_load", SkillsLoadArgs, "none", _load, toolset="skills"),
    shipped_tool("skills_read_file", SkillsReadFileArgs, "none", _read_file, toolset="skills"),
)
