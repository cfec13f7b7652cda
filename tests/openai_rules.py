"""What OpenAI's chat-completions API accepts: the strict half of the server that tests talk to."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_ROLES = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}
_PARAMETERS = frozenset(
    {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"}
    | {"stream", "stream_options", "temperature", "top_p", "n", "stop", "seed", "user", "store"}
    | {"max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "metadata"}
    | {"logit_bias", "logprobs", "top_logprobs", "reasoning_effort", "verbosity", "service_tier"}
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def violations(request: Json) -> list[str]:
    """What the API would refuse in a request's body, in words; empty for a legal request.

    Stricter than the API in one point, a house rule: one system message at most, at the head.
    """
    if unknown := sorted(set(request) - _PARAMETERS):
        return [f"unrecognized request argument: {', '.join(unknown)}"]
    if not isinstance(request.get("model"), str) or not request["model"]:
        return ["model: a non-empty string is required"]
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["messages: a non-empty list is required"]
    return [*_tools(request), *_options(request), *_each(messages), *_pairing(messages)]


def _options(request: Json) -> Iterator[str]:
    if "stream_options" in request and not request.get("stream"):
        yield "stream_options: only allowed when stream is true"
    form = request.get("response_format") or {}
    if form.get("type") == "json_object" and "json" not in str(request["messages"]).lower():
        yield "messages: must contain the word json for response_format json_object"


def _tools(request: Json) -> Iterator[str]:
    if "tools" not in request:
        for parameter in sorted({"tool_choice", "parallel_tool_calls"} & set(request)):
            yield f"{parameter}: only allowed when tools are given"
        return
    names = [_function(tool).get("name") for tool in request["tools"]]
    if bad := [name for name in names if not _is_name(name)]:
        yield f"tools: each needs a function with a legal name, not {bad}"
    if not names or len(set(names)) < len(names):
        yield f"tools: at least one, each with a name of its own, not {names}"
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and _function(choice).get("name") not in names:
        yield "tool_choice: names no tool that is offered"


def _each(messages: Sequence[Json]) -> Iterator[str]:
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            yield f"messages[{index}]: unknown role {role!r}"
            continue
        if role in {"system", "developer"} and index > 0:
            yield f"messages[{index}]: a system message stands only at the head"
        if role == "tool" and not isinstance(message.get("tool_call_id"), str):
            yield f"messages[{index}]: tool_call_id is required"
        for complaint in (*_content(message), *_calls(message)):
            yield f"messages[{index}]: {complaint}"


def _content(message: Json) -> Iterator[str]:
    content, role = message.get("content"), message["role"]
    if content is None and role == "assistant" and message.get("tool_calls"):
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"content: text or a non-empty list of parts is required, not {content!r}"
        return
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else part
        if kind not in _ROLES[role] or kind not in part:
            yield f"content: a part of type {kind!r} is not legal for role {role}"


def _calls(message: Json) -> Iterator[str]:
    if "tool_calls" not in message:
        return
    calls = message["tool_calls"]
    if message["role"] != "assistant" or not isinstance(calls, list) or not calls:
        yield "tool_calls: only an assistant has them, and then at least one"
        return
    ids = [call.get("id") for call in calls]
    if not all(isinstance(id_, str) and id_ for id_ in ids) or len(set(ids)) < len(ids):
        yield f"tool_calls: each needs an id of its own, not {ids}"
    for call in calls:
        function = _function(call)
        if not _is_name(function.get("name")) or not isinstance(function.get("arguments"), str):
            yield f"tool_calls: a function with a name and arguments as text is required: {call}"


def _pairing(messages: Sequence[Json]) -> Iterator[str]:
    """Each call is answered exactly once, before anything but an answer follows."""
    open_ids: list[Any] = []
    for index, message in enumerate([*messages, {"role": "end"}]):
        if message.get("role") == "tool":
            if (id_ := message.get("tool_call_id")) in open_ids:
                open_ids.remove(id_)
            else:
                yield f"messages[{index}]: answers the tool call {id_}, which is not open"
            continue
        if open_ids:
            yield f"messages[{index}]: the tool calls {open_ids} were not answered before it"
        open_ids = [call.get("id") for call in message.get("tool_calls") or ()]


def _function(entry: Any) -> Json:
    is_function = isinstance(entry, dict) and entry.get("type") == "function"
    function = entry.get("function") if is_function else None
    return function if isinstance(function, dict) else {}


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
