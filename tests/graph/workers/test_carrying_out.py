"""A job that is done twice, as its worker died, does once what was asked for."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot
from tests.scripted_runs import calls, phases, say

from daruma.graph.answers import PARK
from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.ledgers import replies_of
from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.workers.execution import DONE, carry_out, rest_of
from daruma.graph.workers.submission import SUBMISSION, Submission
from daruma.state.interrupts import ReplyRefused
from daruma.state.settings import Settings

YES: Mapping[str, Any] = {"decision": "confirm"}
REQUEST = Submission("t", {"messages": [HumanMessage("Go", id="m")]}, name="job")
REPLY = Submission("t", Command(resume={"q": YES}), name="job")
GO_ON = Submission("t", None, name="job")


def review(*, parked: bool = False) -> dict[str, Any]:
    return {"type": "spec_review_request", "deadline": None} | ({"parked": True} if parked else {})


def thread(
    *messages: str,
    by: str = "",
    work: bool = False,
    asks: str = "",
    there: bool = True,
    **more: Any,
) -> StateSnapshot:
    """A thread with messages of these ids, made by a job, with unfinished work or a question."""
    interrupts = (Interrupt(value=review(**more), id=asks),) if asks else ()
    tasks = (PregelTask(id="x", name="n", path=(), interrupts=interrupts),) if work or asks else ()
    values = {"messages": [HumanMessage("Go", id=id_) for id_ in messages]} if messages else {}
    metadata: Any = {SUBMISSION: by}
    created = "now" if there else None
    return StateSnapshot(values, (), {}, metadata, created, None, tasks, interrupts)


@pytest.mark.parametrize(
    ("submission", "snapshot", "known", "rest"),
    [
        (REQUEST, thread(there=False), {}, REQUEST.given),
        (REQUEST, thread("older"), {}, REQUEST.given),
        (REQUEST, thread("older", work=True), {}, REQUEST.given),  # which the door refuses
        (REQUEST, thread(by="job", work=True), {}, None),
        (REQUEST, thread("m", work=True), {}, None),
        (REQUEST, thread("m", asks="q"), {}, DONE),
        (REQUEST, thread("m", asks="q"), {"q": YES}, None),
        (REQUEST, thread("m"), {}, DONE),
        (REPLY, thread("m", asks="q"), {}, REPLY.given),
        (REPLY, thread("m", asks="q"), {"q": dict(YES)}, None),
        (REPLY, thread("m", work=True), {"q": dict(YES)}, None),
        (REPLY, thread("m", asks="next"), {"q": dict(YES)}, DONE),
        (REPLY, thread("m", asks="again", parked=True), {"q": PARK}, REPLY.given),
        (REPLY, thread("m", work=True, by="job"), {"q": PARK}, None),
        (REPLY, thread("m"), {}, REPLY.given),  # which the door refuses
        (GO_ON, thread("m", work=True), {}, None),
        (GO_ON, thread("m"), {}, DONE),
        (GO_ON, thread(there=False), {}, None),  # which the door refuses
    ],
)
def test_what_is_left_of_a_submission(
    submission: Submission, snapshot: StateSnapshot, known: dict[str, Any], rest: Any
) -> None:
    """Seen from the thread alone: nobody else knows how far the dead worker came."""
    assert rest_of(submission, snapshot, known, 0.0) is rest


def test_a_reply_to_what_was_answered_otherwise_is_refused() -> None:
    """The first one counts."""
    known = {"q": {"decision": "reject", "feedback": "no"}}

    with pytest.raises(ReplyRefused, match="the first"):
        rest_of(REPLY, thread("m", work=True), known, 0.0)


async def test_a_request_that_was_begun_is_not_made_again(postgres_url: str) -> None:
    """Killed at its very first checkpoint, which has no message yet, and after its end."""
    async with aopen_postgres(postgres_url) as pg:
        graph = build_graph(ScriptedChatModel(script=[say("Hi.")]), (), Settings(), persistence=pg)
        asked = {"messages": [HumanMessage("Hello", id="m")], "mode": "direct_chat"}
        submission = Submission("t", asked)
        config: Any = {"configurable": {"thread_id": "t"}, "metadata": submission.metadata}
        parts = graph.astream(asked, config, stream_mode="checkpoints")
        await anext(parts)
        await parts.aclose()  # type: ignore[attr-defined]
        begun = await graph.aget_state(config)

        first, again = await carry_out(graph, submission), await carry_out(graph, submission)

        assert begun.values["messages"] == []
        assert [each.text for each in first.values["messages"]] == ["Hello", "Hi."]
        assert again.config == first.config


async def test_a_reply_that_was_accepted_is_carried_out(postgres_url: str) -> None:
    """Its worker died between the two."""
    async with aopen_postgres(postgres_url) as pg:
        script = {"plan": [phases("one")], "main": [say()]}
        graph = build_graph(ScriptedChatModel(script=script), (), Settings(), persistence=pg)
        asked = {"messages": [HumanMessage("Go", id="m")], "mode": "plan_exec"}
        (question,) = (await carry_out(graph, Submission("t", asked))).interrupts
        reply = Submission("t", Command(resume={question.id: dict(YES)}))
        await replies_of(graph.checkpointer).aaccept("t", reply.replies)

        ended = await carry_out(graph, reply)

        assert ended.values["result"].status == "completed"


async def test_a_tool_that_ran_does_not_run_again(postgres_url: str) -> None:
    """The job is given out again after the thread has ended."""
    heard: list[str] = []

    def shout(text: str) -> str:
        """Say it loudly."""
        heard.append(text)
        return text

    async with aopen_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script=[calls("shout"), say()])
        graph = build_graph(model, [shout], Settings(), persistence=pg)
        asked = {"messages": [HumanMessage("Go", id="m")], "mode": "react"}
        for _ in range(3):
            ended = await carry_out(graph, Submission("t", asked))

        assert (heard, ended.values["result"].status) == (["hello"], "completed")
