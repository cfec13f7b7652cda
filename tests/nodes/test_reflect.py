"""A reflection enters the next attempt; without one the attempt goes on all the same."""

import pytest
from langchain_core.messages import HumanMessage
from tests.parts import Says, a_context, a_task, taken

from daruma.nodes.reflect import reflect
from daruma.state.channels import State
from daruma.state.events import Event, Reflected
from daruma.state.failure import ModelFailed

STATE = State(messages=[HumanMessage("red")], task=a_task(), steps=taken("reflect"))


async def test_the_reflection_is_told_to_the_next_attempt() -> None:
    """VE-04: and its cost is counted under its own role."""
    ask = Says(" I multiplied. ")
    update = await reflect(STATE, a_context(ask=ask))

    (note,) = update["messages"]
    assert note.text == "Reflection: I multiplied.\n\nTry again."
    assert note.id == "t/1:reflection:1"
    (step,) = update["steps"]
    assert (step.kind, step.ok) == ("reflect", True)
    assert step.usage is not None
    assert step.usage.role == "reflect"
    assert ask.offered == [[]]


@pytest.mark.parametrize("answer", ["", ModelFailed("down")])
async def test_without_a_reflection_the_attempt_goes_on(answer: str | Exception) -> None:
    """VE-04: the try counts, or it would be made for ever."""
    update = await reflect(STATE, a_context(answer))

    assert "messages" not in update
    assert "failure" not in update
    assert [(s.kind, s.ok) for s in update["steps"]] == [("reflect", False)]


async def test_a_reflection_is_told() -> None:
    """Observers see it."""
    events: list[Event] = []
    await reflect(STATE, a_context("I multiplied.", events=events))

    assert Reflected(text="I multiplied.") in events
