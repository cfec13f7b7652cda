"""What each event of a run tells, as a moment: for those who watch it while it goes on.

The same thing has the same words here and in the record (``_moments.py``, ``_record.py``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from daruma.graph.timeline._moments import (
    Kind,
    Moment,
    audit_notes,
    budget_moment,
    call_moment,
    call_title,
    chosen_by,
    compaction_moment,
    first_line,
    recovered_in_words,
    render_duration_if_any,
    steering_title,
    todo_line,
)
from daruma.graph.timeline._record import ANSWERS, check_note, phase_title, plan_title
from daruma.state.spending import format_amount
from daruma.state.text import counted, on_thread

Event = Mapping[str, Any]
Call = tuple[str, Mapping[str, Any]]
"""A call's tool and its arguments, as the model gave them."""

_NAMED: Final = 10
_LEFT: Final = 20
"""Files that are named; of more, their number is told."""


def event_moment(event: Event, call: Call | None = None, title: str = "") -> Moment | None:
    """Return what an event tells; None for one that only begins something, or is for programs.

    ``event`` is one as JSON-able values; ``thread`` is among them where it is known which one is
    run. ``call`` is the tool call that it is about, where that is known; else ``title`` may say
    what ended.
    """
    moment: Moment | None
    if event["type"] == "tool_completed":
        moment = _ended_call(event, call, title)
    elif event["type"] == "approval_completed":
        known = f"May this run: {call_title(*call)}" if call else f"call {event['approval_id']}"
        moment = _decided(event, "approval", known)
    else:
        tell = _TELLERS.get(event["type"])
        moment = tell(event) if tell else None
    return moment and replace(moment, member=event.get("member", ""))


def first_paths(
    paths: Sequence[str], total: int | None = None, most: int = _NAMED
) -> tuple[str, ...]:
    """Return the first of some paths, each a line, and how many of ``total`` are not named."""
    shown = tuple(paths[:most])
    more = (len(paths) if total is None else total) - len(shown)
    return (*shown, f"and {more} more") if more > 0 else shown


def _moment(kind: Kind, title: str, note: str = "", **more: Any) -> Moment:
    return Moment(kind=kind, title=title, note=note, **more)


# --- What is told of calls, whose arguments their own events do not hold.


def _ended_call(event: Event, call: Call | None, title: str) -> Moment:
    args = call[1] if call else {}
    moment = call_moment(event["tool"], args, event["output"], ok=event["ok"])
    known = moment.title if call else title or event["tool"]
    return replace(moment, title=known, seconds=event["seconds"])


def _decided(event: Event, kind: Kind, what: str) -> Moment:
    decision = event["decision"]
    ok = decision not in ("reject", "deny", "timeout", "void")
    return _moment(kind, f"{what} {ANSWERS.get(decision, decision)}", ok=ok)


_SETTLED: Final[Mapping[str, str]] = {
    "reused": "was made before the interruption; what came of it stands",
    "restore": "was cut short; the files are as before it, and it runs again",
    "again": "was cut short; it is made again",
    "happened": "was cut short, and took effect, as you say",
    "unknown": "was cut short; the agent is told that its outcome is unknown",
    "tell": "was cut short; the agent is told that its outcome is unknown",
}
"""What is told of a call that an earlier run made, or was killed in the middle of."""


def _settled(event: Event) -> Moment:
    title = f"{event['tool']} {_SETTLED.get(event['how'], event['how'])}"
    return _moment("tool", title, lines=_kept(event, "what was there"))


def _kept(event: Event, what: str) -> tuple[str, ...]:
    """Say which command brings back what was in the files, if it is kept."""
    undo = on_thread("undo", event.get("thread") or "THREAD", f"--to {event['undo']}")
    return (f"{what} is kept: {undo}",) if event["undo"] else ()


# --- What is told of the checks.


def _command(event: Event) -> Moment | None:
    if event["purpose"] == "tool":  # its tool tells how it went
        title = f"sandbox_violation: {event.get('violation')}"
        return _moment("tool", title, ok=False) if event.get("violation") else None
    return _moment(
        "check",
        f"$ {event['command']}",
        output=event["output"],
        seconds=event["seconds"],
        ok=event["passed"],
        note=check_note(event),
    )


def _verified(event: Event) -> Moment:
    said = event["summary"]
    none = said if said.startswith("nothing") else f"not checked: {said}"
    title = {True: "verified", False: "not verified", None: none}[event["passed"]]
    return _moment("check", title, ok=event["passed"])


def _judged(event: Event) -> Moment:
    lines = tuple(event["text"].splitlines())
    return _moment("check", "The judge", event["summary"], ok=event["passed"], lines=lines)


