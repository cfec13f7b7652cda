"""What is going on in a run at the moment: opened by one event, closed by another."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Open:
    title: str
    since: float


class GoingOn:
    """The activities that are open, the newest last."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Open] = {}

    def open(self, event: Event, title: str) -> None:
        """Note what an event of ``OPENS`` begins."""
        self._open[event["type"], _name(event)] = _Open(title, time.monotonic())

    def close(self, event: Event) -> str:
        """Return the title of what an event ends; empty when it ends nothing that is known."""
        ended = self._open.pop((_CLOSES.get(event["type"], ""), _name(event)), None)
        return ended.title if ended else ""

    def clear(self) -> None:
        """Forget everything: the run has stopped."""
        self._open.clear()

    @property
    def text(self) -> str:
        """The newest activity, how many there are beside it, and its seconds; empty for none."""
        if not self._open:
            return ""
        newest = list(self._open.values())[-1]
        others = f" and {len(self._open) - 1} more" if len(self._open) > 1 else ""
        seconds = int(time.monotonic() - newest.since)
        return f"{newest.title}{others}" + (f"  {seconds} s" if seconds else "")


def _name(event: Event) -> str:
    name = str(event.get("call_id") or event.get("node") or "")
    return f"{event.get('member', '')} {name}"
