"""What each event says on paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from daruma.graph.command_line._messages import beginning, counted, one_line
from daruma.graph.command_line._output import Line, Mark
from daruma.graph.command_line._questions import confidence_of, plan_lines
from daruma.graph.timeline import (
    audit_notes,
    call_title,
    compaction_moment,
    render_duration_if_any,
    todo_line,
)
from daruma.state.spending import format_amount
from daruma.state.text import revealed_line

Event = Mapping[str, Any]

# --- A budget of tokens, money or time that is spent, and what became of that, on paper.


def _spent(event: Event) -> list[Line]:
    measure = event["measure"]
    used, limit = format_amount(measure, event["spent"]), format_amount(measure, event["limit"])
    spent = "steps are used up" if measure == "steps" else "budget is spent"
    return [Line("bad", f"the {event['scope']}'s {spent}", f"{used} of {limit}")]


def _settled(event: Event) -> list[Line]:
    if event["stopped"]:
        return [Line("note", "the work stops where its budget is spent")]
    return [Line("ok", f"granted {format_amount(event['measure'], event['more'])} more")]


# --- What an edit takes away and puts there, as people read it.

_SHOWN = 6


def change_lines(args: Mapping[str, Any]) -> list[Line]:
    """Return what an edit takes away and what it puts there, by their beginnings."""
    texts: dict[Mark, Any] = {"minus": args.get("old_str"), "plus": args.get("new_str")}
    return [Line(k, beginning(text, _SHOWN)) for k, text in texts.items() if isinstance(text, str)]


# --- What is told of a call that an earlier run made, or was killed in the middle of.

_HOW: Final[Mapping[str, str]] = {
    "reused": "was made before the interruption; what came of it stands",
    "restore": "was cut short; the files are as before it, and it runs again",
    "again": "was cut short; it is made again",
    "happened": "was cut short, and took effect, as you say",
    "unknown": "was cut short; the agent is told that its outcome is unknown",
    "tell": "was cut short; the agent is told that its outcome is unknown",
}


def _call_settled(event: Event) -> list[Line]:
    """Tell what became of it, and how what it had left in the files is brought back.

    ``thread`` is among the event's values where it is known which one is run.
    """
    line = Line("note", f"{event['tool']} {_HOW.get(event['how'], event['how'])}")
    if not event["undo"]:
        return [line]
    undo = f"daruma undo {event.get('thread') or 'THREAD'} --to {event['undo']}"
    return [line, Line("note", f"what was there is kept: {undo}")]


def _compacted(event: Event) -> list[Line]:
    moment = compaction_moment(event["cost"])
    return [Line("note", moment.title, moment.detail)]


# --- What a run says of the lessons that it was given.


def _lessons(event: Event) -> list[Line]:
    """Say how much there was, or why it could not be had."""
    pitfalls, variants = len(event["pitfalls"]), len(event["variants"])
    parts = [counted(pitfalls, "historical pitfall")] if pitfalls else []
    parts += [counted(variants, "learned instruction")] if variants else []
    return [Line("note", event["note"] or f"told of {' and '.join(parts)}")]


# --- What is told of setbacks while a run goes on: requests that fail, failures, what is done.

_OUTCOMES: Mapping[str, tuple[Mark, str]] = {
    "executed": ("ok", "carried out"),
    "approved": ("ok", "approved and carried out"),
    "instructed": ("ok", "going on as instructed"),
    "answered": ("ok", "going on with the answer"),
    "denied": ("bad", "denied"),
    "observed": ("note", "only observed: nothing was done"),
    "failed": ("bad", "failed"),
}
"""What became of an action (``state/failure.py``; or a bug ended it), in words."""


def _attempt(event: Event) -> list[Line]:
    status = f" ({event['status']})" if event["status"] else ""
    wait = render_duration_if_any(event["wait"])
    text = f"{event['model']}, request {event['attempt']}{status}: {event['error']}"
    return [Line("bad", text, f"{event['then']} in {wait}" if wait else event["then"])]


def _recovery(event: Event) -> list[Line]:
    """Tell a failure that is being recovered from, and how far the work had come."""
    progress = event["progress"]
    percent, reasoning = progress.get("percent"), one_line(str(progress.get("reasoning", "")))
    how_far = f"{percent:.0f} % done: {reasoning}" if percent is not None else reasoning
    known = [Line("note", how_far)] if how_far else []
    return [Line("head", "Recovery"), Line("bad", event["message"], event["code"]), *known]


def _action(event: Event) -> list[Line]:
    called = event["tool_name"]
    title = one_line(call_title(called, event["parameters"] or {})) if called else ""
    text = f"{event['strategy']}: {title}" if title else event["strategy"]
    why = [Line("words", one_line(event["reasoning"]))] if event["reasoning"] else []
    return [Line("note", text, confidence_of(event["confidence"], event["by"])), *why]


def _carried(event: Event) -> list[Line]:
    mark, text = _OUTCOMES.get(event["carried"], ("note", event["carried"]))
    return [Line(mark, f"{event['strategy']}: {text}")]


# --- What is told of a team: who takes up which phase, and how its work comes together.


def _ended(event: Event) -> list[Line]:
    done = event["outcome"] == "completed"
    ended = f"{event['expert'] or 'the helper'} has ended {event['phase_id']}: {event['outcome']}"
    return [Line("ok" if done else "bad", ended)]


def _merged(event: Event) -> list[Line]:
    """Tell what came into the workspace, or which files stood in the way of it."""
    phase, paths, conflicts = event["phase_id"], event["paths"], event["conflicts"]
    if conflicts:
        text = f"{phase} is not merged: {counted(len(conflicts), 'file')} met other work"
        return [Line("bad", text), *named_lines(conflicts, len(conflicts))]
    return [Line("ok", f"{phase} is merged", counted(len(paths), "file"))]


# --- What is told of the workspace: files that others changed, states that are kept, rollbacks.

_DECISIONS: Final[Mapping[str, str]] = {
    "retry": "the rollback is tried again",
    "restore": "all files are put back from the snapshot",
    "keep": "the files stay as they are",
}
"""What comes of each answer to the question after a failed rollback."""
_NAMED = 10
_LEFT = 20


def _drift(event: Event) -> list[Line]:
    """Tell what changed behind the thread's back."""
    total = event["total"]
    files = f"{counted(total, 'file')} {'has' if total == 1 else 'have'}"
    head = Line("alarm", f"{files} changed since this thread last looked, and not by its work")
    return [head, *named_lines(event["paths"], total)]


