"""What a history tells: requests, calls with their results, and what was said between them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from daruma.graph.pictures.call_title import arguments_text, call_title, edit_diff
from daruma.graph.pictures.moment import Moment
from daruma.state.task import Task
from daruma.state.text import REFERENCE

Results = Mapping[str, ToolMessage]


def results_in(messages: Sequence[AnyMessage]) -> Results:
    """Return the results of calls by the id of their message."""
    return {str(m.id): m for m in messages if isinstance(m, ToolMessage)}


def is_request(message: AnyMessage, thread: str) -> bool:
    """Whether a person said it to begin a task: notes of the machine have its task in their id."""
    own = str(message.id or "").startswith(f"{thread}/")
    return isinstance(message, HumanMessage) and not own


def request_moment(message: AnyMessage, tasks: Mapping[str, Task]) -> Moment:
    """Return a request, with the task that was made of it where that is on record."""
    task = tasks.get(str(message.id))
    place = f" in {task.workspace}" if task and task.workspace else ""
    return Moment(
        kind="request",
        title=first_line(message.text),
        detail=message.text,
        at=task.started_at if task else 0.0,
        timed=bool(task and task.started_at),
        node="intake",
        task=task.id if task else "",
        note=f"{task.mode}{place}" if task else "",
    )


def call_moments(message: AIMessage, results: Results) -> Iterator[tuple[Moment, str]]:
    """Yield the calls of an answer, each with its result where there is one, and its tool."""
    broken = (
        (call["id"], call["name"], {"arguments": call["args"]})
        for call in message.invalid_tool_calls
    )
    sound = ((call["id"], call["name"], call["args"]) for call in message.tool_calls)
    for id_, name, args in (*sound, *broken):
        yield _call(name or "unnamed", args, results.get(f"{message.id}:{id_}")), name or ""


def _call(name: str, args: Mapping[str, Any], result: ToolMessage | None) -> Moment:
    whole = result.additional_kwargs.get(REFERENCE) if result else None
    return Moment(
        kind="tool",
        title=call_title(name, args),
        detail=arguments_text(args),
        output=result.text if result else "",
        ok=None if result is None else result.status != "error",
        node="tool",
        note="no result yet"
        if result is None
        else f"kept whole as output {whole}"
        if whole
        else "",
        diff=edit_diff(args),
    )


def asked_for(message: AIMessage) -> str:
    """Name the tools that an answer without words asked for; empty for none."""
    names = (
        call["name"] or "unnamed" for call in (*message.tool_calls, *message.invalid_tool_calls)
    )
    told = ", ".join(dict.fromkeys(names))
    return f"asked for {told}" if told else "answered"


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
