"""Scripts for the scripted chat model: their shape, their turns, what they demand."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    get_buffer_string,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from daruma.graph.models._faults import ScriptInvalid

# --- Scripts for the scripted chat model: their shape, and reading them with errors that say where.

DEFAULT_ROLE = "main"


class Usage(BaseModel):
    """Tokens that a turn reports instead of the estimate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeInt
    output: NonNegativeInt


class Call(BaseModel):
    """A tool call; `args` as text stands for exactly what a model wrote, broken JSON included."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    args: dict[str, JsonValue] | str = Field(default_factory=dict)
    id: str | None = None


class Turn(BaseModel):
    """What the model answers once, and what the request must hold for it to do so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    say: str | None = None
    json_: JsonValue = Field(default=None, alias="json")
    calls: tuple[Call, ...] = ()
    raise_: str | None = Field(default=None, alias="raise")
    status: int | None = Field(default=None, ge=400, le=599)
    wait: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    attempts: "tuple[Turn, ...]" = ()
    expect: tuple[str, ...] = ()
    expect_tools: tuple[str, ...] | None = None
    usage: Usage | None = None
    finish_reason: str | None = None

    @model_validator(mode="after")
    def _answers_in_one_way(self) -> Self:
        spoken = self.model_fields_set & {"say", "json_", "raise_", "attempts"}
        if len(spoken) > 1 or (self.raise_ is not None and self.calls):
            raise ValueError("say, json and raise exclude each other, and raise excludes calls")
        if not spoken and not self.calls:
            raise ValueError("a turn needs one of say, json, calls or raise")
        if self.status is not None and self.raise_ is None:
            raise ValueError("a status is that of a fault: it needs raise")
        return self

    @model_validator(mode="after")
    def _attempts_alone(self) -> Self:
        if "attempts" not in self.model_fields_set:
            return self
        if not self.attempts:
            raise ValueError("attempts needs a turn for a request")
        if self.model_fields_set != {"attempts"} or any(each.attempts for each in self.attempts):
            raise ValueError("attempts stand alone: each is a turn of its own")
        return self

    def at(self, attempt: int) -> "Turn":
        """Return what a request is answered with; ``attempt`` counts those of one call, from 1."""
        return self.attempts[min(attempt, len(self.attempts)) - 1] if self.attempts else self

    @property
    def text(self) -> str:
        """What the answer says; empty for a turn of calls only."""
        if "json_" in self.model_fields_set:
            return json.dumps(self.json_, ensure_ascii=False)
        return self.say or ""


Script = Mapping[str, tuple[Turn, ...]]
_SCRIPT = TypeAdapter(dict[str, tuple[Turn, ...]])


def read_script(path: Path) -> Any:
    """Load a script's data from JSON (by its suffix) or YAML; `ScriptInvalid` when that fails."""
    import yaml  # only where there is one to read

    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise ScriptInvalid(f"cannot read the script {path}: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ScriptInvalid(f"the script {path} is neither YAML nor JSON: {reason}") from error


def parse_script(data: Any, *, source: str) -> Script:
    """Check a script: a mapping of role to turns, or a bare list, which is role `main`'s."""
    try:
        return _SCRIPT.validate_python({DEFAULT_ROLE: data} if isinstance(data, list) else data)
    except ValidationError as error:
        first = error.errors()[0]
        loc, why = first["loc"], first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            loc, why = loc[:-1], _unknown(str(loc[-1]), inside=loc[:-1])
        raise ScriptInvalid(f"{source}: {_place(loc) or 'script'}: {why}") from error


def _place(loc: tuple[int | str, ...]) -> str:
    """`main[1].calls[0]`, without the tags that pydantic adds for the arms of a union."""
    parts = [f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc if "[" not in str(p)]
    return "".join(parts).lstrip(".")


def _unknown(field: str, *, inside: tuple[int | str, ...]) -> str:
    model = Call if "calls" in inside[2:] else Usage if "usage" in inside[2:] else Turn
    known = [info.alias or name for name, info in model.model_fields.items()]
    nearest = difflib.get_close_matches(field, known, n=1, cutoff=0.0)[0]
    return f'unknown field "{field}"; the nearest known one is "{nearest}"'


# --- A turn of a script as a message, and that message in chunks: in one place, so that they agree.

CHARACTERS_PER_TOKEN = 4
"""OpenAI's rule of thumb for English text; good enough for a count that only has to be stable."""

_TEXT_CHUNKS = 3


def message_of(turn: Turn, *, role: str, number: int, asked: Sequence[BaseMessage]) -> AIMessage:
    """The turn as a message; its ids follow from role and number, so that replays are equal."""
    calls = [_call(each, f"call_{role}_{number}_{i}") for i, each in enumerate(turn.calls)]
    usage = turn.usage
    if usage is None:
        written = turn.text + "".join(call.model_dump_json() for call in turn.calls)
        read = sum(len(str(message.content)) for message in asked)
        usage = Usage(
            input=-(-read // CHARACTERS_PER_TOKEN), output=-(-len(written) // CHARACTERS_PER_TOKEN)
        )
    return AIMessage(
        content=turn.text,
        id=f"msg_{role}_{number}",
        tool_calls=[call for call in calls if call["type"] == "tool_call"],
        invalid_tool_calls=[call for call in calls if call["type"] == "invalid_tool_call"],
        usage_metadata={
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
        },
        response_metadata={
            "finish_reason": turn.finish_reason or ("tool_calls" if calls else "stop"),
            "model_name": "scripted",
        },
    )


def chunks_of(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Text in a few pieces, a chunk for each call, then what only the end of a stream knows."""
    size = max(1, -(-len(message.text) // _TEXT_CHUNKS))
    for start in range(0, len(message.text), size):
        yield _chunk(AIMessageChunk(content=message.text[start : start + size], id=message.id))
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls]
    broken = [(call["name"], call["args"], call["id"]) for call in message.invalid_tool_calls]
    for index, (name, args, id_) in enumerate([*calls, *broken]):
        part = tool_call_chunk(name=name, args=args, id=id_, index=index)
        yield _chunk(AIMessageChunk(content="", id=message.id, tool_call_chunks=[part]))
    yield _chunk(
        AIMessageChunk(
            content="",
            id=message.id,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
    )


def _chunk(message: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=message)


def _call(call: Call, default: str) -> ToolCall | InvalidToolCall:
    id_, args = call.id or default, call.args
    with suppress(ValueError):
        args = json.loads(args) if isinstance(args, str) else args
    if isinstance(args, dict):
        return tool_call(name=call.name, args=args, id=id_)
    return invalid_tool_call(name=call.name, args=str(call.args), id=id_)


# --- What a turn of a script demands of a request, and how a request that falls short is shown.

_TAIL = 400


def lacking(turn: Turn, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> str:
    """What the turn expects and the request lacks, in words; empty when nothing is amiss."""
    request = get_buffer_string(messages) if turn.expect else ""
    if missing := [text for text in turn.expect if text not in request]:
        return f"expects in the request: {', '.join(map(repr, missing))}"
    offered = [tool["function"]["name"] for tool in tools]
    if turn.expect_tools == () and offered:
        return f"expects no tools; offered: {', '.join(offered)}"
    if missing := [name for name in turn.expect_tools or () if name not in offered]:
        return f"expects the tools {', '.join(missing)}; offered: {', '.join(offered) or 'none'}"
    return ""


def tail(messages: Sequence[BaseMessage]) -> str:
    """The last 400 characters of a request, in one line."""
    return f"the request ends: {get_buffer_string(messages)[-_TAIL:]!r}"
