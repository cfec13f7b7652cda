"""What worked before is done again only where it is known, sure, fed back and quickly told."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Op
from langgraph.store.memory import InMemoryStore
from tests.parts import a_context, a_failure, a_state, a_task, settings
from typing_extensions import override

from daruma.state.failure import Failure
from daruma.state.lessons import Experience, Tried
from daruma.state.recovery import RecoveryAction, Strategy
from daruma.tools.context import Context
from daruma.tools.evolution.recoveries import learn_recoveries
from daruma.tools.recovery.proposal import learned_against

NEVER = pytest.param({"enabled": False, "observe_only": False}, id="off")
LOOKING_ON = pytest.param({"enabled": True, "observe_only": True}, id="looking on")


class Failing(InMemoryStore):
    """A store that does not answer."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.error = error

    @override
    async def abatch(self, ops: Iterable[Op]) -> Any:
        if self.error:
            raise self.error
        return await asyncio.Future()


async def knowing(
    strategy: Strategy = "retry",
    worked: int = 3,
    failed: int = 0,
    *,
    owner: str = "o",
    actor: str = "main",
) -> InMemoryStore:
    """A store that holds what so many tasks tried against ``a_failure``."""
    store = InMemoryStore()
    for number in range(worked + failed):
        tried = Tried(
            actor=actor,
            signature=a_failure().signature,
            strategy=strategy,
            by="model",
            worked=number < worked,
        )
        experience = Experience(
            task_id=f"t/{number}",
            owner=owner,
            mode="react",
            status="completed",
            goal="g",
            at=99.0,
            tried=(tried,),
        )
        await learn_recoveries(experience, store)
    return store


def with_store(store: BaseStore | None, **evolution: Any) -> Context:
    given = settings(evolution={"observe_only": False} | evolution)
    return replace(a_context(given=given), store=store)


async def against(
    context: Context, failure: Failure | None = None, owner: str = "o", **task: Any
) -> RecoveryAction | None:
    state = a_state(task=a_task(experience_owner=owner, **task))
    return await learned_against(state, failure or a_failure(), context, seconds=0.05)


async def test_what_worked_against_the_same_failure_is_found() -> None:
    """RE-08: and it is on record that it was learned."""
    context = with_store(await knowing())

    found = await against(context)
    assert found == RecoveryAction(strategy="retry", confidence=0.8, by="learned")
    assert await against(context, a_failure(message="other")) is None


@pytest.mark.parametrize(
    ("strategy", "worked", "failed"),
    [("retry", 2, 0), ("retry", 3, 1), ("escalate", 8, 0), ("give-up", 8, 0)],
)
async def test_what_is_not_sure_or_would_ask_a_person_is_not_learned(
    strategy: Strategy, worked: int, failed: int
) -> None:
    """A model may know better."""
    assert await against(with_store(await knowing(strategy, worked, failed))) is None


async def test_another_owners_and_another_actors_are_not_seen() -> None:
    """EV-04: neither in another workspace, nor by the planner or an expert."""
    context = with_store(await knowing())

    assert await against(context, owner="p") is None
    assert await against(context, expert="tester") is None
    assert await against(with_store(await knowing(actor="tester")), expert="tester")
    assert await against(with_store(await knowing(actor="plan"))) is None


@pytest.mark.parametrize("evolution", [NEVER, LOOKING_ON])
async def test_nothing_is_fed_back_that_settings_do_not_want_to_be(evolution: Any) -> None:
    """EV-03: to look on is the default."""
    assert await against(with_store(await knowing(), **evolution)) is None


async def test_without_a_store_nothing_is_known() -> None:
    """And nothing fails."""
    assert await against(with_store(None)) is None


@pytest.mark.parametrize("error", [OSError("no store"), None], ids=["fails", "hangs"])
async def test_a_store_that_fails_or_hangs_is_passed_over(error: OSError | None) -> None:
    """RE-05: recovery itself never raises, and is not held up."""
    assert await against(with_store(Failing(error))) is None


class Stubborn(InMemoryStore):
    """A store that does not answer, and does not heed that nobody waits for it any more."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.release = asyncio.Event(), asyncio.Event()

    @override
    async def abatch(self, ops: Iterable[Op]) -> Any:
        self.asked.set()
        while not self.release.is_set():
            with suppress(asyncio.CancelledError):
                await self.release.wait()
        return await super().abatch(ops)


async def test_a_store_that_can_not_be_called_off_is_passed_over() -> None:
    """RE-05: the answer comes before the store does."""
    store = Stubborn()

    assert await against(with_store(store)) is None

    assert not store.release.is_set()
    store.release.set()


async def test_a_store_that_gives_up_is_passed_over() -> None:
    """Its cancellation, as when it is being closed, is not the task's."""
    assert await against(with_store(Failing(asyncio.CancelledError()))) is None


async def test_a_cancellation_is_no_failure_of_what_was_learned() -> None:
    """Cancellation passes through all of it."""
    store = Stubborn()
    task = asyncio.ensure_future(against(with_store(store)))
    await store.asked.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    store.release.set()
