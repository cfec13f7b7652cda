"""What a run tells those who follow it: events, server-sent events, HTTP status."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.graph.workers.test_work import ASKED, PLANNED, at_work, graph_on, jobs_on
from tests.parts import settings
from tests.scripted_runs import calls, say

from daruma.graph.build import build_graph
from daruma.graph.follow import render_event, server_sent, status_of, stop_of
from daruma.graph.models import ScriptedChatModel
from daruma.graph.requests import NoSuchThread, NotNow, RequestRefused
from daruma.graph.run import NotFollowed
from daruma.graph.standing import standings
from daruma.graph.storage import (
    EVENTS_AT_ONCE,
    StoredEvent,
    aopen_postgres,
    athread_held,
    open_postgres,
)
from daruma.graph.sync import run
from daruma.graph.workers import acancel, asubmit, awork, submit, work
from daruma.graph.workers._execution import join_texts
from daruma.state.errors import DamagedState, DarumaError, StorageUnavailable, ThreadBusy
from daruma.state.interrupts import AnsweredAlready, ReplyRefused

# --- Events as browsers listen to them.


def test_an_event_is_one_block() -> None:
    """Its lines are one: a line break within would end it."""
    text = render_event(StoredEvent(7, {"type": "reflected", "text": "one\ntwo é"}))

    assert text == 'id: 7\nevent: reflected\ndata: {"type": "reflected", "text": "one\\ntwo é"}\n\n'


class Slow:
    """Events of which the second one comes when it is let."""

    def __init__(self) -> None:
        self.let, self.closed = asyncio.Event(), False

    async def __aiter__(self) -> AsyncGenerator[StoredEvent]:
        try:
            yield StoredEvent(1, {"type": "one"})
            await self.let.wait()
            yield StoredEvent(2, {"type": "two"})
        finally:
            self.closed = True


async def test_a_long_silence_is_broken() -> None:
    """By comments, which listeners pass over; then the events go on."""
    slow: Any = Slow()
    told = aiter(server_sent(slow, every=0.001))

    first, silence = await anext(told), await anext(told)
    slow.let.set()
    rest = [each async for each in told if not each.startswith(":")]

    assert (first[:5], silence) == ("id: 1", ": still there\n\n")
    assert [each[:5] for each in rest] == ["id: 2"]
    assert slow.closed


async def test_who_goes_away_leaves_nothing_behind() -> None:
    """The events are closed with their listener."""
    slow: Any = Slow()
    told: Any = server_sent(slow)
    await anext(told)

    await told.aclose()

    assert slow.closed


# --- Which status is answered where something is refused.


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NoSuchThread, 404),
        (NotNow, 409),
        (AnsweredAlready, 409),
        (ThreadBusy, 409),
        (RequestRefused, 422),
        (ReplyRefused, 422),
        (StorageUnavailable, 503),
        (DamagedState, 500),
    ],
)
def test_each_refusal_has_its_status(error: type[DarumaError], status: int) -> None:
    """The narrowest class that is known counts."""
    assert status_of(error("why")) == status


# --- Following a thread that somebody else runs: all of its events, once, and an end.

THREAD: Any = {"configurable": {"thread_id": "t"}}


def types(heard: list[StoredEvent]) -> list[str]:
    return [each.type for each in heard]


async def test_who_follows_hears_all_of_a_run(postgres_url: str) -> None:
    """From the first event to the stop, in their order, over connections of his own."""
    async with aopen_postgres(postgres_url) as pg, aopen_postgres(postgres_url) as elsewhere:
        events = await graph_on(elsewhere).afollow(THREAD)
        await asubmit(elsewhere, ASKED, "t")
        async with at_work(graph_on(pg)), asyncio.timeout(30):
            heard = [each async for each in events]

    assert types(heard)[0] == "task_started"
    assert types(heard)[-2:] == ["task_completed", "run_stopped"]
    assert (heard[-1].event["outcome"], heard[-1].event["result"]["output"]) == ("done", "First.")
    assert [each.id for each in heard] == sorted({each.id for each in heard})


async def test_who_comes_back_goes_on_where_he_was(postgres_url: str) -> None:
    """After any event: what comes is what was left, whether the run is over or not."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        events = await graph.afollow(THREAD)
        await asubmit(pg, ASKED, "t")
        await awork(graph, wait=False)
        heard = [each async for each in events]

        for number, each in enumerate(heard[:-1]):
            rest = [each async for each in await graph.afollow(THREAD, after=each.id)]
            assert rest == heard[number + 1 :]


