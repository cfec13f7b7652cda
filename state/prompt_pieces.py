"""The pieces of prompts that settings name, each at its place (CX-05).

They depend on the task, not on how far its work has come: a provider keeps the head of a
conversation in its cache as long as it stays the same.
"""

from collections.abc import Mapping
from typing import Literal

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state.channels import State
from daruma.state.settings_memory import PromptPiece

Place = Literal["system", "task", "plan"]


def pieces(state: State, prompts: Mapping[str, PromptPiece], place: Place) -> tuple[str, ...]:
    """Return the pieces for a place, in the order of the settings.

    Those for everybody, and those for the role of the team member whose task this is.
    """
    role = state.task.expert if state.task else None
    named = (each for each in prompts.values() if each.place == place)
    return tuple(each.text.strip() for each in named if each.role in (None, role))


def said_before(state: State, prompts: Mapping[str, PromptPiece]) -> list[AnyMessage]:
    """Return the pieces for the task, as messages that stand before the conversation."""
    return [HumanMessage(text) for text in pieces(state, prompts, "task") if text]
