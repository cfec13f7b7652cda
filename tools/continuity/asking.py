"""Ending a turn with a question for what a call lacks (CO-01)."""

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.clarification import (
    MOST_ASKED,
    Clarification,
    each_of,
    joined,
    with_status,
)
from daruma.state.continuity import RESUME, Continuity
from daruma.state.ending import answer
from daruma.state.events import ClarificationRequested
from daruma.state.failure import Failure
from daruma.state.messages import Messages
from daruma.state.tool_task import ToolTask
from daruma.state.tool_task import with_status as calls_with
from daruma.tools.context import Context
from daruma.tools.continuity.resuming import LIVE, kept_beside
from daruma.tools.results import tool_result


def asked(state: State, context: Context) -> Update | None:
    """Ask the user for what the answered calls lack; None where they lack nothing.

    In a plan the question is put as an interrupt by the node that comes next. What was asked for
    ``MOST_ASKED`` times already ends the work.
    """
    lack = calls_with(state.calls, "lacking")
    if not lack:
        return None
    before = {each.call_id: each for each in each_of(state.clarification)}
    new = [_clarification(call, before.get(call.continues), state) for call in lack]
    taken = {call.continues for call in lack}
    kept = [
        each for each in before.values() if each.status == "resumed" and each.call_id not in taken
    ]
    results: Messages = [
        tool_result(call, f"Not run: the user was asked: {call.reason}", ok=False) for call in lack
    ]
    if any(each.asked > MOST_ASKED for each in new):
        return Update(**_given_up(new, state), messages=results)
    question = "\n".join(dict.fromkeys(_told(each, len(new)) for each in new))
    found = joined((replace(new[0], question=question), *new[1:], *(_open(k, state) for k in kept)))
    if state.plan is None:
        results.append(AIMessage(question, id=_message_id(state)))
    return Update(**_opened(found, state, context), messages=results)


def asked_in_words(state: State, update: Update, context: Context) -> Update:
    """Return the update of an answer; a clarification that it has not gone on with stays open.

    The model may have asked on in its own words. What was tried and failed is not asked for again.
    """
    live = [each for each in each_of(state.clarification) if each.status in LIVE]
    if not live or state.plan or update.get("failure") or update.get("calls"):
        return update
    said = answer(replace(state, messages=[*state.messages, *_said(update)]))
    if not said:
        return update
    pending = joined(tuple(each for each in live if each.status == "resumed"))
    if pending is None:
        tried = with_status(live[0], "stale")
        return update | {"clarification": tried, "continuity": _stale(state)}
    if pending.asked >= MOST_ASKED:
        return update | _given_up([pending], state)
    again = replace(_open(pending, state), question=said, asked=pending.asked + 1)
    return update | _opened(again, state, context)


def _said(update: Update) -> list[AnyMessage]:
    return [m for m in update.get("messages", ()) if not isinstance(m, RemoveMessage)]


def _clarification(call: ToolTask, before: Clarification | None, state: State) -> Clarification:
    task = state.task
    return Clarification(
        task_id=state.task_id,
        call_id=call.result_id,
        owning_agent=(task and task.expert) or "main",
        owning_sub_commander=(task and task.template) or "",
        target_action=call.name,
        question=call.reason,
        partial_args=call.args,
        missing_fields=call.missing,
        goal=(before.goal if before else "") or (task.goal if task else ""),
        asked=before.asked + 1 if before else 1,
        extra=before.extra if before else {},
    )


def _told(each: Clarification, of: int) -> str:
    """Return a question, with what it is about where there are several."""
    shown = [str(value) for value in each.partial_args.values() if isinstance(value, str)]
    return f"{shown[0]:.80}: {each.question}" if of > 1 and shown else each.question


def _open(known: Clarification, state: State) -> Clarification:
    return with_status(known, "open", task_id=state.task_id)


def _opened(found: Clarification | None, state: State, context: Context) -> Update:
    if found is None:
        return {}
    fields = tuple(dict.fromkeys(name for each in each_of(found) for name in each.missing_fields))
    context.emit(
        ClarificationRequested(
            question=found.question, target_action=found.target_action, missing_fields=fields
        )
    )
    continuity = Continuity(mode=RESUME, extra=kept_beside(state))
    return {"clarification": found, "continuity": continuity, "calls": (), "failure": None}


def _given_up(parts: Sequence[Clarification], state: State) -> Update:
    worn = max(parts, key=lambda each: each.asked)
    message = (
        f"{worn.target_action} was not run: the user was asked {MOST_ASKED} times for "
        f"{', '.join(worn.missing_fields) or 'what it needs'}, and it is still missing"
    )
    return {
        "clarification": with_status(worn, "given_up", task_id=state.task_id),
        "continuity": _stale(state),
        "calls": (),
        "failure": Failure(code="bad_request", node="main", message=message),
    }


def _stale(state: State) -> Continuity:
    return Continuity(status="stale", extra=kept_beside(state))


def _message_id(state: State) -> str:
    return f"{state.task_id}:clarification:{budget.on_thread(state, 'think')}"
