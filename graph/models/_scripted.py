"""A chat model that follows a script, without a key or a network."""

import asyncio
import itertools
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr
from typing_extensions import override

from daruma.graph.models._faults import ScriptedFault, ScriptExhausted, ScriptMismatch
from daruma.graph.models._script import (
    DEFAULT_ROLE,
    Script,
    chunks_of,
    lacking,
    message_of,
    parse_script,
    read_script,
    tail,
)

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
