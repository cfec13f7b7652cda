"""The tools that ship beside those of the workspace, and where each set of them is shown."""

from typing import Final

from daruma.state.settings import Settings
from daruma.tools.assistant.keeping import KEEPING
from daruma.tools.assistant.making import MAKING
from daruma.tools.knowledge.knowledge_tools import KNOWLEDGE_TOOLS
from daruma.tools.memory.memory_tools import MEMORY_TOOLS
from daruma.tools.skills.skill_tools import SKILL_TOOLS
from daruma.tools.tool import Tool, Toolset

LIBRARIAN: Final = "librarian_retrieval"
"""The profile whose tools are those of the knowledge set."""

TOOLSET_TOOLS: Final[tuple[Tool, ...]] = (
    *MEMORY_TOOLS,
    *SKILL_TOOLS,
    *MAKING,
    *KEEPING,
    *KNOWLEDGE_TOOLS,
)
"""An application's tool of the same name takes the place of one of these."""


def usable(settings: Settings, *, workspace: bool, store: bool) -> frozenset[Toolset]:
    """Return the sets of tools that a task can use: what it has, and what settings ask for."""
    there: set[Toolset] = set()
    if workspace:
        there.add("workspace")
    if settings.skills.folders:
        there.add("skills")
    if store:
        there.update(settings.tools.toolsets)
        if settings.memory.enabled:
            there.add("memory")
        if settings.tools.profile == LIBRARIAN:
            there.add("knowledge")
    return frozenset(there)
