"""A chat model made of one function from request to answer, the same whichever way it is called."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
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
        """The answer to a request, `tools` being the OpenAI dictionaries of what was offered."""

    async def aanswer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        """The same where a loop turns, for a model that would block it."""
        return self.answer(messages, metadata=metadata, tools=tools)

    @override
    def invoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return super().invoke(input, config, **_with_metadata(config, kwargs))

    @override
    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return await super().ainvoke(input, config, **_with_metadata(config, kwargs))

    @override
    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        return super().stream(input, config, **_with_metadata(config, kwargs))

    @override
    def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        return super().astream(input, config, **_with_metadata(config, kwargs))

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(self.answer(messages, **_asked(kwargs)))

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(await self.aanswer(messages, **_asked(kwargs)))

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from chunks_of(self.answer(messages, **_asked(kwargs)))

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in chunks_of(await self.aanswer(messages, **_asked(kwargs))):
            yield chunk


def _with_metadata(config: RunnableConfig | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    return kwargs | {_METADATA: ensure_config(config).get("metadata") or {}}


def _asked(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": kwargs.get(_METADATA, {}), "tools": kwargs.get("tools") or ()}


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
