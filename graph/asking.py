"""Asking a model: the one place where requests leave the machine and answers come in."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from daruma.graph.models.by_role import Models
from daruma.graph.models.errors import ModelError, ScriptError
from daruma.graph.requests import sendable
from daruma.state.events import Event, ModelCallCompleted, ModelCallStarted
from daruma.state.failure import ModelFailed
from daruma.state.usage import Role, Usage
from daruma.tools.context import Answer, Sampling
from daruma.tools.tool import Tool


class Asker:
    """What nodes ask models with; an :class:`daruma.tools.context.Ask`."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def __call__(
        self,
        node: str,
        messages: Sequence[BaseMessage],
        *,
        call: int,
        role: Role = "main",
        tools: Sequence[Tool] = (),
        sampling: Sampling | None = None,
        emit: Callable[[Event], None],
    ) -> Answer:
        """Ask once and tell how it went. Raises :class:`ModelFailed`."""
        name = self._name(role)
        with _Told(emit, node, name) as told:
            message = await self._answer(node, call, role, Request(messages, tools, sampling))
            told.usage = usage_of(message, role, name)
        return Answer(message=message, usage=told.usage)

    def _name(self, role: Role) -> str:
        try:
            return self._models.name(role)
        except ModelError as error:
            raise failed(error) from error

    async def _answer(self, node: str, call: int, role: Role, request: "Request") -> AIMessage:
        config = RunnableConfig(metadata={"daruma_role": node, "daruma_call": call})
        if request.sampling:
            config["tags"] = [TAG_NOSTREAM]
        try:
            # A client is made when it is first needed, which reads files and imports for a second.
            model = await asyncio.to_thread(self._models.get, role)
            return await request.sent(model, config)
        except ScriptError:
            raise
        except Exception as error:
            raise failed(error) from error


@dataclass(frozen=True)
class Request:
    """What a model is sent."""

    messages: Sequence[BaseMessage]
    tools: Sequence[Tool]
    sampling: Sampling | None

    async def sent(self, model: BaseChatModel, config: RunnableConfig) -> AIMessage:
        """Ask the model."""
        messages = sendable(self.messages)
        if self.tools:
            offered = model.bind_tools([tool.as_function() for tool in self.tools])
            return await offered.ainvoke(messages, config)
        if self.sampling is None:
            return await model.ainvoke(messages, config)
        limit = self.sampling.max_tokens
        options: dict[str, Any] = {"stream": False} | ({"max_tokens": limit} if limit else {})
        try:
            temperature = self.sampling.temperature
            return await model.ainvoke(messages, config, temperature=temperature, **options)
        except Exception as error:
            if "temperature" not in str(error):
                raise
            # Models that reason take no temperature, and refuse the request for it.
            return await model.ainvoke(messages, config, **options)


class _Told(AbstractContextManager["_Told"]):
    """Tells that a call began and, however it went, that it ended."""

    def __init__(self, emit: Callable[[Event], None], node: str, model: str) -> None:
        self._emit, self._node, self._model = emit, node, model
        self.usage: Usage | None = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._emit(ModelCallStarted(node=self._node, model=self._model))
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        usage = self.usage
        self._emit(
            ModelCallCompleted(
                node=self._node,
                model=self._model,
                seconds=time.monotonic() - self._started,
                input_tokens=usage.input_tokens if usage else 0,
                output_tokens=usage.output_tokens if usage else 0,
                error=None if error is None else str(error) or type(error).__name__,
            )
        )


def failed(error: Exception) -> ModelFailed:
    """Name what a provider's exception means; every provider has classes of its own."""
    kind = type(error).__name__
    timeout = isinstance(error, TimeoutError) or "Timeout" in kind
    text = " ".join(_without_key(str(error)).split())[:500] or kind
    return ModelFailed(text, code="timeout" if timeout else "llm_failure", cause=kind)


def _without_key(text: str) -> str:
    """Servers quote the key that they refuse; it must not reach the record."""
    key = os.environ.get("OPENAI_API_KEY")
    return text.replace(key, "[key]") if key else text


def usage_of(message: AIMessage, role: Role, model: str) -> Usage:
    """Read what a call cost out of its answer; nothing where the provider does not say."""
    counted = message.usage_metadata
    return Usage(
        role=role,
        model=model,
        input_tokens=counted["input_tokens"] if counted else 0,
        output_tokens=counted["output_tokens"] if counted else 0,
    )
