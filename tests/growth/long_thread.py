"""One long thread, step by step: what each hundred steps of it cost in time and in bytes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import psycopg
from langchain_core.runnables import RunnableConfig
from tests.scripted_runs import say

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import Postgres
from daruma.state.settings import Settings
from daruma.state.step import Step

_BYTES: Final = """
SELECT (SELECT coalesce(sum(octet_length(blob)), 0) FROM checkpoint_blobs)
    + (SELECT coalesce(sum(octet_length(blob)), 0) FROM checkpoint_writes)
    + (SELECT coalesce(sum(octet_length(checkpoint::text) + octet_length(metadata::text)), 0)
       FROM checkpoints)
    + (SELECT coalesce(sum(octet_length(output)), 0) FROM daruma_outputs)
"""
"""What was written, before Postgres compresses it."""


@dataclass(frozen=True)
class Mark:
    """How far a thread had come after a number of steps: seconds run, bytes kept."""

    steps: int
    seconds: float
    kept: int
    asking: float = 0.0
    """Of the seconds, those within model calls."""
    working: float = 0.0
    """Seconds of a processor that this process took: on a busy machine they tell more."""


def long_thread(
    postgres: Postgres,
    url: str,
    *,
    steps: int,
    size: int,
    every: int = 100,
    budget: int | None = None,
) -> list[Mark]:
    """Run a thread of so many steps, each with an output of ``size`` characters, and mark it.

    With a ``budget`` no request has more tokens than that.
    """
    given = _settings(steps, budget)
    graph = build_graph(_model(steps), [_teller(size)], given, persistence=postgres)
    config: RunnableConfig = {"configurable": {"thread_id": "long"}, "recursion_limit": 5 * steps}
    marks = [Mark(0, 0.0, 0)]
    done, ran, asking, worked = 0, 0.0, 0.0, 0.0
    since, began = time.perf_counter(), time.process_time()
    with psycopg.connect(url, autocommit=True) as other:
        for part in graph.stream({"messages": [("user", "Go on")]}, config, stream_mode="updates"):
            asking += sum(step.seconds for step in _steps_in(part))
            done += "tool" in part
            if "tool" in part and done % every == 0:
                ran += time.perf_counter() - since
                worked += time.process_time() - began
                kept = other.execute(_BYTES).fetchone() or (0,)
                marks.append(Mark(done, ran, int(kept[0]), asking, worked))
                since, began = time.perf_counter(), time.process_time()
    return marks


def between(marks: list[Mark]) -> list[Mark]:
    """Return what each stretch between two marks came to, by its own."""
    return [
        Mark(
            after.steps,
            after.seconds - before.seconds,
            after.kept - before.kept,
            after.asking - before.asking,
            after.working - before.working,
        )
        for before, after in pairwise(marks)
    ]


def _steps_in(part: dict[str, Any]) -> list[Step]:
    return [step for update in part.values() for step in (update or {}).get("steps", ())]


def _settings(steps: int, budget: int | None) -> Settings:
    return Settings.model_validate(
        {"budgets": {"max_steps": steps + 1}, "llm": {"context_window_tokens": budget}}
    )


def _model(steps: int) -> ScriptedChatModel:
    usage = {"input": 1, "output": 1}  # an estimate would count the whole history each time
    asked = [
        {"calls": [{"name": "tell", "args": {"number": n}}], "usage": usage} for n in range(steps)
    ]
    summaries = [{"say": "They told of numbers.", "usage": usage}] * steps
    script = {"main": [*asked, {**say(), "usage": usage}], "compress": summaries}
    return ScriptedChatModel(script=script)


def _teller(size: int) -> Callable[..., Any]:
    def tell(number: int) -> str:
        """Say something new about a number."""
        return (f"{number} is followed by {number + 1}. " * size)[:size]

    return tell
