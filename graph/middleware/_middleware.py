"""Middleware for any agent of LangChain's: a gate for its calls, the ladder of repairs around its
model calls, and models to fall back to.
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, NotRequired
from uuid import uuid4

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    hook_config,
)
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.agents.structured_output import AutoStrategy, OutputToolBinding, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

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
from daruma.state.calls import Grounds, ToolTask, approval_of, with_status
from daruma.state.events import AnswerAudited, Event
from daruma.state.interrupts import Decision, ReplyRefused, approval_request, read_reply
from daruma.state.settings import Requests, Tools
from daruma.state.steps import Audit
from daruma.tools.calls import (
    BrokenCalls,
    OpenApproval,
    Tool,
    VisibleTools,
    apply_decision,
    audit_answer,
    blocking_denial,
    calls_of,
    check_names,
    denial_text,
    foreign_tool,
    import_schema_checks,
    policy_refusal,
    read_answer,
    repair_round,
    resolve_calls,
    tool_result,
)
from daruma.tools.calls.policy import check_policy, check_profile, profile_shows
from daruma.tools.context import EXACT
from daruma.tools.threads import in_model_thread

# --- An agent's tools as our rules see them: what their calls are read and judged by.

Given = BaseTool | Callable[..., Any] | dict[str, Any]
"""What ``create_agent`` takes for a tool."""


def tools_of(given: Iterable[Given]) -> tuple[Tool, ...]:
    """Return the tools that can be called by name; a provider's own tools are none."""
    return tuple(tool for each in given if (tool := foreign_tool(each)) is not None)


def with_name(offer: VisibleTools, name: str) -> VisibleTools:
    """Return an offer that also has what is called by a name of which nothing else is known.

    Other middleware brings tools of its own, and the policy is about these, too.
    """
    if offer.find(name) or name in offer.hidden:
        return offer
    anything = {"type": "object", "additionalProperties": True}
    tool = foreign_tool({"name": name, "description": "", "parameters": anything})
    if tool and profile_shows(offer.settings, tool):
        return replace(offer, tools=(*offer.tools, tool))
    return replace(offer, hidden=offer.hidden | {name})


# --- The gate: a policy for an agent's calls.

AS_GIVEN: Final = {
    "normalize_names": False,
    "name_aliases": {},
    "name_repair_attempts": 0,
    "call_repair_attempts": 0,
    "validate_schema": False,
    "max_argument_bytes": sys.maxsize,
}
"""The gate judges what would run, and mends nothing."""


CHANGED: Final = (
    "not run: what was approved is not what would run now; call it again to have it asked"
)


class GateState(AgentState[Any]):
    """What the gate keeps: the digests of what a person agreed to, by the call's place."""

    daruma_approved: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]