# --- What is told of setbacks: requests that fail, failures, what is done about them, rollbacks.


def _asked(event: Event) -> Moment | None:
    name, error = f"{event['model']}: ", event["error"]
    title = name + (error or "").removeprefix(name)
    return _moment("model", title, ok=False) if error else None


def _attempt(event: Event) -> Moment:
    status = f" ({event['status']})" if event["status"] else ""
    wait = render_duration_if_any(event["wait"])
    title = f"{event['model']}, request {event['attempt']}{status}: {event['error']}"
    then = f"{event['then']} in {wait}" if wait else event["then"]
    return _moment("model", title, then, ok=False)


def _failure(event: Event) -> Moment:
    """Tell a failure that is being recovered from, and how far the work had come."""
    progress = event["progress"]
    percent, reasoning = progress.get("percent"), first_line(str(progress.get("reasoning", "")))
    how_far = f"{percent:.0f} % done: {reasoning}" if percent is not None else reasoning
    return _moment("failure", f"{event['code']}: {event['message']}", how_far, ok=False)


def _action(event: Event) -> Moment:
    called = event["tool_name"]
    title = f": {call_title(called, event['parameters'] or {})}" if called else ""
    chosen = chosen_by(event["by"], event["confidence"])
    return _moment("recovery", event["strategy"] + title, chosen, detail=event["reasoning"])


def _carried(event: Event) -> Moment:
    ok, words = recovered_in_words(event["carried"])
    return _moment("recovery", f"{event['strategy']}: {words}", ok=ok)


def _rollback(event: Event) -> Moment:
    how = "all files as before the phase" if event["command"] == "snapshot" else event["command"]
    return _moment("rollback", "Rollback", note=f"{event['phase_id']}: {how}", begins=True)


_EXACT: Final[Mapping[bool | None, str]] = {
    True: "rolled back: the files are exactly as before the phase",
    False: "rolled back, but not all files are as before the phase",
    None: "rolled back",
}


def _rolled_back(event: Event) -> Moment:
    """Tell how a rollback ended, what is not as it was, and how to bring back what was undone."""
    exact, left = event["exact"], first_paths(event["left"], most=_LEFT)
    lines = (*left, *_kept(event, "what was rolled back"))
    return _moment("rollback", _EXACT[exact], ok=exact is not False, lines=lines)


def _not_rolled_back(event: Event) -> Moment:
    title, kept = f"not rolled back: {event['reason']}", _kept(event, "what was rolled back")
    return _moment("rollback", title, ok=False, lines=kept)


_DECISIONS: Final[Mapping[str, str]] = {
    "retry": "the rollback is tried again",
    "restore": "all files are put back from the snapshot",
    "keep": "the files stay as they are",
}
"""What comes of each answer to the question after a failed rollback."""


def _rollback_decided(event: Event) -> Moment:
    decision = event["decision"]
    return _moment("rollback", f"{decision}: {_DECISIONS.get(decision, 'decided')}", ok=True)


# --- What is told of a task, its plan, its phases and its team.


def _task(event: Event) -> Moment:
    place = f" in {event['workspace']}" if event["workspace"] else ""
    goal = event["goal"]
    return _moment("request", first_line(goal), f"{event['mode']}{place}", detail=goal)


def _recalled(event: Event) -> Moment:
    number = len(event["ids"])
    count = "1 memory" if number == 1 else f"{number} memories"
    return _moment("note", event["note"] or f"recalled {count}")


def _lessons(event: Event) -> Moment:
    """Say how much there was, or why it could not be had."""
    pitfalls, variants = len(event["pitfalls"]), len(event["variants"])
    parts = [counted(pitfalls, "historical pitfall")] if pitfalls else []
    parts += [counted(variants, "learned instruction")] if variants else []
    return _moment("note", event["note"] or f"told of {' and '.join(parts)}")


def _clarified(event: Event) -> Moment:
    action, goes_on = event["target_action"], event["how"] == "resumed"
    return _moment(
        "note", f"going on with {action}" if goes_on else f"{action} is not gone on with"
    )


def _phase_failed(event: Event) -> Moment:
    fallen = f"with it: {', '.join(event['fallen'])}" if event["fallen"] else ""
    return replace(_phase(event, event["outcome"], ok=False), output=event["reason"], note=fallen)


def _phase(event: Event, how: str = "", *, ok: bool | None = None) -> Moment:
    return _moment("phase", phase_title(event["number"], event["of"], event["title"], how), ok=ok)


