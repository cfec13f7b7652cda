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
from tests.spec.face import RecordingModel, calls, command, create, plan, say

from daruma import Settings, aopen_postgres, awork, build_graph
from daruma.graph.protocols import ag_ui_events
from daruma.graph.storage import Postgres

EVENT: TypeAdapter[Any] = TypeAdapter(Event)


@asynccontextmanager
async def worked(url: str, script: Any) -> AsyncIterator[Postgres]:
    """Yield a database whose threads a worker of this process runs."""
    async with aopen_postgres(url) as postgres:
        graph = build_graph(
            RecordingModel(script=script), settings=Settings(), persistence=postgres
        )
        working = asyncio.create_task(awork(graph))
        try:
            yield postgres
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working


async def told(postgres: Postgres, folder: str, text: str = "", **given: Any) -> Sequence[Any]:
    """Send what a front end sends, and return the events as it reads them."""
    messages = [{"id": text, "role": "user", "content": text}] if text else []
    sent = {"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": []}
    run_input = RunAgentInput.model_validate(sent | {"state": {}, "forwardedProps": {}} | given)
    events = ag_ui_events(postgres, run_input, workspace=folder, mode="plan_exec")
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
