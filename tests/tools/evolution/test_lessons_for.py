"""Looking lessons up takes bounded time, finds what fits, and never fails a task."""

import asyncio
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

from daruma.graph.storage.postgres import aopen_postgres
from daruma.state.events import Event, LessonsGiven
from daruma.state.lessons import Experience, Lessons, Setback
from daruma.state.mode import Mode
from daruma.tools.evolution.lessons import SECONDS, lessons_for, told
from daruma.tools.evolution.pitfalls import Pitfalls

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


async def test_where_there_is_nothing_to_give_nothing_is_given() -> None:
    """And nothing is told."""
    events: list[Event] = []

    assert told(await found(InMemoryStore()), a_context(events=events)) is None
    assert events == []


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
    lessons = told(await found(store, seconds=0.3), a_context(events=events))

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


async def test_it_is_the_same_on_postgres(postgres_url: str) -> None:
    """The store that is in use."""
    async with aopen_postgres(postgres_url) as postgres:
        await holding(postgres.store, "assert 3 == 4")
        await holding(postgres.store, "the logo is red", goal="Draw the logo of the company anew")

        assert texts(await found(postgres.store)) == ["assert 3 == 4"]
