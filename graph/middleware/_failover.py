"""Failover for any agent: a chain of models, each failure read for what it means, all on record."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langgraph.errors import GraphBubbleUp

from daruma.graph.middleware._requests import answer_in, in_threads, send_event
from daruma.graph.models import (
    Pursuit,
    ReadableAnswers,
    Request,
    ScriptError,
    answer_within,
    check_whole,
    per_loop_model,
    resolve_model,
    with_failover,
)
from daruma.graph.sync import run
from daruma.state.settings import Requests


class Failover(AgentMiddleware[Any, Any, Any]):
    """Asks the agent's model, then those that stand in for it, by what each failure means.

    ``fallbacks`` are chat models, or names such as ``"openai:NAME"``. All requests for one answer
    are counted here, within ``requests``; clients of OpenAI's protocol make none again by
    themselves, others have to be made so. The answer that came late says in
    ``response_metadata["failover"]`` what it took.

    Raises :class:`~daruma.state.failure.ModelFailed` where no model answers, with what each said,
    and :class:`~daruma.graph.models.ModelUnavailable` for a name that means none.
    """

    def __init__(
        self,
        *fallbacks: BaseChatModel | str,
        requests: Requests | None = None,
        luck: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._limits = own = requests or Requests()
        self._fallbacks = tuple(
            per_loop_model(each)
            if isinstance(each, BaseChatModel)
            else resolve_model(each, aliases={}, requests=own)
            for each in fallbacks
        )
        self._main: tuple[BaseChatModel, BaseChatModel] | None = None
        self._luck, self._clock = luck, clock

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        return run(self.awrap_model_call(request, in_threads(handler)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        models = (self._ours(request.model), *self._fallbacks)
        this = Pursuit(
            node="model",
            call=0,
            role="main",
            chain=tuple(_name_of(each) for each in models),
            request=Request(request.messages),
            limits=self._limits,
            emit=partial(send_event, request),
            luck=self._luck,
            clock=self._clock,
        )
        while True:
            this.since, this.asked = self._clock(), (model := models[this.place])
            try:
                with ReadableAnswers(model):
                    answering = handler(request.override(model=model))
                    response = await answer_within(self._limits.seconds, answering)
                return self._answered(this, response, model)
            except (ScriptError, GraphBubbleUp):
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is, another model may answer
                wait = this.failed(error)
            await asyncio.sleep(wait)

    def _ours(self, model: BaseChatModel) -> BaseChatModel:
        """Return the agent's model without retries of its own, made once for each."""
        if self._main is None or self._main[0] is not model:
            self._main = (model, per_loop_model(model))
        return self._main[1]

    def _answered(
        self, this: Pursuit, response: ModelResponse[Any], model: BaseChatModel
    ) -> ModelResponse[Any]:
        message = answer_in(response)
        if message is not None:
            check_whole(message, model)
        if message is None or (record := this.failover(used=this.model)) is None:
            return response
        return ModelResponse(result=[with_failover(message, record)])


def _name_of(model: BaseChatModel) -> str:
    return str(getattr(model, "model_name", None) or type(model).__name__)
