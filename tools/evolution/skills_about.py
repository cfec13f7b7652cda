"""Which skills a task is about: experience is searched by its goal and by them."""

from collections.abc import Sequence

from daruma.tools.memory.relevance import related
from daruma.tools.skills.skills import usable_in


def skills_about(goal: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the skills that a goal is about; this reads the disk.

    The rule is that of recalled memories: a skill's name and description share a third of the
    goal's telling words, two at most, or a name as code writes it.
    """
    there = usable_in(folders) if folders else []
    return tuple(
        skill.name for skill in there if related(goal, f"{skill.name} {skill.description}")
    )
