"""A run is measured whole, or not at all."""

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.benchmarks.ground import FACES, Face, Ground, ground_on
from tests.benchmarks.running import awaited, run_once
from tests.benchmarks.systems import BARE, RAW, SYSTEMS
from tests.benchmarks.task import Task


@pytest.fixture
def ground(postgres_server: str) -> Iterator[Ground]:
    """Databases that nobody else uses."""
    with ground_on(postgres_server) as ground:
        yield ground


class Idle:
    """An agent that answers at once."""

    def invoke(self, given: Any, _config: Any) -> Any:
        return given


@pytest.mark.long
def test_a_run_that_leaves_calls_out_is_no_measurement(ground: Ground) -> None:
    """Whoever does less is not faster."""
    with pytest.raises(AssertionError, match="0 calls"):
        run_once(ground, "sync", Idle(), Task(3))


@pytest.mark.long
@pytest.mark.parametrize("face", FACES)
def test_the_floor_keeps_each_message_once(ground: Ground, face: Face) -> None:
    """Prompt, request, answers and results, in their order: it is a floor, and no cheat."""
    task = Task(3)

    run_once(ground, face, SYSTEMS[RAW](task, ground.stores[face]), task)

    with psycopg.connect(ground.urls["raw"]) as connection:
        kept = connection.execute(
            "SELECT number, body::json ->> 'type' FROM messages ORDER BY number"
        ).fetchall()
    kinds = ["system", "human", *["ai", "tool"] * 3, "ai"]
    assert kept == list(enumerate(kinds))


@pytest.mark.long
@pytest.mark.parametrize("face", FACES)
def test_a_peer_writes_each_step_on_its_own_saver(ground: Ground, face: Face) -> None:
    """A checkpoint for the request, and two a step: the model's and the tool's."""
    task = Task(3)

    run_once(ground, face, SYSTEMS[BARE](task, ground.stores[face]), task)

    with psycopg.connect(ground.urls["stock"]) as connection:
        row = connection.execute("SELECT count(*) FROM checkpoints").fetchone()
    assert row == (2 + 2 * 3 + 1,)


def test_the_clock_does_not_count_what_a_runner_says_to_nobody() -> None:
    """Python 3.11 writes an outcome out in words when it puts the handler of Ctrl-C back."""
    told: list[str] = []

    class Outcome:
        def __repr__(self) -> str:
            told.append("told")
            return "told"

    async def work() -> Outcome:
        return Outcome()

    with asyncio.Runner() as runner:
        outcome = awaited(Ground({}, runner, {}), work())

    assert isinstance(outcome, Outcome)
    assert told == []
