"""Sending many tasks through chaos at once, and counting how they end."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tests.chaos.create_agent_runs import CreateAgent
from tests.chaos.daruma_runs import Daruma
from tests.chaos.outcome import Outcome
from tests.chaos.puzzle import puzzle
from tests.chaos.world import ToolFunction, World
from tests.fault_matrix.runs import reached
from tests.openai_server import openai_server

AT_ONCE = 20
SYSTEMS: "dict[str, type[System]]" = {"Daruma": Daruma, "create_agent": CreateAgent}


class System(Protocol):
    """An agent that is driven through chaos."""

    def __init__(self, tools: list[ToolFunction], *, streaming: bool) -> None: ...

    async def __call__(self, goal: str, answer: str) -> Outcome:
        """Do a task and judge how it ended."""

    async def close(self) -> None:
        """Leave nothing behind."""


@dataclass(frozen=True)
class Tally:
    """How many tasks ended how, why those that did not end right, and what they cost."""

    verdicts: Counter[str]
    reasons: Counter[str]
    requests: float
    seconds: float

    @property
    def share(self) -> float:
        """The share that was completed right."""
        return self.verdicts["right"] / self.verdicts.total()


def measure(system: str, rate: float, tasks: Iterable[int], *, streaming: bool) -> Tally:
    """Do tasks with one system at one rate of faults."""
    world, numbers, began = World(rate), list(tasks), time.monotonic()
    with openai_server(world.reply, strict=False) as server, reached(server.url):
        outcomes = asyncio.run(_all(SYSTEMS[system], world, numbers, streaming=streaming))
    assert [found for found in server.violations if "reply failed" in found] == []
    return Tally(
        Counter(outcome.verdict for outcome in outcomes),
        Counter(f"{each.verdict}: {each.reason}" for each in outcomes if each.reason),
        world.requests.total() / len(numbers),
        time.monotonic() - began,
    )


async def _all(
    system: type[System], world: World, numbers: list[int], *, streaming: bool
) -> list[Outcome]:
    driven, room = system(world.tools(), streaming=streaming), asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Outcome:
        task = puzzle(number)
        async with room:
            return await driven(task.goal, task.answer)

    try:
        return await asyncio.gather(*map(one, numbers))
    finally:
        await driven.close()
