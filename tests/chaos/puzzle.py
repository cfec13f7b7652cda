"""Tasks whose every step needs the one before it, and a model that does them from what it is sent.

The model is a pure function of a request: whoever drives it, a step that is lost, made up or cut
short shows in the answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.openai_answers import Reply

from daruma.tools.calls._resolve import ASK_NAMES

MOST_STEPS = 6
LETTERS = "abcdefghkmnpqrstuvwxyz"
FOUND = re.compile(r"(T\d+-\w+): value (\d+)\. (?:Next: (\{.*?\}\})|That was the last)")
FIRST = re.compile(r"Begin with (\{.*?\}\})")
RETRY = {
    "strategy": "retry",
    "reasoning": "It may have passed.",
    "action": {},
    "expected_outcome": "The next step is done.",
    "confidence": 0.9,
}

Call = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """A call that has to be made, by the mark that it is known by, and what it is worth."""

    mark: str
    call: Call
    value: int


@dataclass(frozen=True)
class Puzzle:
    """A chain of steps: each one's result names the next."""

    steps: Sequence[Step]

    @property
    def goal(self) -> str:
        """The task, in words."""
        return (
            f"Begin with {json.dumps(self.steps[0].call)}. Each result names the next call. Add"
            " up the values, and answer: The sum is N."
        )

    @property
    def answer(self) -> str:
        """What is right."""
        return told(sum(step.value for step in self.steps))

    def result(self, mark: str) -> str:
        """Return what the call of a step says. Raises ``LookupError`` for what is not there."""
        marks = [step.mark for step in self.steps]
        if mark not in marks:
            raise LookupError(f"there is nothing under {mark}")
        at = marks.index(mark)
        rest = self.steps[at + 1 :]
        then = f"Next: {json.dumps(rest[0].call)}" if rest else "That was the last"
        return f"{mark}: value {self.steps[at].value}. {then}."


def puzzle(number: int) -> Puzzle:
    """Make the task of a number: always the same one."""
    draw = Random(f"puzzle {number}")  # noqa: S311  # tasks are no secrets
    return Puzzle([_step(number, at, draw) for at in range(draw.randint(1, MOST_STEPS))])


def _step(number: int, at: int, draw: Random) -> Step:
    mark = f"T{number}-{''.join(draw.choices(LETTERS, k=6))}{at}"
    arguments: Call = {"key": mark}
    if at % 2:
        arguments = {"number": draw.randint(1, 99), "code": mark}
    name = "open_drawer" if at % 2 else "look_up"
    return Step(mark, {"name": name, "arguments": arguments}, draw.randint(10, 99))


def told(total: int) -> str:
    """Return an answer in words."""
    return f"The sum is {total}."


def model(request: Mapping[str, Any]) -> Reply:
    """Answer a request: the next call, the sum when all is known, or what else is asked for."""
    messages = request["messages"]
    if "tools" not in request:
        return _aside(messages)
    known = {found[1]: found for message in messages for found in FOUND.finditer(said(message))}
    first = next(found[1] for m in messages if (found := FIRST.search(said(m))))
    wanted, total = json.loads(first), 0
    while found := known.get(_mark(wanted)):
        total += int(found[2])
        if found[3] is None:
            return Reply(told(total))
        wanted = json.loads(found[3])
    return Reply(calls=[{**wanted, "id": f"call_{len(messages)}"}])


def said(message: Mapping[str, Any]) -> str:
    """Return the text of a message, but for what the model itself has said."""
    return "" if message["role"] == "assistant" else str(message["content"])


def _mark(call: Call) -> str:
    arguments = call["arguments"]
    return str(arguments.get("key") or arguments.get("code"))


def _aside(messages: Sequence[Mapping[str, Any]]) -> Reply:
    """Answer what an agent asks beside the task: names to be repaired, or how to recover."""
    system = str(messages[0]["content"])
    if "repairs" not in system:
        return Reply(json.dumps(RETRY))
    calls = json.loads(messages[-1]["content"])["calls"] if system.startswith(ASK_NAMES) else []
    repairs = [
        {
            "tool_call_id": call["tool_call_id"],
            "name": "look_up" if '"key"' in call["arguments_excerpt"] else "open_drawer",
        }
        for call in calls
    ]
    return Reply(json.dumps({"repairs": repairs}))
