"""Recalling takes bounded time, finds what fits, and never fails a task."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Result
from langgraph.store.memory import InMemoryStore
from tests.parts import a_task, settings
from typing_extensions import override

from daruma.state.events import Event, MemoryRecalled
from daruma.state.lessons import Recalled
from daruma.tools.memory import MOST_CHARACTERS, SECONDS, Memories, new_memory, recall


class Failing(InMemoryStore):
    """A store that answers with an error, or not at all."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        if self.error:
            raise self.error
        await asyncio.Event().wait()
        return []


async def holding(*texts: str, role: str = "") -> InMemoryStore:
    store = InMemoryStore()
    for at, text in enumerate(texts):
        await Memories(store, "o").remember(new_memory(text, role=role, at=at))
    return store


async def recalled(
    store: BaseStore | None,
    about: str,
    *,
    expert: str | None = None,
    events: list[Event] | None = None,
    seconds: float = SECONDS,
    **memory: Any,
) -> Recalled | None:
    task = a_task(memory_owner="o", expert=expert)
    told = events if events is not None else []
    return await recall(
        task, about, store, settings(memory=memory).memory, told.append, seconds=seconds
    )


def texts(found: Recalled | None) -> Sequence[str]:
    assert found is not None
    return [memory.text for memory in found.memories]


async def test_what_fits_is_recalled_and_told() -> None:
    """CX-05: and nothing that is about something else, however much room there is."""
    events: list[Event] = []
    store = await holding("The billing tests need DB_URL.", "The logo is blue.")

    found = await recalled(store, "Fix the billing tests", events=events)

    assert texts(found) == ["The billing tests need DB_URL."]
    assert found is not None
    assert (found.task_id, found.note) == ("t/1", "")
    assert events == [MemoryRecalled(ids=(found.memories[0].id,))]


async def test_no_more_than_the_limit() -> None:
    """The best ones, in their order."""
    store = await holding(*(f"billing {'test ' * (n == 3)}{n}" for n in range(9)))

    found = texts(await recalled(store, "billing test", search_limit=2))

    assert len(found) == 2
    assert found[0] == "billing test 3"


async def test_no_more_than_a_request_can_bear() -> None:
    """Whatever the limit is set to."""
    store = await holding(*(f"billing {n} ".ljust(1990, "x") for n in range(20)))

    found = texts(await recalled(store, "billing", search_limit=20))

    assert len(found) == MOST_CHARACTERS // 1990


@pytest.mark.parametrize("off", [{"enabled": False}, {"search_limit": 0}])
async def test_it_can_be_switched_off(off: dict[str, Any]) -> None:
    """Then the store is not even asked."""
    assert await recalled(Failing(RuntimeError("asked")), "billing", **off) is None
    assert await recalled(None, "billing") is None


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (None, "no answer within 0.5 s"),
        (ConnectionError("postgres://a:secret@h\nis down"), "postgres://[key]@h is down"),
        (KeyError(), "KeyError"),
    ],
)
async def test_a_store_that_fails_costs_only_the_memories(
    error: Exception | None, why: str
) -> None:
    """In a line, without secrets; one that does not answer is not waited for."""
    events: list[Event] = []

    began = time.monotonic()
    found = await recalled(Failing(error), "billing", events=events, seconds=0.5)

    assert time.monotonic() - began < SECONDS
    note = f"no memories were recalled: {why}"
    assert found == Recalled(task_id="t/1", note=note)
    assert events == [MemoryRecalled(note=note)]


async def test_a_cancellation_is_no_failure_of_the_store() -> None:
    """Who ends the run ends it."""
    task = asyncio.ensure_future(recalled(Failing(asyncio.CancelledError()), "billing"))  # type: ignore[arg-type]  # is the point

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_expert_recalls_what_is_for_its_role() -> None:
    """CO-04: its own and the common ones."""
    store = await holding("billing is tested by hand", role="tester")

    assert texts(await recalled(store, "billing", expert="tester"))
    assert texts(await recalled(store, "billing", expert="developer")) == []
    assert texts(await recalled(store, "billing")) == []
