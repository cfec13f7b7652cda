"""Asking models: the one place where requests leave the machine, are counted, and answers come in.

No client below repeats a request, and no node above does: all requests for one answer, to the
model that is meant and to those that stand in for it, are made and counted here.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from copy import copy

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.errors import GraphBubbleUp

from daruma.graph.models import (
    BrokenAnswer,
    CallEvents,
    CircuitOpen,
    Models,
    ModelUnavailable,
    NextMove,
    Pursuit,
    ReadableAnswers,
    Request,
    ScriptError,
    ToolOfferingModel,
    answer_of,
    answer_within,
    check_whole,
    next_move,
    usage_of,
)
from daruma.graph.tracing import request_traced
from daruma.state.events import Event
from daruma.state.failure import ModelFailed
from daruma.state.settings import Requests
from daruma.state.usage import Role
from daruma.tools.calls import Tool, storable_answer
from daruma.tools.context import Answer, Sampling

AUXILIARY_SECONDS = 60.0
"""Seconds for one answer of an auxiliary model of its own, with all requests and waits."""


class Asker:
    """What nodes ask models with; an :class:`daruma.tools.context.Ask`.

    ``luck`` gives random numbers from 0 to 1, ``clock`` seconds from any point on.
    """

    def __init__(
        self,
        models: Models,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        luck: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._models, self._limits, self._circuits = models, models.requests, models.circuits
        self._sleep, self._luck, self._clock = sleep, luck, clock
        self.own_auxiliary = models.own_auxiliary
        self._member = ""
        self._offered = ToolOfferingModel()

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
        """Ask for one answer and tell how it went. Raises :class:`ModelFailed`."""
        chain = self._chain(role)
        request = Request(messages, tools, sampling, offered=self._offered)
        this = Pursuit(node, call, role, chain, request, began=self._clock(), member=self._member)
        with CallEvents(emit, node, call, chain[0]) as told:
            message = await self._answered(this, told)
            told.usage = await self._models.priced(usage_of(message, this), role, this.place)
        return answer_of(message, told.usage, this.failover(used=this.model))

    @property
    def model(self) -> str:
        """The name of the main model; empty where there is none."""
        try:
            return self._models.name("main")
        except ModelUnavailable:
            return ""

    def of_member(self, phase_id: str) -> "Asker":
        """Return what the team member that carries out a phase asks with: the same, by its name."""
        asker = copy(self)
        asker._member = phase_id
        return asker

    def _chain(self, role: Role) -> tuple[str, ...]:
        try:
            return self._models.chain(role)
        except ModelUnavailable as error:
            raise ModelFailed(str(error), cause=type(error).__name__, final=True) from error

    async def _answered(self, this: Pursuit, told: CallEvents) -> AIMessage:
        """Make requests until one is answered, or no other is to be made."""
        while True:
            at = self._clock()
            try:
                with request_traced(this) as span:
                    message = await self._requested(this)
                    if span:
                        span.answered(message)
                return message
            except (ScriptError, GraphBubbleUp):
                raise
            except Exception as error:
                move = self._after(this, error, told, seconds=self._clock() - at)
                if move.then == "gave up":
                    raise this.given_up() from error
            await self._sleep(move.wait)

    async def _requested(self, this: Pursuit) -> AIMessage:
        this.circuit, this.asked = None, None
        model = self._models.made(this.role, this.place)
        if model is None:  # a deadline costs as much as all that is looked up here
            model = await answer_within(self._left(this), self._models.ready(this.role, this.place))
        this.circuit, this.asked = self._models.circuit_key(this.role, this.place), model
        if not self._circuits.allows(this.circuit) and not this.is_last:
            raise CircuitOpen("not asked: its last requests failed a moment ago")
        with ReadableAnswers(model):
            sent = this.request.sent(model, this.metadata)
            message = await answer_within(
                min(self._limits_of(this).seconds, self._left(this)), sent
            )
        if not isinstance(message, AIMessage):
            raise BrokenAnswer(f"the answer is no message of a model, but {type(message).__name__}")
        message = storable_answer(message)
        try:
            check_whole(message, model)
        except BrokenAnswer:  # it can not be used, and was charged for
            usage = usage_of(message, this)
            this.charged = await self._models.priced(usage, this.role, this.place)
            raise
        self._circuits.answered(this.circuit)
        return message

    def _limits_of(self, this: Pursuit) -> Requests:
        """Return the limits of a call; where the main model is asked next, waiting is no use."""
        if this.role != "auxiliary" or not self.own_auxiliary:
            return self._limits
        most = min(self._limits.total_seconds, AUXILIARY_SECONDS)
        return self._limits.model_copy(update={"total_seconds": most})

    def _left(self, this: Pursuit) -> float:
        return self._limits_of(this).total_seconds - (self._clock() - this.began)

    def _after(
        self, this: Pursuit, error: Exception, told: CallEvents, *, seconds: float
    ) -> NextMove:
        """Take down what failed, tell it, and return what comes next."""
        limits, elapsed = self._limits_of(this), self._clock() - this.began
        failed = this.failed(error, limits, elapsed)
        self._circuits.count(this.circuit, failed.fault)
        only_one = self._circuits.is_open(this.circuit)
        limits = limits.model_copy(update={"per_model": 1}) if only_one else limits
        move = next_move(
            this.tried, chain=len(this.chain), limits=limits, elapsed=elapsed, luck=self._luck()
        )
        attempt = this.moved(move, seconds)
        told.failed(attempt, this.requests if failed.asked else 0, move.wait)
        return move
