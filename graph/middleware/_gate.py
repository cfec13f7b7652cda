"""The gate for any agent: a policy for its calls, and one question for all that need a person."""

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, NotRequired

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    hook_config,
)
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

from daruma.state.calls import Grounds, ToolTask, approval_of, with_status
from daruma.state.interrupts import Decision, ReplyRefused, approval_request, read_reply
from daruma.state.settings import Tools
from daruma.tools.calls import (
    OpenApproval,
    Tool,
    VisibleTools,
    apply_decision,
    blocking_denial,
    denial_text,
    foreign_tool,
    import_schema_checks,
    policy_refusal,
    resolve_calls,
    tool_result,
)
from daruma.tools.calls.policy import check_policy, check_profile, profile_shows

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
    own = {call.id: call for call in calls if call.id in decisions and decisions[call.id].args}
    if not own:
        return []
    changed = [
        {**each, "args": own[each["id"]].args} if each["id"] in own else each
        for each in message.tool_calls
    ]
    return [message.model_copy(update={"tool_calls": changed})]
