"""Who only looks on is told afterwards what a task would have been given."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from tests.parts import settings

from daruma.state.lessons import Experience, Setback, Tried
from daruma.tools.evolution.learning import Learning, learn
from daruma.tools.evolution.lessons import in_words, would_have_been
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.shelf import shelf
from daruma.tools.evolution.variants import Variant, Variants

FELL = Setback(kind="check", actor="main", signature="s", text="assert 3 == 4", ended=True)


def ended(number: int, **changes: Any) -> Experience:
    """The same task, for the so-manyth time."""
    failed = Experience(
        task_id=f"t/{number}", owner="o", mode="react", status="failed",
        goal="Fix the rounding of the invoices", at=1000.0 * number, setbacks=(FELL,),
    )  # fmt: skip
    return replace(failed, **changes)


async def learned(store: InMemoryStore, *experiences: Experience, **evolution: Any) -> None:
    for each in experiences:
        await learn(each, Learning(store, settings(evolution=evolution)))


async def test_the_first_would_have_been_given_nothing_the_next_what_it_fell_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """EV-03: by what was known before it, and its own failure is not among that."""
    store = InMemoryStore()
    caplog.set_level(logging.INFO, "daruma.evolution")

    await learned(store, ended(1), ended(2))

    (found,) = await would_have_been(store, "o", 10)
    assert found.task_id == "t/2"
    assert found.would_have is not None
    assert [each.text for each in found.would_have.lessons.pitfalls] == ["assert 3 == 4"]
    (pitfall,) = await Pitfalls(store, "o").all()
    assert [message for message in caplog.messages if "would have" in message] == [
        "task t/1 would have been given nothing",
        f"task t/2 would have been given pitfall {pitfall.id}",
    ]


async def test_learning_from_a_task_again_does_not_change_it() -> None:
    """DU-06: by then its own failure is known, and it is no reader of that."""
    store = InMemoryStore()

    await learned(store, ended(1), ended(1), ended(2), ended(2))

    assert [each.task_id for each in await would_have_been(store, "o", 10)] == ["t/2"]


async def test_the_newest_come_first_and_not_more_than_asked_for() -> None:
    """Others' never."""
    store = InMemoryStore()

    await learned(store, *(ended(number) for number in range(1, 5)), ended(9, owner="other"))

    assert [each.task_id for each in await would_have_been(store, "o", 2)] == ["t/4", "t/3"]


async def test_what_is_fed_back_is_not_told_of() -> None:
    """It was given, and stands in the task's result."""
    store = InMemoryStore()

    await learned(store, ended(1), ended(2), observe_only=False)

    assert await would_have_been(store, "o", 10) == []


async def test_variants_and_recoveries_are_told_of_too() -> None:
    """EV-03, RE-08: an addition that waits, and an action that has worked three times."""
    store = InMemoryStore()
    variant = Variant(
        id="v1", owner="o", actor="main", place="system", text="Round.", advice="Round."
    )
    await Variants(store, "o").put(variant)
    tried = Tried(
        actor="main", signature="main:timeout:x", strategy="alternative-tool", by="model",
        worked=True, tool="search", instead="view",
    )  # fmt: skip

    await learned(
        store,
        *(ended(n, status="completed", setbacks=(), tried=(tried,)) for n in range(1, 5)),
    )

    newest = (await would_have_been(store, "o", 10))[0]
    assert newest.would_have is not None
    said = in_words(newest.would_have)
    assert "instruction v1" in said
    assert "alternative-tool view, sure by 0.80, against main:timeout:x" in said


async def test_what_does_not_fit_is_passed_over() -> None:
    """Of an older form, or damaged."""
    store = InMemoryStore()
    await learned(store, ended(1), ended(2))

    await store.aput(shelf("o", "experiences"), "x", {"would_have": "something"})

    assert [each.task_id for each in await would_have_been(store, "o", 10)] == ["t/2"]
