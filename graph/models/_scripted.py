"""Scripts, and the chat model that follows one: without a key or a network."""

import asyncio
import difflib
import itertools
import json
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    get_buffer_string,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from typing_extensions import override

from daruma.graph.models._faults import (
    ScriptedFault,
    ScriptExhausted,
    ScriptInvalid,
    ScriptMismatch,
)

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


# --- A chat model made of one function from request to answer, the same whichever way it is called.

_METADATA = "call_metadata"


class Late(Exception):
    """Raised for an answer that comes after so many seconds; ``then`` gives it, or raises."""

    def __init__(self, seconds: float, then: Callable[[], AIMessage]) -> None:
        super().__init__(f"in {seconds:g} s")
        self.seconds = seconds
        self.then = then


class AnsweringModel(BaseChatModel):
    """Turns `answer` into LangChain's four ways to call a model, and into what they call in turn.

    LangChain gives a stream no run manager, and makes `invoke` a stream when somebody listens for
    tokens. The public four are the only place where the caller's metadata is at hand every time.
    """

    @abstractmethod
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        """The answer to a request, `tools` being the OpenAI dictionaries of what was offered.

        May raise :class:`Late`, which is waited for without blocking a loop.
        """

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools: LangChain tools, functions, Pydantic classes, or OpenAI's dictionaries."""
        offered = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=offered, tool_choice=tool_choice, **kwargs)

    @override
    def invoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return super().invoke(input, config, **with_metadata(config, kwargs))

    @override
    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return await super().ainvoke(input, config, **with_metadata(config, kwargs))

    @override
    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        return super().stream(input, config, **with_metadata(config, kwargs))

    @override
    def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        return super().astream(input, config, **with_metadata(config, kwargs))

    @override
    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return _result(self._answered(messages, kwargs))

    @override
    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return _result(await self._aanswered(messages, kwargs))

    @override
    def _stream(
        self, messages: list[BaseMessage], *_: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield from chunks_of(self._answered(messages, kwargs))

    @override
    async def _astream(
        self, messages: list[BaseMessage], *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in chunks_of(await self._aanswered(messages, kwargs)):
            yield chunk

    def _answered(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        try:
            return self.answer(messages, **_asked(kwargs))
        except Late as late:
            time.sleep(late.seconds)
            return late.then()

    async def _aanswered(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        try:
            return self.answer(messages, **_asked(kwargs))
        except Late as late:
            await asyncio.sleep(late.seconds)
            return late.then()


def with_metadata(config: RunnableConfig | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's options with its metadata, which such a model's own function asks for."""
    return {**options, _METADATA: ensure_config(config).get("metadata") or {}}


def _asked(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": kwargs.get(_METADATA, {}), "tools": kwargs.get("tools") or ()}


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


# --- A chat model that follows a script and checks what it is asked, without a key or a network.

ROLE_KEY = "daruma_role"
CALL_KEY = "daruma_call"
ATTEMPT_KEY = "daruma_attempt"
MEMBER_KEY = "daruma_member"


class ScriptedChatModel(AnsweringModel):
    """A strict chat model for tests and demonstrations of graphs, and of what befalls them.

    The script maps a role to its turns; a bare list of turns is role `main`'s. In YAML:

        plan:
          - expect: ["failing test"]   # each must occur in the request
            json: {phases: [...]}      # an answer that is JSON text
        main:
          - calls: [{name: view, args: {path: calc.py}}]
          - say: "Done."

    A turn answers with `say`, `json`, `calls` (alone, or beside `say` or `json`) or `raise` (the
    message of a `ScriptedFault`; beside it `status: 503` is the HTTP status it stands for). `args`
    may be text: exactly what a model wrote, broken JSON too. `wait` is seconds until it answers.
    `attempts` holds a turn for each request that is made for one answer; the last one's for more.
    `expect` lists texts that must occur in the request, `expect_tools` tools that must be offered;
    an empty `expect_tools` says that none may be. `usage: {input, output}` counts tokens (else
    estimated), `finish_reason` defaults to `stop` or `tool_calls`, and a call's `id` to
    `call_ROLE_NUMBER_INDEX`.

    Which turn is next, the caller says: `{"daruma_role": "main", "daruma_call": 3}` in the call's
    metadata asks for the role's fourth turn, in whatever process, so that a run that was killed
    goes on where it was. Without `daruma_call` this object counts each role's calls itself;
    without `daruma_role` the role is `main`. A team member that carries out phase `p2` takes its
    turns from `main@p2` where the script has them, else from `main`.

    As with real models under LangChain, arguments that are cut off are an invalid call when
    invoked, and completed when streamed; otherwise a streamed answer adds up to the invoked one.

    Raises `ScriptInvalid` when made; `ScriptMismatch`, `ScriptExhausted` and `ScriptedFault` when
    asked.
    """

    script: Any
    model_name: str = "scripted"

    _turns: Script = PrivateAttr(default_factory=dict)
    _counts: dict[str, "itertools.count[int]"] = PrivateAttr(default_factory=dict)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a script from a JSON file (suffix `.json`) or a YAML file (any other)."""
        return cls(script=read_script(Path(path)), model_name=f"scripted:{path}")

    @override
    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._turns = parse_script(self.script, source=self.model_name)

    @property
    @override
    def _llm_type(self) -> str:
        return "daruma-scripted"

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        role, number = self._place(metadata)
        turns = self._turns.get(role, ())
        if not 0 <= number < len(turns):
            raise ScriptExhausted(
                f'{self.model_name}: role "{role}" has {len(turns)} turns and was asked for number'
                f" {number} (from 0); roles: {', '.join(self._turns) or 'none'}; {tail(messages)}"
            )
        turn = turns[number].at(metadata.get(ATTEMPT_KEY, 1))
        if lack := lacking(turn, messages, tools):
            raise ScriptMismatch(f"{self.model_name}: {role}[{number}] {lack}; {tail(messages)}")

        def play() -> AIMessage:
            if turn.raise_ is not None:
                raise ScriptedFault(turn.raise_, turn.status)
            return message_of(turn, role=role, number=number, asked=messages)

        if turn.wait:
            raise Late(turn.wait, play)
        return play()

    def _place(self, metadata: Mapping[str, Any]) -> tuple[str, int]:
        role, number = metadata.get(ROLE_KEY, DEFAULT_ROLE), metadata.get(CALL_KEY)
        own = f"{role}@{metadata.get(MEMBER_KEY, '')}"
        role = own if own in self._turns else role
        if number is None:
            number = next(self._counts.setdefault(role, itertools.count()))
        return role, number