class Gate(AgentMiddleware[GateState, Any, Any]):
    """Denies, allows, or has a person confirm an agent's calls, by the policy of ``settings``.

    ``tools`` are the agent's; those that other middleware brings are judged by their names and
    arguments. All calls of one answer that need a person are asked about in one
    interrupt, our ``approval_request``; its reply names each approval with its digest. A reply that
    does not fit is asked about again, with the reason under ``refused``. What runs is what was
    approved, looked at once more when it does. A required approval that is denied ends the run:
    none of the answer's calls runs, and the last message says so.

    Raises :class:`~daruma.state.settings.SettingsError` for a profile that is not there and
    a rule that is about nothing.
    """

    state_schema = GateState

    def __init__(self, tools: Iterable[Given], settings: Tools) -> None:
        super().__init__()
        known = {tool.name: tool for tool in tools_of(tools)}
        check_profile(settings)
        check_policy(settings, known)
        visible = tuple(tool for tool in known.values() if profile_shows(settings, tool))
        hidden = frozenset(known) - {tool.name for tool in visible}
        self._editing = VisibleTools(visible, hidden, settings)
        self._offer = replace(self._editing, settings=settings.model_copy(update=AS_GIVEN))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._showing(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(self._showing(request))

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: GateState, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        message, results = newest_answer(state["messages"])
        waiting = [c for c in message.tool_calls if c["id"] not in results] if message else []
        if message is None or not waiting:
            return None
        calls = [self._task(each, str(message.id)) for each in waiting]
        decisions: dict[str, Decision] = {}
        return _update(message, self._decided(calls, decisions), decisions)

    @hook_config(can_jump_to=["end"])
    async def aafter_model(self, state: GateState, runtime: Any) -> dict[str, Any] | None:
        await import_schema_checks()  # for arguments that a person edits
        return self.after_model(state, runtime)

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        return self._refusal(request) or handler(request)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        return self._refusal(request) or await handler(request)

    def _showing(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Have the model see the tools that the profile shows; a provider's own stay."""
        kept = ((each, foreign_tool(each)) for each in request.tools)
        settings = self._offer.settings
        tools = [each for each, tool in kept if tool is None or profile_shows(settings, tool)]
        return request.override(tools=tools)

    def _task(self, call: Mapping[str, Any], message_id: str) -> ToolTask:
        own = {"id": str(call["id"]), "name": call["name"], "args": dict(call["args"])}
        answer = AIMessage("", id=message_id, tool_calls=[{**own, "type": "tool_call"}])
        return resolve_calls(answer, with_name(self._offer, call["name"]))[0]

    def _decided(
        self, calls: Sequence[ToolTask], decisions: dict[str, Decision]
    ) -> tuple[ToolTask, ...]:
        """Ask until all that needs a person is decided; each question is asked in its order."""
        refused = ""
        while waiting := with_status(calls, "awaiting"):
            opened = {call.id: OpenApproval(call, None, Grounds()) for call in waiting}
            question = approval_request(tuple(each.approval for each in opened.values()))
            given = interrupt({**question, **({"refused": refused} if refused else {})})
            try:
                reply = read_reply(question, given)
            except ReplyRefused as error:
                refused = str(error)
                continue
            refused = ""
            new = {each.approval_id: each for each in reply.decisions}
            decisions.update(new)
            after = {
                id_: apply_decision(at := opened[id_], each, with_name(self._editing, at.call.name))
                for id_, each in new.items()
            }
            calls = tuple(after.get(call.id, call) for call in calls)
        return tuple(calls)

    def _refusal(self, request: ToolCallRequest) -> ToolMessage | None:
        """Look at a call once more, as it is about to run."""
        tool = with_name(self._offer, request.tool_call["name"]).find(request.tool_call["name"])
        state = request.state if isinstance(request.state, Mapping) else {}
        message, _ = newest_answer(state.get("messages", ()))
        call = self._task(request.tool_call, str(message.id if message else ""))
        if tool is None:
            return tool_result(call, call.reason, ok=False)
        approved = (state.get("daruma_approved") or {}).get(call.result_id, "")
        call = replace(call, approved=approved)
        said = policy_refusal(call, tool, self._offer.settings)
        if not said and approved and approval_of(call, None).digest != approved:
            said = CHANGED
        return tool_result(call, said, ok=False) if said else None


def newest_answer(messages: Sequence[AnyMessage]) -> tuple[AIMessage | None, set[str]]:
    """Return the newest answer of the model, and the ids of its calls that have a result."""
    results: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message, results
        if isinstance(message, ToolMessage):
            results.add(message.tool_call_id)
    return None, results


def _update(
    message: AIMessage, calls: Sequence[ToolTask], decisions: Mapping[str, Decision]
) -> dict[str, Any]:
    denied, failed = with_status(calls, "rejected"), with_status(calls, "failed")
    told = [(call, call.reason) for call in failed]
    told += [(call, denial_text(decisions[call.id])) for call in denied]
    if blocked := blocking_denial(denied):
        told += [(call, f"Not run: {blocked}") for call in with_status(calls, "ready")]
    results: list[AnyMessage] = [tool_result(call, text, ok=False) for call, text in told]
    if blocked:
        return {"messages": [*results, AIMessage(f"Stopped: {blocked}.")], "jump_to": "end"}
    approved = {call.result_id: call.approved for call in calls if call.approved}
    edited = _edited(message, calls, decisions)
    return {"messages": [*edited, *results], "daruma_approved": approved}


def _edited(
    message: AIMessage, calls: Sequence[ToolTask], decisions: Mapping[str, Decision]
) -> list[AnyMessage]:
    own = {c.id: c for c in calls if c.id in decisions and decisions[c.id].args is not None}
    if not own:
        return []
    changed = [
        {**each, "args": own[each["id"]].args} if each["id"] in own else each
        for each in message.tool_calls
    ]
    return [message.model_copy(update={"tool_calls": changed})]


# --- A model's answer, who is told of it, and middleware around the call.

Handler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def answer_in(response: ModelResponse[Any]) -> AIMessage | None:
    """Return a response's one answer; results may stand beside it, as of structured output."""
    said = [each for each in response.result if isinstance(each, AIMessage)]
    return said[0] if len(said) == 1 else None


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
        outputs = output_tools(request.response_format)
        shown = (*tools, *tools_of(each.tool for each in outputs.values()))
        offer = VisibleTools(tools=shown, hidden=frozenset(), settings=own)
        answered = await handler(request)
        said = answer_in(answered)
        others = [each for each in answered.result if isinstance(each, ToolMessage)]
        done = {each.tool_call_id for each in others}
        if said is None or (answered.structured_response is not None and not done):
            return answered
        message_id = said.id or f"lc_run--{uuid4()}"
        message, calls, left_out = read_answer(said, message_id, offer)
        calls = tuple(call for call in calls if call.id not in done)
        kept = [each for each in message.tool_calls if each["id"] in done]
        if not calls or len(kept) < len(done):
            return answered
        first = audit_answer(message_id, calls, left_out=left_out)
        calls, rounds = await self._rounds(request, message, calls, offer, handler)
        audits = [each for each in (first, *rounds) if each]
        for audit in audits:
            send_event(request, AnswerAudited(audit=audit.to_dict()))
        found, results = structured_in(calls, outputs)
        mended = as_run(message, calls, audits)
        mended.tool_calls = [*kept, *mended.tool_calls]
        return ModelResponse([mended, *others, *results], answered.structured_response or found)

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


def output_tools(asked: object) -> dict[str, OutputToolBinding[Any]]:
    """Return the tools by which an agent's structured answer may be given, by their names."""
    asked = ToolStrategy(asked.schema) if isinstance(asked, AutoStrategy) else asked
    specs = getattr(asked, "schema_specs", ())  # a provider's own way has none
    return {each.name: OutputToolBinding.from_schema_spec(each) for each in specs}


def structured_in(
    calls: Sequence[ToolTask], outputs: Mapping[str, OutputToolBinding[Any]]
) -> tuple[Any, list[ToolMessage]]:
    """Return the first structured answer that calls give, and the results of what does not run."""
    found, results = None, list[ToolMessage]()
    for call in calls:
        if call.status == "failed":
            results.append(tool_result(call, call.reason, ok=False))
        elif call.name in outputs:
            try:
                found = found or outputs[call.name].parse(call.args)
                results.append(tool_result(call, f"Returning structured response: {found}"))
            except ValueError as error:
                results.append(tool_result(call, str(error), ok=False))
    return found, results


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
        if (message := answer_in(response)) is not None:
            check_whole(message, model)
            if record := this.failover(used=this.model):
                response.result[response.result.index(message)] = with_failover(message, record)
        return response