def _received(event: Event) -> Moment:
    asked = ("it stands still" if event["stop"] else "", "a new goal" if event["goal"] else "")
    return _moment("note", steering_title(event["text"]), "; ".join(filter(None, asked)))


def _merged(event: Event) -> Moment:
    """Tell what came into the workspace, or which files stood in the way of it."""
    phase, paths, conflicts = event["phase_id"], event["paths"], event["conflicts"]
    if not conflicts:
        return _moment("note", f"{phase} is merged", counted(len(paths), "file"), ok=True)
    title = f"{phase} is not merged: {counted(len(conflicts), 'file')} met other work"
    return _moment("note", title, ok=False, lines=first_paths(conflicts))


def _member_ended(event: Event) -> Moment:
    who = event["expert"] or "the helper"
    title = f"{who} has ended {event['phase_id']}: {event['outcome']}"
    return _moment("phase", title, ok=event["outcome"] == "completed")


# --- What is told of the workspace, of budgets, and of hooks.


def _drift(event: Event) -> Moment:
    """Tell what changed behind the thread's back."""
    total = event["total"]
    files = f"{counted(total, 'file')} {'has' if total == 1 else 'have'}"
    title = f"{files} changed since this thread last looked, and not by its work"
    return _moment("note", title, ok=False, lines=first_paths(event["paths"], total))


def _spent(event: Event) -> Moment:
    measure = event["measure"]
    used, limit = format_amount(measure, event["spent"]), format_amount(measure, event["limit"])
    spent = "steps are used up" if measure == "steps" else "budget is spent"
    return _moment("note", f"the {event['scope']}'s {spent}", f"{used} of {limit}", ok=False)


def _hook(event: Event) -> Moment:
    why = f": {event['reason']}" if event["reason"] else ""
    title = f"hook {event['hook']} {event['did']} at {event['point']}{why}"
    return _moment("note", title, ok=None if event["did"] == "changed" else False)


_TELLERS: Final[Mapping[str, Callable[[Event], Moment | None]]] = {
    "task_started": _task,
    "memory_recalled": _recalled,
    "lessons_given": _lessons,
    "model_call_completed": _asked,
    "model_attempt_failed": _attempt,
    "call_refused": lambda event: call_moment(
        event["tool"], event["args"], event["reason"], ok=False
    ),
    "plan_proposed": lambda event: _moment(
        "plan", plan_title(event["plan"]["phases"]), begins=True
    ),
    "plan_rejected": lambda event: _moment(
        "plan", f"not a usable plan: {event['reason']}", ok=False
    ),
    "plan_replaced": lambda event: _moment("note", f"planned anew: {event['why']}"),
    "todo_changed": lambda event: _moment("note", f"steps: {todo_line(event['items'])}"),
    "spec_review_completed": lambda event: _decided(event, "review", "Is this plan right?"),
    "clarification_resolved": _clarified,
    "answer_audited": lambda event: _moment("note", "; ".join(audit_notes(event["audit"]))),
    "phase_started": lambda event: replace(_phase(event), begins=True),
    "phase_completed": lambda event: _phase(event, "completed", ok=True),
    "phase_failed": _phase_failed,
    "phase_rollback_started": _rollback,
    "phase_rollback_completed": _rolled_back,
    "phase_rollback_failed": _not_rolled_back,
    "rollback_decided": _rollback_decided,
    "message_received": _received,
    "budget_spent": _spent,
    "budget_settled": lambda event: budget_moment(
        event["scope"],
        format_amount(event["measure"], event["more"]) if event["more"] else "",
        steps=event["measure"] == "steps",
        stopped=event["stopped"],
    ),
    "savepoint_written": lambda event: (
        _moment("savepoint", f"savepoint {event['savepoint_id']}", note=event["note"])
        if event["note"]
        else None
    ),
    "workspace_drifted": _drift,
    "context_compacted": lambda event: compaction_moment(event["cost"]),
    "member_started": lambda event: _moment(
        "phase",
        f"{event['expert'] or 'a helper'} takes up {event['phase_id']}",
        note=event["workspace"] or "",
        begins=True,
    ),
    "member_completed": _member_ended,
    "merge_completed": _merged,
    "call_settled": _settled,
    "hook_applied": _hook,
    "command_run": _command,
    "verification_started": lambda _: _moment("check", "Verification", begins=True),
    "verification_completed": _verified,
    "work_judged": _judged,
    "reflected": lambda event: _moment(
        "reflection",
        first_line(event["text"]) or "no reflection",
        detail=event["text"],
        note="" if event["text"] else "going on without one",
    ),
    "recovery_started": _failure,
    "recovery_action": _action,
    "recovery_completed": _carried,
}
