"""A chat model made of one function from request to answer, the same whichever way it is called."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from typing_extensions import override

from daruma.graph.models.script_answer import chunks_of

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
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(self._answered(messages, kwargs))

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(await self._aanswered(messages, kwargs))

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from chunks_of(self._answered(messages, kwargs))

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
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