async def test_the_end_is_told_once(postgres_url: str) -> None:
    """Also where it is the last of as many events as are read at once."""
    async with aopen_postgres(postgres_url) as pg:
        stop = {"type": "run_stopped", "outcome": "done"}
        told = [*({"type": "e"} for _ in range(EVENTS_AT_ONCE - 1)), stop]
        await pg.checkpointer.events.write("t", "r", told)

        heard = [each async for each in await graph_on(pg).afollow(THREAD, after=0)]

    assert [each.event for each in heard] == told


@pytest.mark.long
async def test_a_run_that_waits_says_for_what(postgres_url: str) -> None:
    """The stop holds the question; once it is answered the events are those of what comes then."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, PLANNED, "t")
        await awork(graph, wait=False)
        (stop,) = [each async for each in await graph.afollow(THREAD)]
        (question,) = stop.event["questions"]
        events = await graph.afollow(THREAD)
        await asubmit(pg, Command(resume={question["id"]: {"decision": "confirm"}}), "t")
        await awork(graph, wait=False)

        heard = [each async for each in events]

        assert stop.event["outcome"] == "waiting"
        assert types(heard)[:2] == ["question_closed", "spec_review_completed"]
        assert heard[-1].event["outcome"] == "done"


async def test_a_run_that_could_not_be_made_says_why(postgres_url: str) -> None:
    """What a job fails with is the last that is heard."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, [{"raise": "down"}], fallback_chain={"enabled": False})
        events = await graph.afollow(THREAD)
        await asubmit(pg, ASKED, "t")
        await awork(graph, wait=False)

        heard = [each async for each in events]

        assert heard[-1].event["outcome"] == "failed"
        assert "ScriptedFault: down" in heard[-1].event["error"]
        assert (await graph.alook(THREAD)).error == heard[-1].event["error"]


@pytest.mark.parametrize("begun", [True, False])
async def test_a_failed_job_counts_until_the_thread_goes_on(
    postgres_url: str, tmp_path: Path, begun: bool
) -> None:
    """DU-07: what came after it counts, in any process; the job is kept for a week."""
    asked: Any = ASKED if begun else ASKED | {"workspace": str(tmp_path / "gone")}
    (tmp_path / "gone").mkdir()
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, [{"raise": "down"}], fallback_chain={"enabled": False})
        await asubmit(pg, asked, "t")
        (tmp_path / "gone").rmdir()
        await awork(graph, wait=False)
        failed = await graph.alook(THREAD)

        await graph_on(pg).ainvoke(None if begun else ASKED, THREAD)
        after = await graph.alook(THREAD)

        assert (failed.status, after.status, after.error) == ("failed", "completed", "")
        assert await standings(pg.checkpointer.database) == {}
        assert await jobs_on(pg) == [("daruma.carry_out", "failed")]


async def test_an_open_question_is_where_a_thread_stands(postgres_url: str) -> None:
    """PL-04: also where a job failed behind it; its line is told along."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await graph.ainvoke(PLANNED, THREAD)
        snapshot = await graph.aget_state(THREAD)

    (question,) = stop_of(snapshot).questions
    open_, answered = (
        stop_of(snapshot, answered=ids, error="why") for ids in ((), (question["id"],))
    )
    assert (open_.outcome, open_.questions, open_.error) == ("waiting", (question,), "why")
    assert answered.outcome == "failed"


@pytest.mark.long
async def test_what_is_queued_behind_a_run_is_heard_too(postgres_url: str) -> None:
    """A thread has stopped when nothing is left to do on it."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        events = await graph.afollow(THREAD)
        for text in ("one", "two"):
            await asubmit(pg, {"messages": [("user", text)], "mode": "direct_chat"}, "t")
        await awork(graph, wait=False)

        heard = [each async for each in events]

        assert types(heard).count("run_stopped") == 2


