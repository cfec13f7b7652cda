"""The JSON Schema of all events, what each field means, and the way back from JSON."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from daruma.state.errors import DarumaError
from daruma.state.events import EVENTS, SCHEMA_VERSION, Event

# --- What each field of an event means, by its name; by event and name where that differs.

MEANINGS: Final[dict[str, str]] = {
    "approval_id": "Id of the approval, as in the approval_request.",
    "attempt": "Number of the request within its call, from 1; 0 for one that was not made.",
    "audit": "What was changed: the fields of state/steps.py.",
    "by": "Who chose the action: model, rule or learned.",
    "call": "Number of the thread's call to a model from this node, from 0.",
    "args": "The arguments of the call, keys masked.",
    "call_id": "Id of the call within its thread.",
    "carried": "executed, approved, denied, instructed, answered, observed or failed.",
    "code": "Error code of the failure that is recovered from.",
    "command": "The command line, or the word snapshot for a rollback without one.",
    "commands": "The command lines of the checks, in order.",
    "confidence": "How sure the choice is, from 0 to 1.",
    "conflicts": "Paths in conflict, relative to the workspace; if there are any, nothing came in.",
    "cost": "What was left out and what that cost: the fields of state/steps.py.",
    "decision": "What was decided.",
    "error": "What went wrong, in one line; null if nothing.",
    "exact": "Whether all files are as they were before the phase; null if nobody can tell.",
    "exit_code": "Exit code; negative for a signal, null for a command that was stopped.",
    "expert": "Role of the team member.",
    "fallen": "Ids of the phases that depend on this one and fail with it.",
    "goal": "The request, in the user's words.",
    "how": "How it was settled.",
    "did": "changed, denied or failed.",
    "hook": "Name of the function, or the command line of the program.",
    "point": "Where the hook stands: before_call, say.",
    "id": "Id of the question, the same in the request and in question_closed.",
    "ids": "Ids of the memories, best first.",
    "input_tokens": "Tokens that the model read, estimated where the provider does not say.",
    "limit": "What may be spent, in the measure's unit.",
    "lines": "The last lines of its output, keys masked.",
    "interrupt_id": "What the reply goes by: Command(resume={interrupt_id: reply}).",
    "kind": "approval, budget, clarification, doubt, plan, recovery or rollback.",
    "items": "The steps in order: text, and status (pending, in_progress or done).",
    "left": "Paths that are not as they were, relative to the workspace.",
    "member": "Id of the phase whose member it comes from, or of the call that a helper has; "
    "absent for the task's own.",
    "measure": "What the budget is of: tokens, usd or seconds.",
    "message": "The failure, in one line.",
    "missing_fields": "Names of the arguments that the call lacks.",
    "mode": "Mode: direct_chat, react, plan_exec or team_collab.",
    "more": "What was granted, in the measure's unit; 0 for nothing.",
    "model": "Name of the model, as in the settings.",
    "new_plan_id": "Id of the plan that took its place.",
    "node": "Node of the machine that asks.",
    "not_covered": "What the sandbox's level leaves open, one word for each.",
    "note": "Why there is nothing, or less than there could be; empty if there is no reason.",
    "number": "Number of the phase in its plan, from 1.",
    "of": "Number of phases in the plan.",
    "ok": "False for a call whose result is an error.",
    "outcome": "How it ended: a word of state/task.py.",
    "output": "What came of it, as text.",
    "output_tokens": "Tokens that the model wrote; 0 where the provider does not say.",
    "parameters": "Arguments of the action's tool; null if it has none.",
    "passed": "Whether all checks were green.",
    "paths": "Paths relative to the workspace.",
    "phase_id": "Id of the phase in its plan.",
    "pitfalls": "Ids of the pitfalls, the most alike first.",
    "plan_id": "Id of the plan.",
    "plan": "The plan: goal, phases and what they depend on.",
    "progress": "How far the work had come: the fields of state/progress.py.",
    "purpose": "What the command is for: tool, verification, validation or rollback.",
    "question": "What the user is asked.",
    "questions": "The open questions, each with its id and value.",
    "reason": "Why, in one line.",
    "reasoning": "Why the action was chosen, in the words of who chose it.",
    "result": "The result, as the command line's JSON has it; null if there is none.",
    "run": "Name of what was submitted; empty where the run was not a worker's.",
    "sandbox": "Level that the command was confined at: namespace, landlock or none.",
    "savepoint_id": "Id of the savepoint, as in 1/p1/done.",
    "schema_version": "Version of the events' schema: that of its $id.",
    "scope": "Whose budget it is: task or phase.",
    "seconds": "How long it took, in seconds.",
    "snapshot": "Id of the snapshot of the workspace; null if there is none.",
    "sent_at": "When it was sent, in Unix seconds.",
    "spent": "What is spent, in the measure's unit.",
    "spec_review_id": "Id of the review, as in the spec_review_request.",
    "status": "HTTP status of the provider's answer; null if there was none.",
    "stop": "Whether the task stands still before its next request, and asks.",
    "stopped": "Whether the work stops there.",
    "stopped_by": "The limit that it was killed for, memory or processes; empty if none.",
    "strategy": "What is done against the failure: a strategy of state/failure.py.",
    "summary": "One line of it, for people.",
    "changed_tests": "Test files, and what configures tests, that the task has changed.",
    "target_action": "Name of the tool whose call lacks something.",
    "task_id": "Id of the task: its thread's, and a number.",
    "text": "What the model said.",
    "then": "What comes next: again, next model or gave up.",
    "timed_out": "Whether it was stopped at its time limit.",
    "title": "Title of the phase.",
    "tool": "Name of the tool.",
    "tool_name": "Name of the tool that the action calls; null if it calls none.",
    "total": "Number of the files that changed; paths are the first of them.",
    "undo": "Id of the snapshot of what was there before; null if there is none.",
    "verdicts": "Of each criterion: criterion, met, evidence, why; none if the judge gave none.",
    "variants": "Ids of the learned instructions.",
    "wait": "Seconds until the next request.",
    "why": "Why, in one line.",
    "workspace": "Path of the workspace; null if there is none.",
    "message_received.goal": "What takes the place of the task's goal; empty for nothing.",
    "message_received.id": "What sending it returned.",
    "message_received.text": "What was said, keys masked.",
    "call_refused.reason": "What its model is told: the first 2,000 characters.",
    "command_run.note": "Why it is taken so, where the exit code does not tell: no tests, say.",
    "command_run.violation": "What the sandbox stopped, as far as it is known; empty for nothing.",
    "command_run.output": "Both ends of what it wrote, keys masked; empty for a tool's command.",
    "command_run.passed": "Whether it counts as passed.",
    "approval_completed.decision": "approve, deny or edit; void if it was about what has changed.",
    "call_settled.how": "reused, restore, again, happened, unknown or tell.",
    "spec_review_request.question": "What is asked: the interrupt's value.",
    "approval_request.question": "What is asked: the interrupt's value.",
    "question_request.question": "What is asked: the interrupt's value.",
    "question_closed.decision": "confirm, reject, edit, timeout, approve, deny, instruct or "
    "answer; several for approvals that were decided on differently.",
    "clarification_resolved.how": "resumed, or stale for a message about something else.",
    "run_stopped.error": "What the run raised, in one line; empty if nothing.",
    "run_stopped.outcome": "done, waiting, failed or unfinished.",
    "rollback_decided.decision": "retry, restore or keep.",
    "spec_review_completed.decision": "confirm, reject, edit or timeout.",
    "task_completed.checked": "What its checks said: passed, failed, or none if none did.",
    "task_completed.headline": "The status as people read it, as in completed, not checked.",
    "member_started.workspace": "Path of the member's worktree, or of where a helper reads; null "
    "if the task has no workspace.",
    "verification_completed.passed": "Whether all checks were green; null: nothing was checked.",
    "verification_completed.outcome": "passed, failed, or none: nothing was checked.",
    "task_completed.status": "How the task ended: state/task.py; only completed is success.",
    "work_judged.text": "A line for each criterion that is not met, and why.",
    "work_judged.passed": "Whether every criterion is met.",
    "tool_completed.output": "The first 2,000 characters of the result.",
}


def meaning_of(event: str, field: str) -> str:
    """Return what a field of an event means. Raises LookupError, saying where to say it."""
    meaning = MEANINGS.get(f"{event}.{field}") or MEANINGS.get(field)
    if meaning is None:
        raise LookupError(f"say what {field!r} of {event!r} means in state/events_schema.py")
    return meaning


# --- The JSON Schema of all events, generated from their types, and the way back from JSON.

SCHEMA: Final = "events.schema.json"
ID: Final = f"urn:daruma-agent:events:{SCHEMA_VERSION}"


class EventRefused(DarumaError):
    """Raised for what is no event, or none that this version knows; says which and why."""


def events_schema() -> dict[str, Any]:
    """Return the schema: any value of the stream ``custom`` is one of its ``$defs``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "Daruma's events",
        "description": "What a run tells in stream_mode='custom'. The version, the end of $id, "
        "grows when a field or an event is renamed, changed or removed. A release that only adds "
        "some keeps it, and brings its own file.",
        "type": "object",
        "required": ["type"],
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in EVENTS],
        "$defs": {name: _schema_of(event) for name, event in EVENTS.items()},
    }


def read_event(told: Mapping[str, Any]) -> Event:
    """Turn an event's JSON back into the event; fields of a newer version are left out.

    Raises :class:`EventRefused`.
    """
    event = EVENTS.get(str(told.get("type")))
    if event is None:
        raise EventRefused(f"{told.get('type')!r} is no event that this version knows")
    reader = _adapter(event.type)
    known = {key: each for key, each in told.items() if key in event.__dataclass_fields__}
    try:
        read: Event = reader.validate_python(known)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise EventRefused(f"{event.type}: {where}: {first['msg']}") from None
    return read


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(EVENTS[name])


def _schema_of(event: type[Event]) -> dict[str, Any]:
    plain = _adapter(event.type).json_schema()
    fields = {
        name: {key: value for key, value in each.items() if key != "title"}
        | {"description": meaning_of(event.type, name)}
        for name, each in plain["properties"].items()
    }
    return {
        "type": "object",
        "description": " ".join((event.__doc__ or "").split()),
        "properties": {"type": {"const": event.type}, **fields},
        "required": ["type", *(name for name in fields if name != "member")],
        "additionalProperties": False,
    }