def _rollback(event: Event) -> list[Line]:
    how = "all files as before the phase" if event["command"] == "snapshot" else event["command"]
    return [Line("head", "Rollback", f"{event['phase_id']}: {one_line(how)}")]


def _rolled_back(event: Event) -> list[Line]:
    """Tell how a rollback ended, what is not as it was, and how to bring back what was undone."""
    said: Mapping[bool | None, Line] = {
        True: Line("ok", "rolled back: the files are exactly as before the phase"),
        False: Line("bad", "rolled back, but not all files are as before the phase"),
        None: Line("ok", "rolled back"),
    }
    return [said[event["exact"]], *left_lines(event["left"]), *_undo_lines(event["undo"])]


def _undo_lines(snapshot: str | None) -> list[Line]:
    undo = f"what was rolled back is kept: daruma undo THREAD --to {snapshot}"
    return [] if snapshot is None else [Line("note", undo)]


def named_lines(paths: Sequence[str], total: int) -> list[Line]:
    """Return the first paths, and how many there are beside them."""
    return _first([Line("note", one_line(path)) for path in paths[:_NAMED]], total)


def left_lines(left: Sequence[str]) -> list[Line]:
    """Return what is not as it was, each with its reason."""
    return _first([Line("bad", one_line(each, 300)) for each in left[:_LEFT]], len(left))


def _first(lines: list[Line], total: int) -> list[Line]:
    more = total - len(lines)
    return [*lines, Line("note", f"and {more} more")] if more > 0 else lines


