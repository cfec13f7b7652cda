"""The world that an agent works in: a model's server and two tools, both faulty at one rate."""

import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from tests.chaos.faults import drawn, faulty, trouble
from tests.chaos.puzzle import model, puzzle
from tests.openai_server import Answer

MARK = re.compile(r"T(\d+)-")

ToolFunction = Callable[..., Coroutine[Any, Any, str]]


class World:
    """Answers every request, and counts them by task."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.requests: Counter[int] = Counter()
        self._runs: Counter[int] = Counter()

    def reply(self, request: Mapping[str, Any]) -> Answer:
        """Answer as the model does, or as it fails."""
        number = _number(json.dumps(request["messages"]))
        self.requests[number] += 1
        draw = drawn(self.rate, "request", number, self.requests[number])
        answer = model(request)
        return faulty(answer, draw) if draw else answer

    def tools(self) -> list[ToolFunction]:
        """Return the two tools that every task needs."""

        async def look_up(key: str) -> str:
            """Look up what is kept under a key."""
            return self._found(key)

        async def open_drawer(number: int, code: str) -> str:
            """Open the drawer of a number with its code."""
            return self._found(code) if number else ""

        return [look_up, open_drawer]

    def _found(self, mark: str) -> str:
        number = _number(mark)
        self._runs[number] += 1
        if draw := drawn(self.rate, "tool", number, self._runs[number]):
            raise ConnectionError(trouble(draw))
        return puzzle(number).result(mark)


def _number(text: str) -> int:
    found = MARK.search(text)
    if found is None:
        raise LookupError(f"no task is named in {text[:200]}")
    return int(found[1])
