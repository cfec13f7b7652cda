"""A model's answer: how many calls are kept, the audit of changes, answers that can not be used."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from langchain_core.messages import AIMessage

from daruma.state.calls import ToolTask
from daruma.state.failure import Failure
from daruma.state.steps import (
    MAX_NAMES,
    SAMPLE,
    SAMPLE_BYTES,
    ArgumentRepair,
    Audit,
    LeftOut,
    NameChange,
    RepairRound,
)
from daruma.state.usage import Failover, sound_usage
from daruma.tools.calls._parse import DEEPEST, LARGEST, SMALLEST, calls_of
from daruma.tools.calls._results import blank, cut_off_reason, storable_text

# --- An answer as it can be stored, whatever its provider put into it (DU-05). Pure.


def storable_answer(message: AIMessage) -> AIMessage:
    """Return an answer that any checkpoint takes; itself where it is one already, as most are.

    Arguments of calls stay as they are: :func:`daruma.tools.calls.with_own_ids` makes a call
    that can not be stored one that can not be read, so that no other one runs in its place.
    """
    told = sound_usage(message.usage_metadata)
    counts: dict[str, Any] = {name: told.get(name, 0) for name in _COUNTS}
    counts |= {name: told[name] for name in _DETAILS if name in told}
    changes = {
        "content": _storable(message.content),
        "additional_kwargs": _storable(message.additional_kwargs),
        "response_metadata": _storable(message.response_metadata),
        "usage_metadata": counts if message.usage_metadata else None,
    }
    same = all(getattr(message, name) == value for name, value in changes.items())
    return message if same else message.model_copy(update=changes)


_COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS: Final = ("input_token_details", "output_token_details")


def _storable(value: Any, depth: int = 0) -> Any:
    """Return a value that msgpack and JSON know; a number that they do not is told as a text."""
    if isinstance(value, str) or depth > DEEPEST:
        return storable_text(value) if isinstance(value, str) else "..."
    if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
        return hex(value)  # decimals of so many digits can not be written
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {_storable(k): _storable(each, depth + 1) for k, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_storable(each, depth + 1) for each in value)
    return value


# --- The most calls that are kept of one answer (TL-16). Pure.


def limit_calls(message: AIMessage, limit: int | None) -> tuple[AIMessage, LeftOut | None]:
    """Keep the first calls of an answer, in order, also in the history; say what was left out."""
    if limit is None or len(message.tool_calls) + len(message.invalid_tool_calls) <= limit:
        return message, None
    calls = calls_of(message)
    kept = {call.id for call in calls[:limit]}
    omitted = calls[limit:]
    changes = {
        "tool_calls": [call for call in message.tool_calls if call["id"] in kept],
        "invalid_tool_calls": [call for call in message.invalid_tool_calls if call["id"] in kept],
        "content": _kept_content(message.content, {call.id for call in omitted}),
        # What the provider sent stands here too.
        "additional_kwargs": {
            k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"
        },
    }
    left_out = LeftOut(
        total=len(calls),
        executed=limit,
        omitted=len(omitted),
        limit=limit,
        names=tuple(_cut(call.name) for call in omitted[:SAMPLE]),
    )
    return message.model_copy(update=changes), left_out


def _kept_content(content: Any, omitted: set[str]) -> Any:
    if not isinstance(content, list):
        return content
    return [p for p in content if not (isinstance(p, dict) and p.get("id") in omitted)]


def _cut(name: str) -> str:
    return name.encode("utf-8", "replace")[:SAMPLE_BYTES].decode("utf-8", "ignore")


# --- The audit of an answer: what was changed or left out between its words and what runs. Pure.


def audit_changes(
    message_id: str,
    tasks: Sequence[ToolTask],
    *,
    left_out: LeftOut | None = None,
    asked: RepairRound | None = None,
    failover: Failover | None = None,
) -> Audit:
    """Return what there is to tell of an answer's tasks, which may be nothing (TL-11).

    The answer itself stays as the model said it: a repair changes its task alone.
    """
    names = [_name(task) for task in tasks if _is_renamed(task)]
    arguments = [_arguments(task) for task in tasks if _is_mended(task)]
    return Audit(
        message_id=message_id,
        names=tuple(names[:MAX_NAMES]),
        names_cut=len(names) > MAX_NAMES,
        arguments=tuple(arguments),
        left_out=left_out,
        round=asked,
        failover=failover,
    )


def changes_of(
    message_id: str,
    tasks: Sequence[ToolTask],
    *,
    left_out: LeftOut | None = None,
    failover: Failover | None = None,
) -> Audit | None:
    """Return the same; None, and nothing built, where there is nothing to tell: most answers."""
    told = left_out or failover or any(_is_renamed(each) or _is_mended(each) for each in tasks)
    return audit_changes(message_id, tasks, left_out=left_out, failover=failover) if told else None


def call_audit(failover: Failover | None) -> Audit | None:
    """Return the audit of a call without tools; None where the first request brought the answer."""
    return Audit(message_id="", failover=failover) if failover else None


def _is_renamed(task: ToolTask) -> bool:
    return task.name != task.requested_name


def _is_mended(task: ToolTask) -> bool:
    return bool(task.repaired_by or task.rungs)


def _name(task: ToolTask) -> NameChange:
    # A tool may have passed the call on to another one; the name itself was right then.
    how = "promoted" if task.name_resolution == "exact" else task.name_resolution
    return NameChange(
        tool_call_id=task.id, requested_name=task.requested_name, name=task.name, how=how
    )


def _arguments(task: ToolTask) -> ArgumentRepair:
    by = task.repaired_by or "rules"
    return ArgumentRepair(tool_call_id=task.id, name=task.name, repaired_by=by, rungs=task.rungs)


# --- Answers that are no end of the work: empty ones, refusals, what was cut off. Pure.


def unusable_answer(message: AIMessage, node: str, asked: int = 1) -> Failure | None:
    """Return what is wrong with an answer without calls, None if it is one.

    ``asked`` is how often the model was asked in a row, this answer's request included.
    Its ``original_error`` is a name of :data:`daruma.state.failure.UNUSABLE`. A refusal that comes
    as ordinary text can not be told from an answer.
    """
    if found := _wrong(message, asked):
        what, said = found
        return Failure(code="llm_failure", node=node, message=said, original_error=what)
    return None


def _wrong(message: AIMessage, asked: int) -> tuple[str, str] | None:
    if refused := message.additional_kwargs.get("refusal"):
        return "refusal", f"the model refused: {storable_text(str(refused))[:300]}"
    if reason := cut_off_reason(message):
        return "answer_cut_off", f"the model's answer was cut off ({reason})"
    if blank(message.text):
        but = " but its reasoning" if _reasons(message) else ""
        said = f"the model answered nothing{but} (requests in a row: {asked})"
        return "empty_answer", f"{said}: put the task in other words, or choose another llm.model"
    return None


def _reasons(message: AIMessage) -> bool:
    """Whether an answer holds what its model thought: among its parts, or beside them."""
    parts = message.content if isinstance(message.content, list) else ()
    kinds = {part.get("type") for part in parts if isinstance(part, dict)}
    beside = any(message.additional_kwargs.get(key) for key in ("reasoning_content", "reasoning"))
    return beside or not kinds.isdisjoint({"reasoning", "thinking", "redacted_thinking"})
