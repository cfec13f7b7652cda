"""What can go wrong with a model or a tool, and how a run has to end for it."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault

Situation = Literal["always", "once", "backed"]
"""The fault comes with every request; with the first only; with those to a model with a fallback"""


@dataclass(frozen=True)
class Ending:
    """How a run ended; ``requests`` is how many the server got, at most where it is expected."""

    status: str
    code: str | None
    requests: int

    def __str__(self) -> str:
        how = f"{self.status}, `{self.code}`" if self.code else self.status
        return f"{how}, {self.requests}"


Expected = Mapping[Situation, Ending]


@dataclass(frozen=True)
class Row:
    """One fault: what the server says in place of an answer, and the endings by situation.

    Where it ``hangs``, only a limit ends the request.
    """

    says: Callable[[dict[str, Any]], Answer]
    expected: Expected
    tools: tuple[Callable[..., Any], ...] = field(default=())
    reachable: bool = True
    hangs: bool = False


def says(fault: Callable[[], Answer], expected: Expected, **changes: Any) -> Row:
    return Row(lambda _: fault(), expected, **changes)


def done(requests: int) -> Ending:
    return Ending("completed", None, requests)


def failed(requests: int, code: str = "llm_failure") -> Ending:
    return Ending("failed", code, requests)


def again(code: str = "llm_failure") -> Expected:
    """Tried three times, then the next model; by recovery, and once more after it."""
    return {"always": failed(9, code), "once": done(2), "backed": done(4)}


NEXT: Expected = {"always": failed(3), "once": done(3), "backed": done(2)}
"""Never tried again on the same model: the next one, else recovery."""
FINAL: Expected = {"always": failed(3), "once": done(3), "backed": failed(3)}
"""The request itself is refused: no model would take it; recovery changes it or gives up."""
REFUSED: Expected = dict.fromkeys(("always", "once", "backed"), failed(1))
"""The key is not accepted: nothing that is done here helps."""
UNUSABLE: Expected = {"always": failed(3), "once": done(3), "backed": failed(3)}
"""The model has answered; it is asked anew after recovery."""


def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def fall(amount: int) -> str:
    """Pay an amount, and fall over."""
    raise RuntimeError(f"the bank fell over at {amount}")


async def hang(amount: int) -> str:
    """Pay an amount, and never come back."""
    await asyncio.Event().wait()
    return f"paid {amount}"


def call(name: str, arguments: Any = None) -> Reply:
    return Reply(calls=[{"name": name, "arguments": arguments or {"amount": 5}}])


def speaking_of_tools() -> Mapping[str, Any]:
    return {"error": {"message": "this model does not support tools", "param": "tools"}}


def alternating(request: Mapping[str, Any]) -> Reply:
    """Two calls in turn, for ever."""
    told = sum(message["role"] == "tool" for message in request["messages"])
    return call("pay", {"amount": told % 2})


def after_its_call(name: str) -> Callable[[Mapping[str, Any]], Reply]:
    """One call, and an answer whatever it came to."""

    def reply(request: Mapping[str, Any]) -> Reply:
        told = any(message["role"] == "tool" for message in request["messages"])
        return Reply("Done.") if told else call(name)

    return reply


LOOPING: Expected = {"always": failed(10, "loop_detected")}
TOOL: Expected = {"always": done(2)}

ROWS: dict[str, Row] = {
    "404": says(lambda: Fault(404), NEXT),
    "400 that speaks of tools": says(lambda: Fault(400, speaking_of_tools()), NEXT),
    "422 that speaks of tools": says(lambda: Fault(422, speaking_of_tools()), NEXT),
    "422": says(lambda: Fault(422), FINAL),
    "401": says(lambda: Fault(401), REFUSED),
    "408": says(lambda: Fault(408), again()),
    "409": says(lambda: Fault(409), again()),
    "429 with Retry-After": says(lambda: Fault(429, headers={"Retry-After": "0"}), again()),
    "500": says(lambda: Fault(500), again()),
    "503": says(lambda: Fault(503), again()),
    "no answer in time": says(lambda: Fault(hang=threading.Event()), again("timeout"), hangs=True),
    "cut before the first token": says(lambda: Fault(cut="before_first_token"), again()),
    "cut later": says(lambda: Fault(cut="later"), again()),
    "cut without a finish reason": says(lambda: Fault(cut="unfinished"), again()),
    "no more chunks": says(
        lambda: Fault(cut="later", hang=threading.Event()), again("timeout"), hangs=True
    ),
    "keep-alive comments alone": says(lambda: Fault(keep_alive=True), again("timeout"), hangs=True),
    "a body that is no JSON": says(lambda: Fault(malformed=True), again()),
    "no choices": says(lambda: Reply(no_choices=True), again()),
    "no server": says(Fault, {"always": failed(0)}, reachable=False),
    "a blank answer": says(lambda: Reply(" \n"), UNUSABLE),
    "a refusal": says(lambda: Reply(refusal="I can not help with that."), UNUSABLE),
    "cut off at the length limit": says(lambda: Reply("It is", finish_reason="length"), UNUSABLE),
    "calls that can not be read": says(
        lambda: call("pay", json.dumps({"amount": 5})[:-3]), LOOPING, tools=(pay,)
    ),
    "the same call for ever": says(lambda: call("pay"), LOOPING, tools=(pay,)),
    "two calls in turn for ever": Row(alternating, LOOPING, tools=(pay,)),
    "a tool that raises": Row(after_its_call("fall"), TOOL, tools=(fall,)),
    "a tool that hangs": Row(after_its_call("hang"), TOOL, tools=(hang,)),
}
