"""AG-UI: a run that a worker carries out, as the events that web front ends take."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from ag_ui import core
from langchain_core.messages import HumanMessage
from langgraph.types import Command, StateSnapshot

from daruma.graph.protocols._threads import PlanView, config_of, question_text
from daruma.graph.requests import RequestRefused
from daruma.graph.storage import Postgres
from daruma.graph.workers import asubmit, reader_on
from daruma.state.errors import DarumaError
from daruma.state.interrupts import is_question, kind_of, reply_schema

Told = Mapping[str, Any]


async def ag_ui_events(
    postgres: Postgres,
    run_input: core.RunAgentInput,
    *,
    workspace: str | None = None,
    mode: str | None = None,
) -> AsyncGenerator[Any]:
    """Submit what a front end sends, and yield the run's events until it ends or asks.

    Its last message is the request, or ``resume`` answers what is open; of its state and tools
    nothing is taken (SE-03). A front end that goes away ends nothing, and hears its own run alone.
    """
    thread = run_input.thread_id
    yield core.RunStartedEvent(thread_id=thread, run_id=run_input.run_id)
    try:
        reader, config = reader_on(postgres), config_of(thread)
        snapshot = await reader.aget_state(config)
        view = RunView(thread, run_input.run_id, PlanView.of(snapshot))
        events = await reader.afollow(config)
        given = given_in(run_input, snapshot, workspace, mode)
        own = "" if given is None or given is NOTHING else uuid4().hex
        if given is not NOTHING:
            await asubmit(postgres, given, thread, tokens=True, name=own)
        async with aclosing(aiter(events)) as told:
            async for each in told:
                last, is_own = each.event, not own or each.run in ("", own)
                for event in view.events(last) if is_own else ():
                    yield event
                if is_own and each.type == "run_stopped":
                    return
        for event in view.events(last):  # its own was taken out of the queue (PL-04)
            yield event
    except DarumaError as error:
        yield core.RunErrorEvent(message=str(error))


NOTHING = object()
"""Stands for a front end that answers nothing: where the thread stands is all that it is told."""


def given_in(
    run_input: core.RunAgentInput, snapshot: StateSnapshot, workspace: str | None, mode: str | None
) -> Any:
    """Return what to run with; a message that the thread knows already goes on with its work."""
    if run_input.resume:
        entries = [each for each in run_input.resume if each.status == "resolved"]
        replies = {each.interrupt_id: each.payload for each in entries}
        return Command(resume=replies) if replies else NOTHING
    last = run_input.messages[-1] if run_input.messages else None
    known = {each.id for each in snapshot.values.get("messages", ())}
    if last is None or last.role != "user" or last.id in known:
        return None
    message = HumanMessage(content_of(last.content), id=last.id)
    return {"messages": [message], "workspace": workspace, "mode": mode}


def content_of(content: Any) -> Any:
    """Return a message's text, or its texts and images as LangChain has them; no other parts."""
    if isinstance(content, str) or all(each.type == "text" for each in content):
        return content if isinstance(content, str) else "\n".join(each.text for each in content)
    parts = list[dict[str, Any]]()
    for each in content:
        if each.type == "text":
            parts.append({"type": "text", "text": each.text})
        elif each.type == "image" and (held := each.source).type == "data":
            parts.append({"type": "image", "base64": held.value, "mime_type": held.mime_type})
        else:
            raise RequestRefused("of parts that are no text only images with their data are taken")
    return parts


@dataclass
class RunView:
    """What a front end was told of a run: the open message and steps, and all that was said."""

    thread: str
    run: str
    plan: PlanView
    open_message: str = ""
    messages: int = 0
    said: str = ""
    steps: list[str] = field(default_factory=list)

    def events(self, told: Told) -> Iterator[Any]:
        """Yield what an event of the run is for a front end."""
        type_ = told["type"]
        if type_ == "model_text":
            if told["node"] == "main" and not told.get("member"):
                yield from self._words(told["text"])
            return
        yield from self._end_message()
        if self.plan.take(told):
            yield from self._step(told)
            yield self._state("running")
        elif type_ == "tool_started":
            yield from self._call(told)
        elif type_ == "tool_completed":
            yield core.ToolCallResultEvent(
                message_id=self._new_id(),
                tool_call_id=told["call_id"],
                content=told["output"] or ("done" if told["ok"] else "failed"),
            )
        elif type_.endswith("_request") and "question" in told:
            yield core.CustomEvent(name=type_, value=dict(told))
        elif type_ == "run_stopped":
            yield from self._end(told)

    def _new_id(self) -> str:
        self.messages += 1
        return f"{self.run}-{self.messages}"

    def _words(self, text: str) -> Iterator[Any]:
        if not self.open_message:
            self.open_message, self.said = self._new_id(), ""
            yield core.TextMessageStartEvent(message_id=self.open_message)
        self.said += text
        yield core.TextMessageContentEvent(message_id=self.open_message, delta=text)

    def _end_message(self) -> Iterator[Any]:
        if self.open_message:
            yield core.TextMessageEndEvent(message_id=self.open_message)
            self.open_message = ""

    def _call(self, told: Told) -> Iterator[Any]:
        name, args = told["call_id"], json.dumps({"summary": told["summary"]})
        yield core.ToolCallStartEvent(tool_call_id=name, tool_call_name=told["tool"])
        yield core.ToolCallArgsEvent(tool_call_id=name, delta=args)
        yield core.ToolCallEndEvent(tool_call_id=name)

    def _step(self, told: Told) -> Iterator[Any]:
        if told["type"] == "phase_started":
            self.steps.append(told["phase_id"])
            yield core.StepStartedEvent(step_name=told["phase_id"])
        elif told.get("phase_id") in self.steps:  # a run that goes on did not begin it
            self.steps.remove(told["phase_id"])
            yield core.StepFinishedEvent(step_name=told["phase_id"])

    def _state(self, status: str) -> core.StateSnapshotEvent:
        phases = self.plan.phases.items()
        plan = [{"id": id_, "title": title, "status": state} for id_, (title, state) in phases]
        return core.StateSnapshotEvent(snapshot={"status": status, "plan": plan})

    def _end(self, told: Told) -> Iterator[Any]:
        """Yield the end: the open questions as interrupts, a result, or an error."""
        yield from (core.StepFinishedEvent(step_name=each) for each in reversed(self.steps))
        result = told["result"] or {}
        finished = partial(core.RunFinishedEvent, thread_id=self.thread, run_id=self.run)
        status = result.get("headline") if told["outcome"] == "done" else told["outcome"]
        yield self._state(str(status))
        if told["questions"]:
            asked: Any = {"type": "interrupt", "interrupts": [*map(_interrupt, told["questions"])]}
            yield finished(outcome=asked)
        elif result.get("status") == "completed":
            if result["output"].strip() not in ("", self.said.strip()):  # words may be missed
                yield from self._words(result["output"])
                yield from self._end_message()
            success: Any = {"type": "success"}
            yield finished(outcome=success, result=result)
        else:
            why = result.get("output") or told["error"] or "the work stopped in its midst"
            yield core.RunErrorEvent(message=why, code=str(status))


def _interrupt(asked: Told) -> dict[str, Any]:
    value = asked["value"]
    form = {"response_schema": reply_schema(value)} if is_question(value) else {}
    said = {"id": asked["id"], "reason": kind_of(value), "message": question_text(value)}
    return {**said, **form, "metadata": {"question": value}}