async def test_who_goes_away_leaves_the_run_alone(postgres_url: str) -> None:
    """Cancelled in the midst of listening."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        async with at_work(graph) as lines:
            events = await graph.afollow(THREAD)

            async def listen() -> None:
                async for _ in events:
                    listening.cancel()

            listening = asyncio.create_task(listen())
            await asubmit(pg, ASKED, "t")
            await asyncio.wait([listening])
            await lines.until("completed")

        assert listening.cancelled()
        assert (await graph.alook(THREAD)).status == "completed"


def test_a_thread_may_wait_for_events(postgres_url: str) -> None:
    """Synchronously, while a worker runs on another thread."""
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        events = graph.follow(THREAD)
        submit(pg, ASKED, "t")
        working = threading.Thread(target=lambda: run(awork(graph, wait=False)))
        working.start()

        heard = [*events]

        working.join()
        assert types(heard)[-1] == "run_stopped"


@pytest.mark.long
async def test_a_second_answer_is_refused_where_it_is_given(postgres_url: str) -> None:
    """No worker has taken up the first one yet."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, PLANNED, "t")
        await awork(graph, wait=False)
        (question,) = (await graph.alook(THREAD)).questions
        reply: Any = Command(resume={question["id"]: {"decision": "confirm"}})
        await asubmit(pg, reply, "t")

        with pytest.raises(AnsweredAlready):
            await asubmit(pg, reply, "t")

        assert (await graph.alook(THREAD)).status == "queued"
        await awork(graph, wait=False)
        assert (await graph.alook(THREAD)).status == "completed"


def test_where_a_thread_stands_is_seen_by_anybody(postgres_url: str) -> None:
    """Synchronously: queued, waiting, and gone."""
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        submit(pg, PLANNED, "t")
        queued = graph.look(THREAD)
        work(graph, wait=False)
        waiting = graph.look(THREAD)
        with pytest.raises(NoSuchThread, match="no thread 'u'"):
            graph.look({"configurable": {"thread_id": "u"}})

    assert (queued.status, queued.goal, queued.events) == ("queued", "Do it", ())
    assert (waiting.status, len(waiting.questions)) == ("waiting", 1)
    assert waiting.events[0]["type"] == "task_started"
    assert waiting.to_dict()["timeline"][0]["kind"] == "request"


def test_a_thread_that_nobody_else_gets_at_is_not_followed() -> None:
    """It is said what is missing."""
    graph = build_graph(ScriptedChatModel(script={"main": [say("Done.")]}), (), settings())

    with pytest.raises(NotFollowed, match="persistence=pg"):
        graph.follow(THREAD)


async def test_a_job_that_has_told_its_end_is_done(postgres_url: str) -> None:
    """Though it was not put away yet: its thread can be answered at once."""
    async with aopen_postgres(postgres_url) as pg:
        await asubmit(pg, ASKED, "t")
        database, log = pg.checkpointer.database, pg.checkpointer.events
        queued = (await standings(database))["t"]
        told = {"type": "run_stopped"}
        await log.write("t", str((queued.submitted or {})["name"]), [told])

        assert await standings(database) == {}


# --- The words of models, for who listens; and ending what a worker does.

KEY = "sk-proj-" + "a1B2" * 12


@pytest.mark.long
@pytest.mark.parametrize("key", [None, bytes(range(32))], ids=["in clear", "sealed"])
async def test_who_follows_hears_the_words_of_a_model_as_they_come(
    empty_postgres_url: str, key: Any
) -> None:
    """SE-08: whole, without keys; and none of it is stored."""
    text = f"Who is {KEY}? " + "🎎" * 700 + "名\x00é" * 900
    async with (
        aopen_postgres(empty_postgres_url, key=key) as pg,
        aopen_postgres(empty_postgres_url, key=key) as elsewhere,
    ):
        graph = graph_on(pg, {"main": [say(text)]})
        events = await graph_on(elsewhere).afollow(THREAD)
        await asubmit(elsewhere, ASKED, "t", tokens=True)
        async with at_work(graph), asyncio.timeout(30):
            heard = [each async for each in events]
        kept = await pg.checkpointer.events.read("t", 0)

    said = [each for each in heard if each.type == "model_text"]
    told = "".join(each.event["text"] for each in said)
    assert told.startswith("Who is ")
    assert told.count("名") == 900
    assert KEY not in told
    assert len(said) > 1
    assert [each for each in heard if each.type != "model_text"] == kept
    assert [each.id for each in heard] == sorted(each.id for each in heard)


