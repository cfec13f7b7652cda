"""What each event says on paper; events that only begin something say nothing yet."""

from collections.abc import Callable, Mapping
from typing import Any

from daruma.graph.command_line.audit_lines import audit_lines
from daruma.graph.command_line.paper import Line, Mark
from daruma.graph.command_line.plan_lines import plan_lines
from daruma.graph.command_line.printable import beginning, one_line
from daruma.graph.command_line.setback_lines import (
    action_lines,
    attempt_lines,
    completed_lines,
    started_lines,
)

Event = Mapping[str, Any]

_SUCCESS = "exit code: 0"


def lines_of(event: Event, call: str = "") -> list[Line]:
    """Return the lines for an event; ``call`` is the title of the tool call that it ends."""
    if event["type"] == "tool_completed":
        return [_tool(event, call)]
    tell = _TELLERS.get(event["type"])
    return tell(event) if tell else []


def _task(event: Event) -> list[Line]:
    place = f"{event['mode']} in {event['workspace']}" if event["workspace"] else event["mode"]
    return [Line("line", event["goal"]), Line("note", place)]


def _model(event: Event) -> list[Line]:
    return [Line("bad", f"{event['model']}: {event['error']}")] if event["error"] else []


def _plan(event: Event) -> list[Line]:
    phases = event["plan"]["phases"]
    count = "1 phase" if len(phases) == 1 else f"{len(phases)} phases"
    return [Line("head", "Plan", count), *plan_lines(phases)]


def _decided(what: str) -> Callable[[Event], list[Line]]:
    def tell(event: Event) -> list[Line]:
        decision = event["decision"]
        done = {"confirm": "confirmed", "approve": "approved", "reject": "rejected"}
        past = done.get(decision, "denied" if decision == "deny" else "edited")
        name = event.get("approval_id", "")
        mark: Mark = "bad" if decision in ("reject", "deny") else "ok"
        return [Line(mark, f"{what} {name}".strip() + f" {past}")]

    return tell


def _phase(event: Event) -> list[Line]:
    return [Line("head", event["title"], f"phase {event['number']} of {event['of']}")]


def _phase_failed(event: Event) -> list[Line]:
    fallen = f"with it: {', '.join(event['fallen'])}" if event["fallen"] else ""
    return [Line("bad", f"phase {event['outcome']}: {event['reason']}", fallen)]


def _tool(event: Event, call: str) -> Line:
    first = one_line(event["output"].partition("\n")[0])
    failed = not event["ok"] or (event["tool"] == "run_command" and first != _SUCCESS)
    said = first if failed or event["tool"] == "run_tests" else ""
    tail = " · ".join(part for part in (said, _seconds(event)) if part)
    return Line("bad" if failed else "ok", call or event["tool"], tail)


def _command(event: Event) -> list[Line]:
    if event["purpose"] == "tool":
        return []  # its tool tells it
    passed = event["exit_code"] == 0
    killed = f"killed: too much of {event['stopped_by']}" if event["stopped_by"] else ""
    how = killed or ("timed out" if event["timed_out"] else f"exit {event['exit_code']}")
    tail = " · ".join(part for part in ("" if passed else how, _seconds(event)) if part)
    return [Line("ok" if passed else "bad", f"$ {event['command']}", tail)]


def _verified(event: Event) -> list[Line]:
    if event["summary"].startswith("nothing"):
        return [Line("note", event["summary"])]
    return [Line("ok", "verified") if event["passed"] else Line("bad", "not verified")]


def _reflected(event: Event) -> list[Line]:
    said = Line("words", beginning(event["text"], 6)) if event["text"] else None
    return [Line("head", "Reflection"), said or Line("note", "none came; going on without")]


def _seconds(event: Event) -> str:
    seconds = event["seconds"]
    return f"{seconds:.1f} s" if seconds >= 0.05 else ""


_TELLERS: dict[str, Callable[[Event], list[Line]]] = {
    "task_started": _task,
    "model_call_completed": _model,
    "model_attempt_failed": attempt_lines,
    "plan_proposed": _plan,
    "plan_rejected": lambda event: [Line("bad", f"not a usable plan: {event['reason']}")],
    "spec_review_completed": _decided("plan"),
    "approval_completed": _decided("call"),
    "answer_audited": lambda event: audit_lines(event["audit"]),
    "phase_started": _phase,
    "phase_completed": lambda _: [Line("ok", "phase completed")],
    "phase_failed": _phase_failed,
    "phase_rollback_started": lambda _: [Line("head", "Rollback")],
    "phase_rollback_completed": lambda _: [Line("ok", "rolled back")],
    "phase_rollback_failed": lambda event: [Line("bad", f"not rolled back: {event['reason']}")],
    "command_run": _command,
    "verification_started": lambda _: [Line("head", "Verification")],
    "verification_completed": _verified,
    "reflected": _reflected,
    "recovery_started": started_lines,
    "recovery_action": action_lines,
    "recovery_completed": completed_lines,
}
