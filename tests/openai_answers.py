"""Answers of OpenAI's chat-completions API, whole and as the chunks of a stream."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer. A call is `{"name": ..., "arguments": text or JSON}`, with an `id` if it matters.

    `usage` is (prompt, completion) in tokens; by default four characters make one, and some servers
    leave it untold. `refusal` is said in the place of a text, `reasoning` before it, as servers
    beside OpenAI's do; an answer with `no_choices` holds nothing at all. `kept` are the tokens of
    the prompt that were read from the provider's cache, and that were written to it.
    """

    text: str = ""
    calls: Sequence[Mapping[str, Any]] = ()
    finish_reason: str | None = None
    usage: tuple[int, int] | Literal["untold"] | None = None
    refusal: str | None = None
    reasoning: str = ""
    no_choices: bool = False
    kept: tuple[int, int] = (0, 0)


def completion(reply: Reply, request: Json) -> Json:
    """The answer to a request that did not ask for a stream."""
    message = {"role": "assistant", "content": reply.text or None, "refusal": reply.refusal} | (
        {"tool_calls": _calls(reply)} if reply.calls else {}
    )
    message |= {"reasoning_content": reply.reasoning} if reply.reasoning else {}
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    choices = [] if reply.no_choices else [choice]
    head = _head("chat.completion", request)
    return {**head, "choices": choices, **_told_usage(reply, request)}


def chunks(reply: Reply, request: Json) -> list[Json]:
    """A stream's events: role, text and each call in two halves, finish, usage if asked for."""
    half = len(reply.text) // 2
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": word} for word in reply.reasoning.partition(" ") if word]
    deltas += [{"content": text} for text in (reply.text[:half], reply.text[half:]) if text]
    deltas += [{"refusal": reply.refusal}] if reply.refusal else []
    deltas += [delta for index, call in enumerate(_calls(reply)) for delta in _halves(index, call)]
    head = _head("chat.completion.chunk", request)
    stream: list[Json] = [{**head, "choices": [_choice(delta, None)]} for delta in deltas]
    stream.append({**head, "choices": [_choice({}, _finish_reason(reply))]})
    if reply.no_choices:
        stream = [{**head, "choices": []}]
    if (request.get("stream_options") or {}).get("include_usage") and reply.usage != "untold":
        stream.append({**head, "choices": [], **_told_usage(reply, request)})
    return stream


def _choice(delta: Json, finish_reason: str | None) -> Json:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def _halves(index: int, call: Json) -> list[Json]:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    half = len(arguments) // 2
    first = {**call, "index": index, "function": {"name": name, "arguments": arguments[:half]}}
    second = {"index": index, "function": {"arguments": arguments[half:]}}
    return [{"tool_calls": [first]}, {"tool_calls": [second]}]


def _calls(reply: Reply) -> list[Json]:
    return [
        {
            "id": call.get("id", f"call_{index}"),
            "type": "function",
            "function": {"name": call["name"], "arguments": _text(call.get("arguments", {}))},
        }
        for index, call in enumerate(reply.calls)
    ]


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _finish_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.calls else "stop")


def _told_usage(reply: Reply, request: Json) -> Json:
    if reply.usage == "untold":
        return {}
    said = len(reply.text) + len(json.dumps(_calls(reply)))
    asked = len(json.dumps(request["messages"]))
    prompt, answer = reply.usage or (asked // 4, said // 4)
    told = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    if any(reply.kept):
        kept = {"cached_tokens": reply.kept[0], "cache_write_tokens": reply.kept[1]}
        return {"usage": {**told, "prompt_tokens_details": kept}}
    return {"usage": told}


def _head(kind: str, request: Json) -> Json:
    return {"id": "chatcmpl-test", "object": kind, "created": 0, "model": request["model"]}
