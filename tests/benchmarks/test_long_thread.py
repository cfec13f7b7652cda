"""A step of a long thread keeps as many bytes as one of a short thread (DU-08).

``python -m tests.benchmarks growth`` measures 1,000 steps, and time as well.
"""

from itertools import pairwise

import pytest
from tests.benchmarks.ground import Stores
from tests.benchmarks.long_thread import Mark, long_thread
from tests.benchmarks.systems import daruma
from tests.benchmarks.task import Task

from daruma import aopen_postgres


async def marks_of(url: str, task: Task, every: int) -> list[Mark]:
    """Run a task, with each call of its tool noted, and mark it after every so many steps."""
    async with aopen_postgres(url) as postgres:
        agent = daruma(task, Stores(daruma=postgres), "external")
        marks = await long_thread(agent, task, url, range(0, task.steps + 1, every))
    return list(marks.values())


@pytest.mark.long
async def test_what_a_step_keeps_does_not_grow(postgres_url: str) -> None:
    """What is new, and nothing of what was there; whole copies add up to a part of that."""
    marks = await marks_of(postgres_url, Task(100), every=20)

    assert [mark.steps for mark in marks] == [0, 20, 40, 60, 80, 100]
    first, _, copied, late, _ = [after.since(before).kept for before, after in pairwise(marks)]
    assert late / first < 1.05
    assert copied / first < 2.5
    assert first / 20 < 10_800


@pytest.mark.long
async def test_a_large_output_is_kept_once(postgres_url: str) -> None:
    """By reference, and however often a whole copy of the history is kept."""
    marks = await marks_of(postgres_url, Task(10, size=200_000), every=10)

    assert 200_000 < marks[-1].kept / 10 < 250_000
