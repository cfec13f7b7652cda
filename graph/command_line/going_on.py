"""What is going on in a run at the moment: opened by one event, closed by another."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Event = Mapping[str, Any]

OPENS = frozenset(
    {"model_call_started", "tool_started", "verification_started", "phase_rollback_started"}
)
_CLOSES = {
    "model_call_completed": "model_call_started",
    "tool_completed": "tool_started",
    "verification_completed": "verification_started",
    "phase_rollback_completed": "phase_rollback_started",
    "phase_rollback_failed": "phase_rollback_started",
}
_RUNS = {"tool": "tool_started", "verification": "verification_started"}
"""What a command's output belongs to, by its purpose; other commands are of a rollback."""


@dataclass(frozen=True)
class Activity:
    """Something that goes on: since when, on the clock of ``GoingOn``, and what it wrote last."""

    title: str
    since: float
    lines: tuple[str, ...] = ()


class GoingOn:
    """The activities that are open, the newest last. ``now`` gives seconds of any clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._open: dict[tuple[str, str], Activity] = {}

    def open(self, event: Event, title: str) -> None:
        """Note what an event of ``OPENS`` begins."""
        self._open[event["type"], _name(event)] = Activity(title, self.now())

    def close(self, event: Event) -> str:
        """Return the title of what an event ends; empty when it ends nothing that is known."""
        ended = self._open.pop((_CLOSES.get(event["type"], ""), _name(event)), None)
        return ended.title if ended else ""

    def heard(self, event: Event) -> None:
        """Note what a command wrote, with what it runs for."""
        kind = _RUNS.get(event["purpose"], "phase_rollback_started")
        if found := self._open.get((kind, _name(event))):
            said = replace(found, lines=tuple(event["lines"]))
            if kind == "verification_started":
                said = replace(said, title=f"$ {event['command']}")
            self._open[kind, _name(event)] = said

    def clear(self) -> None:
        """Forget everything: the run has stopped."""
        self._open.clear()

    @property
    def activities(self) -> tuple[Activity, ...]:
        """All that goes on, what began first before the rest."""
        return tuple(self._open.values())


def _name(event: Event) -> str:
    name = str(event.get("call_id") or event.get("node") or "")
    return f"{event.get('member', '')} {name}"
