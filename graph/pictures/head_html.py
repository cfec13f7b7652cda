"""The head of a run: its goal, how it stands, what it took, what it asks, how it ended."""

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from daruma.graph.durations import duration
from daruma.graph.pictures.safe_text import safe_block, safe_line
from daruma.graph.pictures.timeline import Timeline
from daruma.graph.pictures.told_questions import plan_text
from daruma.state.result import TaskResult

_LONGEST = 4000


def head_html(timeline: Timeline, level: int = 3) -> str:
    """Return the head; ``level`` is that of its heading."""
    goal = safe_line(timeline.goal or timeline.thread, 300)
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{safe_line(text)}</dd></div>" for name, text in _facts(timeline)
    )
    return (
        f'<header><h{level} dir="auto">{goal}</h{level}>'
        f'<p><span class="badge {_colour(timeline.status)}">{safe_line(timeline.status)}</span></p>'
        f"<dl>{facts}</dl>{''.join(_questions(timeline))}{result_html(timeline.result)}</header>"
    )


def _colour(status: str) -> str:
    if status == "completed":
        return "good"
    return "wait" if status in ("waiting", "held", "parked", "unfinished") else "bad"


def _facts(timeline: Timeline) -> Iterator[tuple[str, str]]:
    yield "thread", timeline.thread
    if timeline.mode:
        yield "mode", timeline.mode
    if timeline.workspace:
        yield "workspace", timeline.workspace
    if timeline.started_at:
        began = datetime.fromtimestamp(timeline.started_at).astimezone()
        yield "began", f"{began:%Y-%m-%d %H:%M:%S %Z}"
        yield "took", duration(timeline.updated_at - timeline.started_at)
    yield "tokens", f"{timeline.tokens:,}"
    if timeline.usd:
        yield "cost", f"${timeline.usd:.4f}"
    if timeline.spent:
        spent = (
            f"{kind} {round(used, 4):,} of {round(most, 4):,}"
            for kind, (used, most) in timeline.spent.items()
        )
        yield "budget", ", ".join(spent)


def _questions(timeline: Timeline) -> Iterator[str]:
    for each in timeline.questions:
        value = each["value"] if isinstance(each["value"], Mapping) else {}
        asked = str(value.get("question") or _ASKED.get(str(value.get("type")), "A question"))
        ways = _WAYS.get(str(value.get("type")), "--text '...'")
        command = f"daruma answer {shlex.quote(timeline.thread)} {ways}"
        reply = f"Command(resume={{{each['id']!r}: ...}})"
        yield (
            f'<div class="box"><strong>{safe_line(asked, 500)}</strong>'
            f'<pre dir="auto">{safe_block(_about(value), _LONGEST)}</pre>'
            f"<p>Answer with <code>{safe_line(command, 500)}</code>, "
            f"or in Python with <code>{safe_line(reply)}</code>.</p></div>"
        )


_ASKED = {
    "spec_review_request": "Is this plan right?",
    "approval_request": "May this run?",
    "recovery_request": "May this be done about a failure?",
}
_WAYS = {
    "spec_review_request": "--confirm",
    "approval_request": "--approve",
    "recovery_request": "--approve",
}


def _about(value: Mapping[str, Any]) -> str:
    """Return what a question is about, as text."""
    if value.get("type") == "spec_review_request":
        return plan_text(value.get("phases", ()))
    if value.get("type") == "approval_request":
        return "\n".join(f"{a.get('shown')}\n  {a.get('reason')}" for a in value["approvals"])
    if value.get("type") == "recovery_request":
        return f"{value.get('failure')}\n{value.get('action', {}).get('reasoning', '')}"
    options = value.get("options") or ()
    return "\n".join((str(value.get("context") or ""), *(f"- {each}" for each in options))).strip()


def result_html(result: TaskResult | None) -> str:
    """Return how a task ended; nothing for one that has not."""
    if result is None:
        return ""
    colour = "good" if result.completed else "wait" if result.status == "parked" else "bad"
    advice = result.error_struct.suggestions if result.error_struct else ()
    told = "".join(f"<li>{safe_line(each, 500)}</li>" for each in (*advice, *result.notes))
    return (
        f'<div class="box {colour}"><strong>{safe_line(result.status)}</strong>'
        f'<pre dir="auto">{safe_block(result.output, _LONGEST)}</pre>'
        + (f"<ul>{told}</ul>" if told else "")
        + "</div>"
    )
