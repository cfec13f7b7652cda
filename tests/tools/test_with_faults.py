"""A tool can be made to fail as told, whatever kind of tool it is."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, say

from daruma.tools.calls.application_tool import from_application
from daruma.tools.calls.running import with_faults
from daruma.tools.calls.tool import Surroundings

DATA = {"data": [3, 1, 2]}


async def amedian(data: list[int]) -> float:
    """Return the median."""
    return median(data)


@tool
def declared(data: list[int]) -> float:
    """Return the median."""
    return median(data)


class OfItsOwn(BaseTool):
    """A tool that is no function."""

    name: str = "own"
    description: str = "Return the median."

    def _run(self, data: list[int]) -> float:
        return median(data)


KINDS = pytest.mark.parametrize(
    "kind", [median, amedian, declared, OfItsOwn()], ids=["plain", "async", "declared", "class"]
)


def run(faulty: BaseTool) -> str:
    """Call a tool as the machine does."""

    async def called() -> str:
        return await from_application(faulty).run(DATA, Surroundings())

    return asyncio.run(called())


@KINDS
def test_each_call_has_its_fault_and_later_ones_have_none(
    kind: Callable[..., Any] | BaseTool,
) -> None:
    """An exception is raised, a text returned; None lets the call be, and so does the end."""
    faulty = with_faults(kind, [ConnectionError("away"), "nonsense", None])

    with pytest.raises(ConnectionError, match="away"):
        run(faulty)
    assert [run(faulty) for _ in range(3)] == ["nonsense", "2", "2"]


@KINDS
def test_a_late_call_is_made_all_the_same(kind: Callable[..., Any] | BaseTool) -> None:
    """A number is how many seconds pass first; whoever has the time gets the result."""
    began = time.monotonic()
    result = run(with_faults(kind, [0.05]))

    assert result == "2"
    assert time.monotonic() - began >= 0.05


@KINDS
def test_a_late_call_meets_the_limit_of_the_machine(kind: Callable[..., Any] | BaseTool) -> None:
    """Which is what the fault is for: the model is told, and goes on."""
    late = with_faults(kind, [0.3])
    script = [calls(call(late.name, data=DATA["data"])), {**say(), "expect": ["outcome_unknown"]}]
    hurried = Run(script, tools=[late], settings=settings(tools={"timeout": 0.02})).ask()

    assert hurried.result.status == "completed"


@KINDS
def test_what_the_model_is_shown_is_the_tool_as_it_was(
    kind: Callable[..., Any] | BaseTool,
) -> None:
    """Faults change what happens, not what can be called."""
    as_it_was, faulty = from_application(kind), from_application(with_faults(kind, []))

    assert faulty.as_function() == as_it_was.as_function()
    assert faulty.effect == as_it_was.effect


def test_what_the_tool_declares_stays() -> None:
    """A fault in an idempotent tool is one of an idempotent tool."""
    kind = declared.model_copy(update={"metadata": {"daruma": {"idempotent": True}}})

    assert from_application(with_faults(kind, [])).idempotent


def test_side_by_side_each_fault_strikes_once() -> None:
    """Counting loses and repeats nothing when calls run at once."""
    faulty = with_faults(median, [str(number) for number in range(200)])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: int(faulty.invoke(DATA)), range(200)))

    assert sorted(found) == list(range(200))