# --- What each event says on paper; events that only begin something say nothing yet.

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

    What a team member does has the id of its phase before it, as that title has.
    """
    if event["type"] == "tool_completed":
        lines = [_tool(event, call)]
    else:
        tell = _TELLERS.get(event["type"])
        lines = tell(event) if tell else []
    member = "" if call else event.get("member")
    return [replace(line, text=f"{member}: {line.text}") for line in lines] if member else lines


def _task(event: Event) -> list[Line]:
    place = f"{event['mode']} in {event['workspace']}" if event["workspace"] else event["mode"]
    return [Line("line", event["goal"]), Line("note", place)]


def _recalled(event: Event) -> list[Line]:
    number = len(event["ids"])
    count = "1 memory" if number == 1 else f"{number} memories"
    return [Line("note", event["note"] or f"recalled {count}")]


def _model(event: Event) -> list[Line]:
    name, error = f"{event['model']}: ", event["error"]
    return [Line("bad", name + error.removeprefix(name))] if error else []


def _plan(event: Event) -> list[Line]:
    phases = event["plan"]["phases"]
    return [Line("head", "Plan", counted(len(phases), "phase")), *plan_lines(phases)]


def _decided(what: str) -> Callable[[Event], list[Line]]:
    def tell(event: Event) -> list[Line]:
        decision, name = event["decision"], event.get("approval_id", "")
        mark: Mark = "bad" if decision in ("reject", "deny", "timeout") else "ok"
        return [Line(mark, f"{what} {name}".strip() + f" {_PAST.get(decision, decision)}")]

    return tell


def _answered(event: Event) -> list[Line]:
    action, goes_on = event["target_action"], event["how"] == "resumed"
    return [Line("note", f"going on with {action}" if goes_on else f"{action} is not gone on with")]


def _phase_failed(event: Event) -> list[Line]:
    fallen = f"with it: {', '.join(event['fallen'])}" if event["fallen"] else ""
    return [Line("bad", f"phase {event['outcome']}: {event['reason']}", fallen)]


def _tool(event: Event, call: str) -> Line:
    first = one_line(event["output"].partition("\n")[0])
    failed = not event["ok"] or (event["tool"] == "run_command" and first != _SUCCESS)
    said = first if failed or event["tool"] == "run_tests" else ""
    tail = " · ".join(filter(None, (said, render_duration_if_any(event["seconds"]))))
    return Line("bad" if failed else "ok", call or event["tool"], tail)


def _command(event: Event) -> list[Line]:
    if event["purpose"] == "tool":  # its tool tells how it went
        stopped = event.get("violation")
        return [Line("bad", f"sandbox_violation: {stopped}")] if stopped else []
    passed = event["passed"]
    killed = f"killed: too much of {event['stopped_by']}" if event["stopped_by"] else ""
    how = killed or ("timed out" if event["timed_out"] else f"exit {event['exit_code']}")
    why = "" if killed else event["note"]
    took = render_duration_if_any(event["seconds"])
    tail = " · ".join(filter(None, (why, took) if passed else (how, why, took)))
    return [Line("ok" if passed else "bad", f"$ {event['command']}", tail)]


def _verified(event: Event) -> list[Line]:
    if event["passed"] is None:
        said = event["summary"]
        return [Line("note", said if said.startswith("nothing") else f"not checked: {said}")]
    return [Line("ok", "verified") if event["passed"] else Line("bad", "not verified")]


def _judged(event: Event) -> list[Line]:
    mark: Mark = "ok" if event["passed"] else "bad"
    told = (Line("note", revealed_line(line)) for line in event["text"].splitlines())
    return [Line(mark, "judge", event["summary"]), *told]


def _reflected(event: Event) -> list[Line]:
    said = Line("words", beginning(event["text"], 6)) if event["text"] else None
    return [Line("head", "Reflection"), said or Line("note", "none came; going on without")]


def _received(event: Event) -> list[Line]:
    asked = ("it stands still" if event["stop"] else "", "a new goal" if event["goal"] else "")
    head = Line("head", "A person says", "; ".join(filter(None, asked)))
    return [head, Line("words", beginning(event["text"], 6))]


def _hook(event: Event) -> list[Line]:
    why = f": {event['reason']}" if event["reason"] else ""
    mark: Mark = "note" if event["did"] == "changed" else "bad"
    return [Line(mark, f"hook {event['hook']} {event['did']} at {event['point']}{why}")]


_TELLERS: dict[str, Callable[[Event], list[Line]]] = {
    "task_started": _task,
    "memory_recalled": _recalled,
    "lessons_given": _lessons,
    "model_call_completed": _model,
    "model_attempt_failed": _attempt,
    "plan_proposed": _plan,
    "plan_rejected": lambda event: [Line("bad", f"not a usable plan: {event['reason']}")],
    "plan_replaced": lambda event: [Line("note", f"planned anew: {event['why']}")],
    "todo_changed": lambda event: [Line("note", f"steps: {todo_line(event['items'])}")],
    "spec_review_completed": _decided("plan"),
    "approval_completed": _decided("call"),
    "clarification_resolved": _answered,
    "answer_audited": lambda event: [
        Line("note", one_line(text)) for text in audit_notes(event["audit"])
    ],
    "phase_started": lambda event: [
        Line("head", event["title"], f"phase {event['number']} of {event['of']}")
    ],
    "phase_completed": lambda _: [Line("ok", "phase completed")],
    "phase_failed": _phase_failed,
    "phase_rollback_started": _rollback,
    "phase_rollback_completed": _rolled_back,
    "phase_rollback_failed": lambda event: [
        Line("bad", f"not rolled back: {event['reason']}"),
        *_undo_lines(event["undo"]),
    ],
    "rollback_decided": lambda event: [
        Line("ok", f"{event['decision']}: {_DECISIONS.get(event['decision'], 'decided')}")
    ],
    "message_received": _received,
    "budget_spent": _spent,
    "budget_settled": _settled,
    "savepoint_written": lambda event: (
        [Line("note", f"savepoint {event['savepoint_id']}: {event['note']}")]
        if event["note"]
        else []
    ),
    "workspace_drifted": _drift,
    "context_compacted": _compacted,
    "member_started": lambda e: [
        Line("head", f"{e['expert'] or 'a helper'} takes up {e['phase_id']}", e["workspace"] or "")
    ],
    "member_completed": _ended,
    "merge_completed": _merged,
    "call_settled": _call_settled,
    "hook_applied": _hook,
    "command_run": _command,
    "verification_started": lambda _: [Line("head", "Verification")],
    "verification_completed": _verified,
    "work_judged": _judged,
    "reflected": _reflected,
    "recovery_started": _recovery,
    "recovery_action": _action,
    "recovery_completed": _carried,
}