def words(text: str, node: str = "main") -> dict[str, Any]:
    return {"type": "model_text", "node": node, "call": 0, "attempt": 1, "text": text}


ENDED = {"type": "model_call_completed", "node": "main"}


@pytest.mark.parametrize(
    ("told", "over", "joined", "held"),
    [
        ([words("a"), words("b c"), words(" d")], False, ["ab c "], ["d"]),
        ([words("a b"), ENDED], False, ["a b", ENDED], []),
        ([words("a b", "plan"), ENDED], False, [ENDED, "a "], ["b"]),
        ([words("a b")], True, ["a b"], []),
        ([words("名a")], False, ["名"], ["a"]),
        ([words(KEY[:20]), {"type": "other"}, words(KEY[20:]), ENDED], False, None, []),
    ],
)
def test_the_words_of_an_answer_are_joined(
    told: list[dict[str, Any]], over: bool, joined: list[Any] | None, held: list[str]
) -> None:
    """SE-08: a key that comes in pieces is masked: its last word is held back until it is whole."""
    out, left = join_texts(told, over=over)

    assert [each["text"] for each in left] == held
    assert KEY[:12] not in str(out)
    if joined is not None:
        assert [each.get("text", each) for each in out] == joined


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef1234567890 ok", "abcdef"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY ok", "wJalr"),
        (
            "-----BEGIN PRIVATE KEY-----" + "\nMIIEowIB" * 9 + "\n-----END PRIVATE KEY-----\nok",
            "MIIE",
        ),
    ],
)
def test_a_secret_that_its_surroundings_tell_is_masked_in_pieces_too(
    text: str, secret: str
) -> None:
    """SE-08: they were told before it came."""
    said: list[str] = []
    left: list[dict[str, Any]] = []
    for at in range(0, len(text), 4):
        out, left = join_texts([*left, words(text[at : at + 4])], over=False)
        said += [each["text"] for each in out]
    out, left = join_texts([*left, ENDED], over=False)
    said += [each["text"] for each in out[:-1]]

    assert secret not in "".join(said)
    assert "".join(said).endswith("ok")
    assert {*out[0]} == {*words("")}
    assert left == []


@pytest.mark.long
async def test_what_a_worker_does_can_be_cancelled(postgres_url: str) -> None:
    """EM-02: the run ends, its job does not come back, followers hear so, and it can be resumed."""
    began = asyncio.Event()
    first = True

    async def press() -> str:
        """Press."""
        nonlocal first
        began.set()
        if first:
            first = False
            await asyncio.Event().wait()
        return "pressed"

    async with aopen_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script=[calls({"name": "press", "args": {}}), say("Done.")])
        given = settings(tools={"in_doubt": "tell"})
        graph = build_graph(model, [press], given, persistence=pg)
        with pytest.raises(NoSuchThread):
            await acancel(pg, "t")
        async with at_work(graph), asyncio.timeout(30):
            events = await graph.afollow(THREAD)
            await asubmit(pg, ASKED, "t")
            await began.wait()
            await acancel(pg, "t")
            stop = [each async for each in events][-1]
            events = await graph.afollow(THREAD)
            with pytest.raises(NotNow, match="nothing to cancel"):
                await acancel(pg, "t")
            await asubmit(pg, None, "t")
            done = [each async for each in events][-1]
        await asubmit(pg, ASKED, "t")  # which is queued, and nobody works
        await acancel(pg, "t")
        await awork(graph, wait=False)
        look = await graph.alook(THREAD)

    assert stop.event["outcome"] == "unfinished"
    assert (done.event["outcome"], done.event["result"]["output"]) == ("done", "Done.")
    assert len([each for each in look.timeline if each.kind == "request"]) == 1


async def test_who_runs_a_thread_without_a_worker_is_not_cancelled(postgres_url: str) -> None:
    """It says who could."""
    async with aopen_postgres(postgres_url) as pg, athread_held(pg.checkpointer, "t"):
        with pytest.raises(NotNow, match="run by no worker"):
            await acancel(pg, "t")
