"""Around the model calls of other agents: the ladder of repairs, and models to fall back to."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp

from daruma.graph.middleware._gate import tools_of
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
from daruma.state.calls import ToolTask, with_status
from daruma.state.events import AnswerAudited, Event
from daruma.state.settings import Requests, Tools
from daruma.state.steps import Audit
from daruma.tools.calls import (
    BrokenCalls,
    VisibleTools,
    audit_answer,
    calls_of,
    check_names,
    import_schema_checks,
    read_answer,
    repair_round,
    tool_result,
)
from daruma.tools.context import EXACT
from daruma.tools.threads import in_model_thread

# --- A model's answer, who is told of it, and middleware around the call.

Handler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def answer_in(response: ModelResponse[Any]) -> AIMessage | None:
    """Return a response's one answer; None where it was read already, as structured output is."""
    if len(response.result) != 1 or response.structured_response is not None:
        return None
    (message,) = response.result
    return message if isinstance(message, AIMessage) else None


def send_event(request: ModelRequest[Any], event: Event) -> None:
    """Send an event to the run's ``custom`` stream, if it has one."""
    if request.runtime:
        request.runtime.stream_writer(event.to_dict())


class AroundModelCalls(AgentMiddleware[Any, Any, Any]):
    """Middleware that is written once: a synchronous agent waits for the asynchronous way."""

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        async def ask(request: ModelRequest[Any]) -> ModelResponse[Any]:
            return await in_model_thread(handler, request)

        return run(self.awrap_model_call(request, ask))


# --- The repair ladder for any agent: names, JSON and arguments by rules, then by one model call.

AUDIT = "daruma"
"""Where a message's ``response_metadata`` says what was changed of its calls, and what was said."""


class RepairLadder(AroundModelCalls):
    """Mends an answer's tool calls before any of them runs; what can not be mended is answered.

    ``settings`` are those of the tool loop. An agent runs what stands in the message, so the mended
    call stands there; ``response_metadata["daruma"]`` holds the ``audit`` of each step and what the
    model had ``said``. An answer that was cut off runs nothing. Each call has one result, always.

    Raises :class:`~daruma.tools.calls.ToolNameConflictError` for tools or aliases whose names
    could mean two tools, when the model is first asked.
    """

    def __init__(self, settings: Tools | None = None) -> None:
        super().__init__()
        # Whether a call is allowed is the gate's matter.
        self._settings = (settings or Tools()).model_copy(update={"policy": {}})

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Handler
    ) -> ModelResponse[Any]:
        await import_schema_checks()
        tools, own = tools_of(request.tools), self._settings
        check_names(tools, own.name_aliases, normalize=own.normalize_names)
        offer = VisibleTools(tools=tools, hidden=frozenset(), settings=own)
        answered = await handler(request)
        said = answer_in(answered)
        if said is None:
            return answered
        message_id = said.id or f"lc_run--{uuid4()}"
        message, calls, left_out = read_answer(said, message_id, offer)
        if not calls:
            return answered
        first = audit_answer(message_id, calls, left_out=left_out)
        calls, rounds = await self._rounds(request, message, calls, offer, handler)
        audits = [each for each in (first, *rounds) if each]
        for audit in audits:
            send_event(request, AnswerAudited(audit=audit.to_dict()))
        failed = with_status(calls, "failed")
        results = [tool_result(call, call.reason, ok=False) for call in failed]
        return ModelResponse(result=[as_run(message, calls, audits), *results])

    async def _rounds(
        self,
        request: ModelRequest[Any],
        message: AIMessage,
        calls: tuple[ToolTask, ...],
        offer: VisibleTools,
        handler: Handler,
    ) -> tuple[tuple[ToolTask, ...], list[Audit | None]]:
        """Ask the model about what the rules could not mend, as often as the settings allow."""
        audits: list[Audit | None] = []
        asked: list[str] = []
        while with_status(calls, "repairable"):
            this = repair_round(calls, [message], offer, asked.count)
            asked.append(this.signature)
            said = await _answered(request, this, handler)
            mended = this.mend(said)
            calls = tuple(this.close(mended.get(call.id, call)) for call in calls)
            told = this.record(mended)
            audits.append(audit_answer(this.message_id, tuple(mended.values()), asked=told))
        return calls, audits


async def _answered(request: ModelRequest[Any], this: BrokenCalls, handler: Handler) -> str:
    """Ask; a model that can not be asked mends nothing."""
    if not this.request.asked_ids:
        return ""
    asking = request.override(
        model=request.model.model_copy(
            update={"tags": [*(request.model.tags or ()), TAG_NOSTREAM]}
        ),
        messages=[HumanMessage(this.request.user)],
        system_message=SystemMessage(this.request.system),
        tools=[],
        tool_choice=None,
        response_format=None,
        model_settings={"temperature": EXACT.temperature},
    )
    try:
        response = await handler(asking)
    except (ScriptError, GraphBubbleUp):
        raise
    except Exception:  # noqa: BLE001  # the calls stay broken, and the model is told why
        return ""
    answer = answer_in(response)
    return answer.text if answer else ""


def as_run(message: AIMessage, calls: Sequence[ToolTask], audits: Sequence[Audit]) -> AIMessage:
    """Return an answer whose calls are those that run, with what the model had said beside them."""
    own = [
        {"type": "tool_call", "id": call.id, "name": call.name or "unknown", "args": call.args}
        for call in calls
    ]
    said = [{"id": each.id, "name": each.name, "args": each.raw} for each in calls_of(message)]
    audit = {"audit": [each.to_dict() for each in audits], "said": said}
    kept = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    changes = {
        "tool_calls": own,
        "invalid_tool_calls": [],
        "additional_kwargs": kept,
        "response_metadata": message.response_metadata | ({AUDIT: audit} if audits else {}),
    }
    return message.model_copy(update=changes)


# --- Failover for any agent: a chain of models, each failure read for what it means, all on
# record.


class Failover(AroundModelCalls):
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
        """The agent's model, and the same without retries of its own."""
        self._luck, self._clock = luck, clock

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Handler
    ) -> ModelResponse[Any]:
        if self._main is None or self._main[0] is not request.model:
            self._main = request.model, per_loop_model(request.model)
        models = (self._main[1], *self._fallbacks)
        this = Pursuit(
            node="model",
            call=0,
            role="main",
            chain=tuple(
                str(getattr(each, "model_name", None) or type(each).__name__) for each in models
            ),
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

    def _answered(
        self, this: Pursuit, response: ModelResponse[Any], model: BaseChatModel
    ) -> ModelResponse[Any]:
        message = answer_in(response)
        if message is not None:
            check_whole(message, model)
        if message is None or (record := this.failover(used=this.model)) is None:
            return response
        return ModelResponse(result=[with_failover(message, record)])
