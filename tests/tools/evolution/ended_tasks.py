"""Experiences and setbacks that tests of evolution are made of."""

from dataclasses import replace
from typing import Any

from daruma.state.lessons import Experience, KnownPitfall, Lessons, Pitfall, Setback
from daruma.tools.evolution import Pitfalls
from daruma.tools.evolution._pitfalls import evidence_of_setback

ROUNDING = "Fix the rounding of invoices in bill/split.py"
PARSER = "Document the options of the config parser"


def a_setback(signature: str = "check:pytest:test_sum", **changes: Any) -> Setback:
    """A red check that the task fell to, unless told otherwise."""
    red = Setback(kind="check", actor="main", signature=signature, text="pytest: it is red")
    return replace(replace(red, ended=True), **changes)


def an_experience(number: int = 1, goal: str = ROUNDING, **changes: Any) -> Experience:
    """A task that failed ``number`` seconds after the beginning, unless told otherwise."""
    failed = Experience(
        checked=True,
        task_id=f"t{number}/1",
        owner="o",
        mode="plan_exec",
        status="failed",
        goal=goal,
        at=float(number),
    )
    return replace(failed, **changes)


def told_of(*ids: str, task: str = "t1/1") -> Lessons:
    """The lessons of a task that was told of pitfalls."""
    return Lessons(task_id=task, pitfalls=tuple(KnownPitfall(id=id_, text="x") for id_ in ids))


async def on_record(
    pitfalls: Pitfalls, setback: Setback, experience: Experience, min_confidence: float
) -> Pitfall:
    """Put on record that a task met a setback, and return the pitfall that it belongs to."""
    fact = evidence_of_setback(setback, experience)
    summaries = await pitfalls.record(fact, min_confidence)
    (found,) = (each.pitfall for each in summaries if fact in each.facts)
    return replace(found, shared=pitfalls.shared)


async def similar(
    pitfalls: Pitfalls, goal: str, now: float, least: float = 0.5, limit: int = 3
) -> list[Pitfall]:
    """The pitfalls that fit a goal best, looked up as a task's lessons are."""
    ops = pitfalls.similar_ops(goal)
    results = await pitfalls.store.abatch(ops)
    near = await pitfalls.nearest(ops, results, 0.6)
    return pitfalls.similar_of(results, goal, now, min_confidence=least, limit=limit, near=near)
