"""Runs as AG-UI's events, with the types and the encoder of the ``ag-ui-protocol`` package."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from ag_ui.core import Event, RunAgentInput
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter
from tests.graph.protocols.clients import folder_in
from tests.spec.face import RecordingModel, call, calls, command, create, plan, say

from daruma import Settings, acancel, aopen_postgres, awork, build_graph
from daruma.graph.protocols import ag_ui_events
from daruma.graph.storage import Postgres

EVENT: TypeAdapter[Any] = TypeAdapter(Event)


@asynccontextmanager
async def worked(url: str, script: Any, with_tools: Any = ()) -> AsyncIterator[Postgres]:
    """Yield a database whose threads a worker of this process runs; a script may be a model."""
    model = script if isinstance(script, RecordingModel) else RecordingModel(script=script)
    async with aopen_postgres(url) as postgres:
        graph = build_graph(model, with_tools, Settings(), persistence=postgres)
        working = asyncio.create_task(awork(graph))
        try:
            yield postgres
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working


async def told(
    postgres: Postgres, folder: str, text: str = "", mode: str = "plan_exec", **given: Any
) -> Sequence[Any]:
    """Send what a front end sends, and return the events as it reads them."""
    messages = [{"id": text, "role": "user", "content": text}] if text else []
    sent = {"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": []}
    run_input = RunAgentInput.model_validate(sent | {"state": {}, "forwardedProps": {}} | given)
    events = ag_ui_events(postgres, run_input, workspace=folder, mode=mode)
    lines = [EventEncoder().encode(each) async for each in events]
    return [EVENT.validate_json(line.removeprefix("data: ")) for line in lines]


def reply(question: Any, payload: Any, status: str = "resolved") -> dict[str, Any]:
    """What a front end resumes with."""
    return {"resume": [{"interruptId": question.id, "status": status, "payload": payload}]}


def names(events: Sequence[Any]) -> list[str]:
    return [each.type.value for each in events]


async def test_a_run_stops_at_questions_and_goes_on_with_replies(
    postgres_url: str, tmp_path: Path
) -> None:
    """SE-03: a wrong reply, and none, leave the question open; what failed is an error."""
    script = {
        "plan": [plan({"id": "p1", "title": "Do it"})],
        "main": [
            calls(create("a.txt", "hello", "c1")),
            calls(command("rm -f gone", "c2")),
            say("All is made."),
        ],
    }
    folder = folder_in(tmp_path)
    async with worked(postgres_url, script) as postgres:
        first = await told(postgres, folder, "Make it")
        (review,) = first[-1].outcome.interrupts
        left = await told(postgres, folder, **reply(review, None, "cancelled"))
        wrong = await told(postgres, folder, **reply(review, {"decision": "perhaps"}))
        second = await told(postgres, folder, **reply(review, {"decision": "confirm"}))
        (approval,) = second[-1].outcome.interrupts
        (asked,) = approval.metadata["question"]["approvals"]
        yes = {"approval_id": "c2", "digest": asked["digest"], "decision": "approve"}
        last = await told(postgres, folder, **reply(approval, {"decisions": [yes]}))

    assert names(first) == ["RUN_STARTED", "STATE_SNAPSHOT", "CUSTOM", *END]
    assert (review.reason, "Do it" in review.message) == ("plan", True)
    assert review.response_schema is not None
    assert left[-1].outcome.interrupts[0].id == review.id
    assert names(wrong) == ["RUN_STARTED", "RUN_ERROR"]
    assert "has the form" in wrong[-1].message
    step, call = ["STEP_STARTED", "STATE_SNAPSHOT"], ["TOOL_CALL_START", "TOOL_CALL_ARGS"]
    call += ["TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert names(second) == ["RUN_STARTED", *step, *call, "CUSTOM", "STEP_FINISHED", *END]
    assert second[-2].snapshot == {
        "status": "waiting",
        "plan": [{"id": "p1", "title": "Do it", "status": "running"}],
    }
    texts = [each for each in names(last) if each.startswith("TEXT")]
    assert {*texts} == {"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"}
    said = dict[str, str]()
    for each in (each for each in last if each.type == "TEXT_MESSAGE_CONTENT"):
        said[each.message_id] = said.get(each.message_id, "") + each.delta
    assert [*said.values()][-1] == "All is made."  # whole, also where words of it were missed
    assert last[-1].outcome.type == "success"
    assert last[-1].result["headline"] == "completed, not checked"


END = ["STATE_SNAPSHOT", "RUN_FINISHED"]


async def test_runs_that_overlap_on_a_thread_are_told_apart(
    postgres_url: str, tmp_path: Path
) -> None:
    """PL-04: each ends once, with its own answer; what is at work is heard again by who is back."""
    folder, begun, may_end = folder_in(tmp_path), asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await may_end.wait()
        return "waited"

    script = {"main": [calls(call("wait", "c1")), say("First."), say("Second.")]}
    async with worked(postgres_url, script, [wait]) as postgres:
        one = asyncio.create_task(told(postgres, folder, "Do one", "react"))
        await asyncio.wait_for(begun.wait(), 20)
        two = asyncio.create_task(told(postgres, folder, "Do two", "react"))
        back = asyncio.create_task(told(postgres, folder, "Do one", "react"))
        while len(await queued(postgres)) < 3:
            pass  # each look gives way
        may_end.set()
        first, second, again = await asyncio.gather(one, two, back)

    for events, said in ((first, "First."), (second, "Second."), (again, "First.")):
        assert [each.type.value for each in events].count("RUN_FINISHED") == 1
        assert events[-1].result["output"] == said
        assert "".join(e.delta for e in events if e.type == "TEXT_MESSAGE_CONTENT") == said
    assert ("TOOL_CALL_START" in names(second), "TOOL_CALL_START" in names(again)) == (False, True)


async def test_a_run_that_is_cancelled_in_the_queue_ends(postgres_url: str, tmp_path: Path) -> None:
    """PL-04: no run of its own tells its end."""
    folder, begun = folder_in(tmp_path), asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return "unreachable"

    async with worked(postgres_url, {"main": [calls(call("wait", "c1"))]}, [wait]) as postgres:
        one = asyncio.create_task(told(postgres, folder, "Do one", "react"))
        await asyncio.wait_for(begun.wait(), 20)
        two = asyncio.create_task(told(postgres, folder, "Do two", "react"))
        while len(await queued(postgres)) < 2:
            pass
        await acancel(postgres, "t")
        ended = await asyncio.wait_for(asyncio.gather(one, two), 20)

    assert [names(each)[-1] for each in ended] == ["RUN_ERROR"] * 2
    assert "TOOL_CALL_START" not in names(ended[1])


async def queued(postgres: Postgres) -> Any:
    """The jobs of all threads that are not done."""
    query = "SELECT id FROM procrastinate_jobs WHERE task_name = 'daruma.carry_out'"
    return await postgres.checkpointer.database.statement(query, {})


PIXEL = "R0lGODlhAQABAAAAACw="


async def test_images_are_taken_and_what_is_not_taken_is_said(
    postgres_url: str, tmp_path: Path
) -> None:
    """SE-03: nothing of a message is left out without a word, and no address is looked up."""
    folder, model = folder_in(tmp_path), RecordingModel(script=[say("A dot.")])
    data = {"type": "image", "source": {"type": "data", "value": PIXEL, "mimeType": "image/gif"}}
    url = {"type": "image", "source": {"type": "url", "value": "http://x/y.png"}}
    text = {"type": "text", "text": "What is it?"}
    async with worked(postgres_url, model) as postgres:
        seen, refused = [
            await told(
                postgres,
                folder,
                mode="react",
                messages=[{"id": str(number), "role": "user", "content": [text, part]}],
            )
            for number, part in enumerate((data, url))
        ]

    assert seen[-1].outcome.type == "success"
    shown: Any = model.asked()[0].messages[-1].content
    assert {"type": "image", "base64": PIXEL, "mime_type": "image/gif"} in shown
    assert names(refused) == ["RUN_STARTED", "RUN_ERROR"]
    assert "only images with their data" in refused[-1].message


async def test_a_task_that_fails_is_an_error_and_what_is_known_is_not_begun_twice(
    postgres_url: str, tmp_path: Path
) -> None:
    script = {"plan": [{"raise": "refused", "status": 400}] * 4}
    folder = folder_in(tmp_path)
    async with worked(postgres_url, script) as postgres:
        failed = await told(postgres, folder, "Make it")
        again = await told(postgres, folder, "Make it")
    assert names(failed)[-1] == names(again)[-1] == "RUN_ERROR"
    assert failed[-1].code == again[-1].code == "failed"
