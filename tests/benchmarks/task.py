"""The one task of all benchmarks: a scripted model without delay that calls one tool, step by step.

All systems get the same kind of model, which finds its turn by the calls in the request: one
object serves any number of threads and graphs.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import PrivateAttr
from typing_extensions import override

from daruma.graph.models import CALL_KEY, ScriptedChatModel

PROMPT: Final = "You are an agent. Work on the task with your tools, then answer. " * 3
"""As long as what Daruma says to its model for this task."""

ASKED: Final[Any] = {"messages": [("user", "Go on until you are done.")]}
_USAGE: Final = {"input": 1, "output": 1}  # an estimate would count the whole history each time


class TurnByTurn(ScriptedChatModel):
    """A scripted model that finds its turn by the last calls that a request already holds."""

    _done: float = PrivateAttr(default=0.0)
    _between: float = PrivateAttr(default=0.0)

    @property
    def between(self) -> float:
        """Seconds by the clock from the last answer but one to the last request: one step alone.

        It is that of one thread; no other may ask the same model meanwhile. What LangChain does
        before the model has its request, and after the answer, is the step's.
        """
        return self._between

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        self._between = time.perf_counter() - self._done
        try:
            told = {CALL_KEY: self._turn_of(messages), **metadata}
            return super().answer(messages, metadata=told, tools=tools)
        finally:
            self._done = time.perf_counter()

    def _turn_of(self, messages: Sequence[BaseMessage]) -> int:
        # The last calls tell it: to count all answers would take longer with each of them.
        said = (each for each in reversed(messages) if isinstance(each, AIMessage))
        calls = next((each.tool_calls for each in said if each.tool_calls), ())
        return 1 + calls[-1]["args"]["number"] // len(calls) if calls else 0


class Task:
    """So many steps, each one model call and ``at_once`` calls of a tool that tells ``size`` signs.

    A tool waits for ``wait`` seconds: ``blocking`` in its thread, else on the loop. ``calls``
    counts what was called, and ``at_call`` is told that number.
    """

    def __init__(
        self,
        steps: int,
        *,
        size: int = 1000,
        at_once: int = 1,
        wait: float = 0.0,
        blocking: bool = True,
    ) -> None:
        self.steps, self.at_once = steps, at_once
        self.calls = 0
        self.at_call: Callable[[int], None] = lambda _: None
        self.model = TurnByTurn(script=_script(steps, at_once))
        self._size, self._wait, self._blocking = size, wait, blocking

    def tool(self, effect: str = "external") -> BaseTool:
        """Return the tool, declared to have an effect (only Daruma asks for that)."""
        given: dict[str, Any] = (
            {"func": self._tell} if self._blocking else {"coroutine": self._tell_later}
        )
        return StructuredTool.from_function(
            **given,
            name="tell",
            description="Say something about a number.",
            metadata={"daruma": {"effect": effect}},
        )

    def _tell(self, number: int) -> str:
        if self._wait:
            time.sleep(self._wait)
        return self._told(number)

    async def _tell_later(self, number: int) -> str:
        await asyncio.sleep(self._wait)
        return self._told(number)

    def _told(self, number: int) -> str:
        self.calls += 1
        self.at_call(self.calls)
        return told(number, self._size)


def told(number: int, size: int) -> str:
    """Return so many characters about a number: words, for Postgres makes repetitions small."""
    text = f"{number}: "
    begin = number * 997 % (len(_words()) - size)
    return text + _words()[begin : begin + size - len(text)]


@cache
def _words() -> str:
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    known = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(2000)]
    return " ".join(chance.choices(known, k=60_000))


def _script(steps: int, at_once: int) -> dict[str, Any]:
    turns = [[step * at_once + each for each in range(at_once)] for step in range(steps)]
    asked = [
        {"calls": [{"name": "tell", "args": {"number": n}} for n in numbers], "usage": _USAGE}
        for numbers in turns
    ]
    summaries = [{"say": "They told of numbers.", "usage": _USAGE}] * steps
    return {"main": [*asked, {"say": "Done.", "usage": _USAGE}], "compress": summaries}
