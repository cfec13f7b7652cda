"""What experience is searched by for a task: its goal, and the skills that are about that."""

from collections.abc import Sequence
from typing import Final

from daruma.tools.memory.relevance import related
from daruma.tools.skills.skills import usable_in

LONGEST: Final = 4_000
"""Characters of a goal that are searched with; pasted logs tell little after that."""


def skills_about(goal: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the skills that a goal is about; this reads the disk.

    The rule is that of recalled memories: a skill's name and description share a third of the
    goal's telling words, two at most, or a name as code writes it.
    """
    there = usable_in(folders) if folders else []
    return tuple(
        skill.name for skill in there if related(goal, f"{skill.name} {skill.description}")
    )


def task_query(goal: str, skills: Sequence[str] = ()) -> str:
    """Return the text to search with: the beginning of a long goal, and the skills' names."""
    return " ".join((goal[:LONGEST], *skills)).strip()
