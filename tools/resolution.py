"""From the calls of a model's answer to tool tasks, in the order of TL-12. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import best_match
from langchain_core.messages import AIMessage
from referencing.exceptions import Unresolvable

from daruma.state.settings import Tools
from daruma.state.tool_task import NameResolution, ToolTask
from daruma.tools.policy import decide
from daruma.tools.results import cut_off
from daruma.tools.tool import Tool

_CUT_OFF = "the answer was cut off before its end: give the call again, with less in it"


def with_own_ids(message: AIMessage, message_id: str) -> AIMessage:
    """Return a model's message under an id of ours, every call in it with an id that is its own.

    Servers repeat ids from one answer to the next, and within one: a history keyed by them would
    lose messages.
    """
    calls = (*message.tool_calls, *message.invalid_tool_calls)
    seen: set[str] = set()
    free = (name for n in count() if (name := f"call_{n}") not in {c["id"] for c in calls})

    def named(call: dict[str, Any]) -> dict[str, Any]:
        own = call.get("id") or ""
        own = own if own and own not in seen else next(free)
        seen.add(own)
        return {**call, "id": own}

    readable = [named(dict(call)) for call in message.tool_calls]
    unreadable = [named(dict(call)) for call in message.invalid_tool_calls]
    changes = {"id": message_id, "tool_calls": readable, "invalid_tool_calls": unreadable}
    return message.model_copy(update=changes)


def tool_tasks(message: AIMessage, tools: Sequence[Tool], settings: Tools) -> tuple[ToolTask, ...]:
    """Return one tool task for each call of a message, also for those that can not be read.

    What can not run (unreadable arguments, unknown tool, denied by policy) has status ``failed``
    with the reason; what a person must confirm is ``awaiting``; the rest is ``ready``. Nothing of
    an answer that was cut off runs: a stream's half arguments look whole once they are parsed.
    """
    if cut_off(message):
        calls = (*message.tool_calls, *message.invalid_tool_calls)
        return tuple(_failed(_task(message, dict(call)), _CUT_OFF) for call in calls)
    readable = tuple(
        decided(_task(message, dict(call)), tools, settings) for call in message.tool_calls
    )
    return readable + tuple(_unreadable(message, dict(call)) for call in message.invalid_tool_calls)


def _task(message: AIMessage, call: dict[str, Any]) -> ToolTask:
    name = call.get("name") or ""
    return ToolTask(
        id=call["id"],
        message_id=str(message.id),
        name=name,
        requested_name=name,
        args=call["args"] if isinstance(call.get("args"), dict) else {},
    )


def _unreadable(message: AIMessage, call: dict[str, Any]) -> ToolTask:
    reason = f"the arguments are not valid JSON: {call.get('args')!r:.300}"
    return _failed(_task(message, call), reason)


def decided(task: ToolTask, tools: Sequence[Tool], settings: Tools) -> ToolTask:
    """Return a task with what becomes of it: by its name, the policy, its arguments, the policy."""
    tool = next((tool for tool in tools if tool.name == task.name), None)
    if tool is None:
        names = ", ".join(tool.name for tool in tools) or "none"
        resolution: NameResolution = "unknown" if task.name else "missing"
        task = replace(task, name_resolution=resolution)
        return _failed(task, f"there is no tool {task.name!r}; there are: {names}")
    rule = decide(tool, task.args, settings)
    if rule.decision == "deny":
        reason = rule.reason or f"{task.name} is not allowed here"
        return _failed(task, f"denied by policy: {reason}")
    if settings.validate_schema and (problem := misfit(task.args, tool.parameters)):
        return _failed(task, f"invalid_args: {problem}")
    return replace(
        task,
        status="awaiting" if rule.decision == "confirm" else "ready",
        reason=rule.reason,
        required=rule.required,
        deny_effect=rule.deny_effect or ("block" if rule.required else "continue"),
    )


def misfit(args: dict[str, Any], schema: Mapping[str, Any]) -> str | None:
    """Say what does not fit a JSON schema, None if all does."""
    try:
        problem = best_match(Draft202012Validator(schema).iter_errors(args))
    except (SchemaError, Unresolvable):
        return None  # the tool's own fault: it will say itself what it can not take
    return None if problem is None else f"{problem.json_path}: {problem.message:.300}"


def _failed(task: ToolTask, reason: str) -> ToolTask:
    return replace(task, status="failed", reason=reason)
