"""What each event says on paper; events that only begin something say nothing yet."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from daruma.graph.command_line import budget_lines, rollback_lines, team_lines
from daruma.graph.command_line.audit_lines import audit_lines
from daruma.graph.command_line.call_settled_lines import settled_lines
from daruma.graph.command_line.context_lines import compacted_lines
from daruma.graph.command_line.lesson_lines import lessons_lines
from daruma.graph.command_line.paper import Line, Mark
from daruma.graph.command_line.plan_lines import plan_lines
from daruma.graph.command_line.printable import beginning, one_line
from daruma.graph.command_line.setback_lines import (
    action_lines,
    attempt_lines,
    completed_lines,
    started_lines,
)
from daruma.graph.durations import duration_if_any

Event = Mapping[str, Any]

_SUCCESS = "exit code: 0"

_PAST = {
    "confirm": "confirmed",
    "approve": "approved",
    "reject": "rejected",
    "deny": "denied",
    "edit": "edited",
    "timeout": "parked: nobody confirmed it in time",
}


def lines_of(event: Event, call: str = "") -> list[Line]:
    """Return the lines for an event; ``call`` is the title of the tool call that it ends.

    What a team member does has the id of its phase before it.
    """
    if event["type"] == "tool_completed":
        lines = [_tool(event, call)]
    else:
        tell = _TELLERS.get(event["type"])
        lines = tell(event) if tell else []
    member = event.get("member")
    return [replace(line, text=f"{member}: {line.text}") for line in lines] if member else lines


def _task(event: Event) -> list[Line]:
    place = f"{event['mode']} in {event['workspace']}" if event["workspace"] else event["mode"]
    return [Line("line", event["goal"]), Line("note", place)]


def _recalled(event: Event) -> list[Line]:
    number = len(event["ids"])
    count = "1 memory" if number == 1 else f"{number} memories"
    return [Line("note", event["note"] or f"recalled {count}")]


def _model(event: Event) -> list[Line]:
    return [Line("bad", f"{event['model']}: {event['error']}")] if event["error"] else []


def _plan(event: Event) -> list[Line]:
    phases = event["plan"]["phases"]
    count = "1 phase" if len(phases) == 1 else f"{len(phases)} phases"
    return [Line("head", "Plan", count), *plan_lines(phases)]


def _decided(what: str) -> Callable[[Event], list[Line]]:
    def tell(event: Event) -> list[Line]:
        decision = event["decision"]
        past = _PAST.get(decision, decision)
        name = event.get("approval_id", "")
        mark: Mark = "bad" if decision in ("reject", "deny", "timeout") else "ok"
        return [Line(mark, f"{what} {name}".strip() + f" {past}")]

    return tell


def _answered(event: Event) -> list[Line]:
    if event["how"] == "resumed":
        return [Line("note", f"going on with {event['target_action']}")]
    return [Line("note", f"{event['target_action']} is not gone on with")]


def _phase(event: Event) -> list[Line]:
    return [Line("head", event["title"], f"phase {event['number']} of {event['of']}")]


def _phase_failed(event: Event) -> list[Line]:
    fallen = f"with it: {', '.join(event['fallen'])}" if event["fallen"] else ""
    return [Line("bad", f"phase {event['outcome']}: {event['reason']}", fallen)]


def _tool(event: Event, call: str) -> Line:
    first = one_line(event["output"].partition("\n")[0])
    failed = not event["ok"] or (event["tool"] == "run_command" and first != _SUCCESS)
    said = first if failed or event["tool"] == "run_tests" else ""
    tail = " · ".join(part for part in (said, duration_if_any(event["seconds"])) if part)
    return Line("bad" if failed else "ok", call or event["tool"], tail)


def _command(event: Event) -> list[Line]:
    if event["purpose"] == "tool":
        return []  # its tool tells it
    passed = event["passed"]
    killed = f"killed: too much of {event['stopped_by']}" if event["stopped_by"] else ""
    how = killed or ("timed out" if event["timed_out"] else f"exit {event['exit_code']}")
    why = "" if event["stopped_by"] else event["note"]
    parts = (why if passed else how, "" if passed else why, duration_if_any(event["seconds"]))
    tail = " · ".join(part for part in parts if part)
    return [Line("ok" if passed else "bad", f"$ {event['command']}", tail)]


def _verified(event: Event) -> list[Line]:
    if event["summary"].startswith("nothing"):
        return [Line("note", event["summary"])]
    return [Line("ok", "verified") if event["passed"] else Line("bad", "not verified")]


def _reflected(event: Event) -> list[Line]:
    said = Line("words", beginning(event["text"], 6)) if event["text"] else None
    return [Line("head", "Reflection"), said or Line("note", "none came; going on without")]


_TELLERS: dict[str, Callable[[Event], list[Line]]] = {
    "task_started": _task,
    "memory_recalled": _recalled,
    "lessons_given": lessons_lines,
    "model_call_completed": _model,
    "model_attempt_failed": attempt_lines,
    "plan_proposed": _plan,
    "plan_rejected": lambda event: [Line("bad", f"not a usable plan: {event['reason']}")],
    "spec_review_completed": _decided("plan"),
    "approval_completed": _decided("call"),
    "clarification_resolved": _answered,
    "answer_audited": lambda event: audit_lines(event["audit"]),
    "phase_started": _phase,
    "phase_completed": lambda _: [Line("ok", "phase completed")],
    "phase_failed": _phase_failed,
    "phase_rollback_started": rollback_lines.begun_lines,
    "phase_rollback_completed": rollback_lines.rolled_back_lines,
    "phase_rollback_failed": rollback_lines.failed_lines,
    "rollback_decided": rollback_lines.decided_lines,
    "budget_spent": budget_lines.spent_lines,
    "budget_settled": budget_lines.settled_lines,
    "savepoint_written": rollback_lines.savepoint_lines,
    "workspace_drifted": rollback_lines.drift_lines,
    "context_compacted": compacted_lines,
    "member_started": team_lines.taken_up_lines,
    "member_completed": team_lines.ended_lines,
    "merge_completed": team_lines.merged_lines,
    "call_settled": settled_lines,
    "command_run": _command,
    "verification_started": lambda _: [Line("head", "Verification")],
    "verification_completed": _verified,
    "reflected": _reflected,
    "recovery_started": started_lines,
    "recovery_action": action_lines,
    "recovery_completed": completed_lines,
}
