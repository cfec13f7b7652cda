"""Carrying out an action against a failure: what the state becomes. Nothing here can fail."""

from dataclasses import dataclass

from langchain_core.messages import AIMessage, HumanMessage

from daruma.state.channels import State, Update
from daruma.state.events import AnswerAudited
from daruma.state.failure import Failure
from daruma.state.recoveries import retries
from daruma.state.recovery import RecoveryAction
from daruma.state.tool_task import with_status
from daruma.tools.auditing import changes_of
from daruma.tools.context import Context
from daruma.tools.offer import offer_of
from daruma.tools.resolution import tool_tasks
from daruma.tools.results import tool_result

LONGEST_WAIT = 60.0
"""Seconds that a retry waits at most, however often it was tried."""


@dataclass(frozen=True)
class Case:
    """A failure that is being dealt with; ``message_id`` is that of what is said about it."""

    state: State
    failure: Failure
    message_id: str


async def carried_out(case: Case, action: RecoveryAction, context: Context) -> Update:
    """Do what an action says, but for giving up, which leaves the failure where it is."""
    if action.strategy == "give-up":
        return left_open(case)
    if action.strategy == "retry":
        await context.sleep(wait(case.state, context.settings.fallback_chain.recovery.wait_seconds))
        if case.failure.unanswered or case.failure.node == "verify":
            return closed(case, "")  # no model is told: none was heard, or none is asked again
    given = action.tool_name and action.parameters is not None
    if action.strategy == "parameter-adjustment" and given:
        return _called(case, action, context)
    return closed(case, advice(case.failure, action))


def closed(case: Case, said: str) -> Update:
    """Close the failure and go on, with what the model is told about it."""
    origin = case.state.origin or case.failure
    told = [HumanMessage(said, id=case.message_id)] if said else []
    return {"failure": None, "origin": origin, "action": None, "calls": (), "messages": [*told]}


def left_open(case: Case, said: str = "") -> Update:
    """Leave the failure open, under the code of the first one (EM-04), with what was said of it."""
    update: Update = {"origin": case.state.origin or case.failure, "action": None}
    return update | {"messages": [HumanMessage(said, id=case.message_id)]} if said else update


def wait(state: State, seconds: float) -> float:
    """Return how long a retry waits: twice as long each time, at most ``LONGEST_WAIT``."""
    doubled: float = seconds * 2 ** min(retries(state), 10)
    return min(doubled, LONGEST_WAIT)


def advice(failure: Failure, action: RecoveryAction) -> str:
    """Say to the model what failed and how to go on."""
    how = {
        "retry": "Try again.",
        "alternative-tool": f"The tool {failure.tool} is not there for the next step: "
        + (f"use {action.tool_name}." if action.tool_name else "use another one."),
    }.get(action.strategy, "Go on another way.")
    return " ".join(
        filter(None, (f"The last step failed: {failure.message}.", how, action.reasoning))
    )


def _called(case: Case, action: RecoveryAction, context: Context) -> Update:
    """Make the corrected call: it goes through the same gate as any call of the model."""
    # Providers refuse long ids; results are told apart by the message's id as well.
    call = {"name": action.tool_name, "args": action.parameters, "id": "call_0"}
    message = AIMessage(action.reasoning, tool_calls=[call], id=case.message_id)
    calls = tool_tasks(message, offer_of(case.state.task, context))
    audit = changes_of(case.message_id, calls)
    if audit:
        context.emit(AnswerAudited(audit=audit.to_dict()))
    failed = [tool_result(each, each.reason, ok=False) for each in with_status(calls, "failed")]
    return closed(case, "") | {"messages": [message, *failed], "calls": calls}
