"""What stands at the head of a request beside its prompt: pieces from the settings, and memories.

It depends on the task and on what was recalled for it, not on how far the work has come: a provider
keeps the head of a conversation in its cache as long as it stays the same.
"""

from collections.abc import Mapping
from typing import Literal

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state.channels import State
from daruma.state.relevant_context import relevant_context
from daruma.state.settings_memory import PromptPiece

Place = Literal["system", "task", "plan"]


def opening(state: State, prompts: Mapping[str, PromptPiece]) -> list[AnyMessage]:
    """Return the messages before the conversation: the memories, then the pieces for the task."""
    ours = state.recalled and state.recalled.task_id == state.task_id
    recalled = relevant_context(state.recalled) if ours else ""
    texts = (recalled, *pieces(state, prompts, "task"))
    return [HumanMessage(text) for text in texts if text]


def pieces(state: State, prompts: Mapping[str, PromptPiece], place: Place) -> tuple[str, ...]:
    """Return the pieces for a place, in the order of the settings: those for everybody, and those
    for the role of the team member whose task this is.
    """
    role = state.task.expert if state.task else None
    named = (each for each in prompts.values() if each.place == place)
    return tuple(each.text.strip() for each in named if each.role in (None, role))
