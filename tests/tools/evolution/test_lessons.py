"""What a task is given of what earlier ones taught, and what it would have been given (EV-05)."""

import asyncio
import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Result
from langgraph.store.memory import InMemoryStore
from tests.parts import a_context, a_task, settings
from tests.tools.evolution.ended_tasks import on_record
from typing_extensions import override

from daruma.state.events import Event, LessonsGiven
from daruma.state.lessons import Experience, Lessons, Setback, Tried
from daruma.state.mode import Mode
from daruma.tools.evolution import (
    Learning,
    Pitfalls,
    Variant,
    Variants,
    counterfactual_lessons,
    finish_within,
    learn,
    lessons_for,
    report_lessons,
)
from daruma.tools.evolution._learning import SECONDS, GaveUp, render_counterfactual

# --- What only helps is waited for as long as it is worth.


async def after(event: asyncio.Event) -> int:
    await event.wait()
    return 7


async def test_what_does_not_heed_a_cancellation_is_left_alone() -> None:
    """The limit holds for it as well."""
    event = asyncio.Event()

    async def stubborn() -> int:
        try:
            return await after(event)
        except asyncio.CancelledError:
            return await after(event)

    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        await finish_within(stubborn(), 0.05)
    assert time.monotonic() - began < 5.0
    event.set()


async def test_who_cancels_it_elsewhere_does_not_cancel_the_waiter() -> None:
    """A store that cancels its own work has only failed."""

    async def cancelled() -> int:
        raise asyncio.CancelledError

    with pytest.raises(GaveUp):
        await finish_within(cancelled(), 5.0)


async def test_a_cancellation_of_the_waiter_ends_the_work() -> None:
    """Who ends the run ends it."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(finish_within(work(), 60.0))
    await begun.wait()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ended.wait()


# --- Looking lessons up takes bounded time, finds what fits, and never fails a task.

GOAL = "Fix the rounding of the invoices in split.py"
FED_BACK = {"observe_only": False}


class Failing(InMemoryStore):
    """A store that answers with an error, or not at all, even where it is cancelled."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__()
        self.error = error
        self.released = asyncio.Event()

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        if self.error:
            raise self.error
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        return []


class Counting(InMemoryStore):
    """A store that counts its calls."""

    calls = 0

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        self.calls += 1
        return await super().abatch(ops)


async def holding(store: BaseStore, *texts: str, actor: str = "main", goal: str = GOAL) -> None:
    """Keep a failed task for each text."""
    for number, text in enumerate(texts):
        setback = Setback(
            kind="check", actor=actor, signature=f"check:{text}", text=text, ended=True
        )
        ended = Experience(
            task_id=f"o/{text[:20]}/{number}", owner="o", mode="react", status="failed", goal=goal,
            at=99.0,
        )  # fmt: skip
        await on_record(Pitfalls(store, "o"), setback, ended, 0.5)


async def found(
    store: BaseStore | None,
    goal: str = GOAL,
    *,
    mode: Mode = "react",
    seconds: float = SECONDS,
    skills: str = "",
    **evolution: Any,
) -> Lessons | None:
    sections = {
        "evolution": FED_BACK | evolution,
        "skills": {"folders": [skills] if skills else []},
    }
    context = replace(a_context(given=settings(**sections)), store=store)
    task = a_task(mode, experience_owner="o", goal=goal)
    return await lessons_for(task, context, seconds=seconds)


def texts(lessons: Lessons | None) -> list[str]:
    return [each.text for each in lessons.pitfalls] if lessons else []


async def test_what_a_task_like_it_fell_to_is_found_by_one_call() -> None:
    """EV-05: what another kind of task fell to is not."""
    store = Counting()
    await holding(store, "assert 3 == 4")
    await holding(store, "the logo is red", goal="Draw the logo of the company anew")
    before = store.calls

    lessons = await found(store)

    assert texts(lessons) == ["assert 3 == 4"]
    assert lessons is not None
    assert (lessons.task_id, lessons.note) == ("t/1", "")
    assert store.calls - before == 1


@pytest.mark.parametrize(("least", "told"), [(0.59, 1), (0.61, 0)])
async def test_what_is_less_sure_than_settings_ask_is_not_told(least: float, told: int) -> None:
    """EV-03: one task makes it 0.6."""
    store = InMemoryStore()
    await holding(store, "assert 3 == 4")

    assert len(texts(await found(store, min_confidence=least))) == told


async def test_no_more_than_three() -> None:
    """EV-05: however many there are."""
    store = InMemoryStore()
    await holding(store, *(f"assert {name} == 4" for name in "abcdef"))

    assert len(texts(await found(store))) == 3


