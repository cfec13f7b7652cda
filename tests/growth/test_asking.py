"""Asking a model takes no function of Python for each message of the history."""

import sys
from types import FrameType

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from daruma.graph.models import Request, ScriptedChatModel
from daruma.tools.context import Sampling
from daruma.tools.model_requests import sendable

SCRIPT = [{"say": "Yes.", "usage": {"input": 1, "output": 1}}]


def history(length: int) -> list[BaseMessage]:
    """A conversation of so many messages."""
    return [
        AIMessage(f"It is {n}.") if n % 2 else HumanMessage(f"What is {n}?") for n in range(length)
    ]


async def counted(messages: list[BaseMessage], sampling: Sampling | None) -> int:
    """Return how many functions of Python one call of a model runs."""
    model, count = ScriptedChatModel(script=SCRIPT), 0

    def noted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    request = Request(sendable(messages), sampling=sampling)
    before = sys.getprofile()
    sys.setprofile(noted)
    try:
        answer = await request.sent(model, {})
    finally:
        sys.setprofile(before)
    assert answer.text == "Yes."
    return count


async def test_a_long_history_is_handed_over_as_it_is() -> None:
    """LangChain would look at what kind each is, and check each: they are messages already."""
    for sampling in (None, Sampling(temperature=0)):
        await counted(history(5), sampling)  # what is done once is done
        short = await counted(history(10), sampling)
        assert await counted(history(400), sampling) <= short + 3
