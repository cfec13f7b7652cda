"""The settings of what is known beside the conversation: memory, skills, pieces of prompts."""

from typing import Literal

from pydantic import Field

from daruma.state.settings_section import Section


class Memory(Section):
    """What is remembered from one task to the next, in the graph's store."""

    enabled: bool = Field(
        default=True,
        description="Remember, and recall when a task begins, where there is a store.",
    )
    search_limit: int = Field(
        default=5, ge=0, description="Memories that are recalled, and found by one search."
    )
    namespace: str | None = Field(
        default=None,
        min_length=1,
        description="Whose memories: null is the workspace's, any text a user's or a project's.",
    )


class Skills(Section):
    """Folders with a ``SKILL.md``: what the model can read up when a task asks for it."""

    folders: tuple[str, ...] = Field(
        default=(), description="Folders that hold skills, each a folder with a SKILL.md."
    )


class PromptPiece(Section):
    """A named piece of the prompt, and where it stands.

    ``system`` is the end of the system prompt, ``task`` stands before the request, ``plan`` at the
    end of the planner's prompt. With a ``role`` only that expert of a team is told.
    """

    text: str = Field(min_length=1, description="What is added, word for word.")
    place: Literal["system", "task", "plan"] = Field(
        default="system", description="Which prompt it stands in, and where."
    )
    role: str | None = Field(
        default=None, description="The expert of a team who alone is told; null: everybody."
    )
