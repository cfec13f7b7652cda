"""What is told of setbacks while a run goes on: requests that fail, failures, what is done."""

from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line, Mark
from daruma.graph.command_line.printable import one_line
from daruma.graph.command_line.recovery_lines import confidence_of
from daruma.graph.durations import duration_if_any
from daruma.graph.pictures.call_title import call_title

Event = Mapping[str, Any]

_CARRIED: Mapping[str, tuple[Mark, str]] = {
    "executed": ("ok", "carried out"),
    "approved": ("ok", "approved and carried out"),
    "instructed": ("ok", "going on as instructed"),
    "answered": ("ok", "going on with the answer"),
    "denied": ("bad", "denied"),
    "observed": ("note", "only observed: nothing was done"),
    "failed": ("bad", "failed"),
}
"""What became of an action (``state/recovery.py``; or a bug ended it), in words."""


def attempt_lines(event: Event) -> list[Line]:
    """Tell a request that failed, and what comes next."""
    status = f" ({event['status']})" if event["status"] else ""
    wait = duration_if_any(event["wait"])
    text = f"{event['model']}, request {event['attempt']}{status}: {event['error']}"
    return [Line("bad", text, f"{event['then']} in {wait}" if wait else event["then"])]


def started_lines(event: Event) -> list[Line]:
    """Tell a failure that is being recovered from, and how far the work had come."""
    progress = event["progress"]
    percent, reasoning = progress.get("percent"), one_line(str(progress.get("reasoning", "")))
    how_far = f"{percent:.0f} % done: {reasoning}" if percent is not None else reasoning
    known = [Line("note", how_far)] if how_far else []
    return [Line("head", "Recovery"), Line("bad", event["message"], event["code"]), *known]


def action_lines(event: Event) -> list[Line]:
    """Tell what is to be done, about which tool, by whose choice."""
    called = event["tool_name"]
    title = one_line(call_title(called, event["parameters"] or {})) if called else ""
    text = f"{event['strategy']}: {title}" if title else event["strategy"]
    why = [Line("words", one_line(event["reasoning"]))] if event["reasoning"] else []
    return [Line("note", text, confidence_of(event["confidence"], event["by"])), *why]


def completed_lines(event: Event) -> list[Line]:
    """Tell what became of it."""
    mark, text = _CARRIED.get(event["carried"], ("note", event["carried"]))
    return [Line(mark, f"{event['strategy']}: {text}")]