async def test_the_experts_pitfalls_are_the_planner_s_too() -> None:
    """EV-05: whoever of a team it happened to, who plans can avoid it."""
    store = InMemoryStore()
    await holding(store, "assert 3 == 4", actor="developer")

    lessons = await found(store)

    assert lessons is not None
    assert [each.actor for each in lessons.pitfalls] == ["developer"]


@pytest.mark.parametrize("off", [{"enabled": False}, {"observe_only": True}])
async def test_it_is_off_where_nothing_is_fed_back(off: dict[str, Any]) -> None:
    """EV-03: then the store is not even asked."""
    assert await found(Failing(RuntimeError("asked")), **off) is None
    assert await found(Failing(RuntimeError("asked")), mode="direct_chat") is None
    assert await found(None) is None


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (None, "no answer within 0.3 s"),
        (ConnectionError("postgres://a:secret@h\nis down"), "postgres://[key]@h is down"),
        (KeyError(), "KeyError"),
        (asyncio.CancelledError(), "it was given up"),
    ],
)
async def test_a_store_that_fails_costs_only_the_lessons(
    error: BaseException | None, why: str
) -> None:
    """EV-05: in a line, without secrets; one that does not heed the limit is not waited for."""
    events: list[Event] = []
    store = Failing(error)

    began = time.monotonic()
    lessons = report_lessons(await found(store, seconds=0.3), a_context(events=events))

    assert time.monotonic() - began < SECONDS
    note = f"no lessons of earlier tasks were looked up: {why}"
    assert lessons == Lessons(task_id="t/1", note=note)
    assert events == [LessonsGiven(note=note)]
    store.released.set()


async def test_keys_in_what_others_kept_are_not_told() -> None:
    """Whoever wrote it into the store."""
    store = InMemoryStore()
    await holding(store, "assert 3 == 4")
    (item,) = await store.asearch(("daruma", "evolution", "o", "pitfalls"))
    pitfall = item.value["pitfall"] | {"advice": "use sk-abcdefgh1234\n\x1b[2J" + "x" * 100_000}
    await store.aput(item.namespace, item.key, item.value | {"pitfall": pitfall})

    lessons = await found(store)

    assert lessons is not None
    (told_of,) = lessons.pitfalls
    assert told_of.advice.startswith("use [key] [2Jxxx")
    assert len(told_of.advice) <= 300


async def test_a_skill_that_the_goal_is_about_is_searched_with(tmp_path: Path) -> None:
    """EV-05: it makes goals more alike; here by enough."""
    (tmp_path / "rounding").mkdir()
    (tmp_path / "rounding" / "SKILL.md").write_text(
        "---\nname: rounding\ndescription: How amounts are rounded\n---\nDo it.\n"
    )
    store = InMemoryStore()
    setback = Setback(kind="check", actor="main", signature="s", text="assert 3 == 4", ended=True)
    goal = "Fix rounding amounts invoices spring"
    ended = Experience(
        task_id="o/1", owner="o", mode="react", status="failed", goal=goal, at=99.0,
        skills=("rounding",),
    )  # fmt: skip
    await on_record(Pitfalls(store, "o"), setback, ended, 0.5)
    asked = "Fix rounding amounts bills autumn winter"

    assert texts(await found(store, asked)) == []
    assert texts(await found(store, asked, skills=str(tmp_path))) == ["assert 3 == 4"]


# --- Who only looks on is told afterwards what a task would have been given.

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

    (found,) = await counterfactual_lessons(store, "o", 10)
    assert found.task_id == "t/2"
    assert found.would_have is not None
    assert [each.text for each in found.would_have.lessons.pitfalls] == ["assert 3 == 4"]
    (pitfall,) = await Pitfalls(store, "o").all()
    assert [message for message in caplog.messages if "would have" in message] == [
        "task t/1 would have been given nothing",
        f"task t/2 would have been given pitfall {pitfall.id}",
    ]


async def test_the_newest_come_first_and_not_more_than_asked_for() -> None:
    """Others' never."""
    store = InMemoryStore()

    await learned(store, *(ended(number) for number in range(1, 5)), ended(9, owner="other"))

    assert [each.task_id for each in await counterfactual_lessons(store, "o", 2)] == ["t/4", "t/3"]


async def test_what_is_fed_back_is_not_told_of() -> None:
    """It was given, and stands in the task's result."""
    store = InMemoryStore()

    await learned(store, ended(1), ended(2), observe_only=False)

    assert await counterfactual_lessons(store, "o", 10) == []


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

    newest = (await counterfactual_lessons(store, "o", 10))[0]
    assert newest.would_have is not None
    said = render_counterfactual(newest.would_have)
    assert "instruction v1" in said
    assert "alternative-tool view, sure by 0.80, against main:timeout:x" in said
