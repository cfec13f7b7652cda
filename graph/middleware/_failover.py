"""Failover for any agent: a chain of models, each failure read for what it means, all on record."""

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.errors import GraphBubbleUp

from daruma.graph.middleware._langchain_agents import AgentMiddleware, ModelRequest, ModelResponse
from daruma.graph.middleware._requests import Rule, acarried_out, answer_in, carried_out, tell
from daruma.graph.models import (
    CIRCUITS,
    CircuitOpen,
    Circuits,
    Pursuit,
    ReadableAnswers,
    Request,
    ScriptError,
    answer_within,
    attempt_event,
    check_whole,
    next_move,
    per_loop_model,
    resolve_model,
    with_failover,
)
from daruma.state.settings import Requests


class Failover(AgentMiddleware[Any, Any, Any]):
    """Asks the agent's model, then those that stand in for it, by what each failure means.

    ``fallbacks`` are chat models, or names such as ``"openai:NAME"``. All requests for one answer
    are counted here, within ``requests``; clients of OpenAI's protocol make none again by
    themselves, others have to be made so. A model that keeps failing is left alone for a while. The
    answer that came late says in ``response_metadata["failover"]`` what it took.

    Raises :class:`~daruma.state.failure.ModelFailed` where no model answers, with what each said,
    and :class:`~daruma.graph.models.ModelUnavailable` for a name that means none.
    """

    def __init__(
        self,
        *fallbacks: BaseChatModel | str,
        requests: Requests | None = None,
        circuits: Circuits = CIRCUITS,
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
        self._circuits, self._luck, self._clock = circuits, luck, clock

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        def asked(request: ModelRequest[Any]) -> ModelResponse[Any]:
            with ReadableAnswers(request.model):
                return handler(request)

        return carried_out(self._rule(request), asked)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        async def asked(request: ModelRequest[Any]) -> ModelResponse[Any]:
            with ReadableAnswers(request.model):
                return await answer_within(self._limits.seconds, handler(request))

        return await acarried_out(self._rule(request), asked)

    def _rule(self, request: ModelRequest[Any]) -> Rule:
        models = (self._ours(request.model), *self._fallbacks)
        this = Pursuit(
            node="model",
            call=0,
            role="main",
            chain=names_of(models),
            request=Request(request.messages),
            began=self._clock(),
        )
        while True:
            at, model = self._clock(), models[this.place]
            this.circuit = self._circuits.key_of(model if this.place else request.model)
            try:
                if not self._circuits.allows(this.circuit) and not this.is_last:
                    raise CircuitOpen("not asked: its last requests failed a moment ago")
                response = yield request.override(model=model)
                return self._answered(this, response, model)
            except (ScriptError, GraphBubbleUp):
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is, another model may answer
                wait = self._after(this, error, request, seconds=self._clock() - at)
            yield wait

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
        self._circuits.answered(this.circuit)
        if message is None or (record := this.failover(used=this.model)) is None:
            return response
        return ModelResponse(result=[with_failover(message, record)])

    def _after(
        self, this: Pursuit, error: Exception, request: ModelRequest[Any], *, seconds: float
    ) -> float:
        """Take down what failed, and return how long to wait. Raises ``ModelFailed``."""
        limits, elapsed = self._limits, self._clock() - this.began
        failed = this.failed(error, limits, elapsed)
        self._circuits.count(this.circuit, failed.fault)
        if self._circuits.is_open(this.circuit):
            limits = limits.model_copy(update={"per_model": 1})
        move = next_move(
            this.tried, chain=len(this.chain), limits=limits, elapsed=elapsed, luck=self._luck()
        )
        attempt = this.moved(move, seconds)
        number = this.requests if failed.asked else 0
        tell(request, attempt_event("model", 0, attempt, number, move.wait))
        if move.then == "gave up":
            raise this.given_up() from error
        return move.wait


def names_of(models: Sequence[BaseChatModel]) -> tuple[str, ...]:
    """Return what the record calls the models of a chain."""
    return tuple(str(getattr(each, "model_name", None) or type(each).__name__) for each in models)
