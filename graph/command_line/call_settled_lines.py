"""What is told of a call that an earlier run made, or was killed in the middle of."""

from collections.abc import Mapping
from typing import Any, Final

from daruma.graph.command_line.paper import Line

_HOW: Final[Mapping[str, str]] = {
    "reused": "was made before the interruption; what came of it stands",
    "restore": "was cut short; the files are as before it, and it runs again",
    "again": "was cut short; it is made again",
    "happened": "was cut short, and took effect, as you say",
    "unknown": "was cut short; the agent is told that its outcome is unknown",
    "tell": "was cut short; the agent is told that its outcome is unknown",
}


def settled_lines(event: Mapping[str, Any]) -> list[Line]:
    """Tell what became of it, and how what it had left in the files is brought back.

    ``thread`` is among the event's values where it is known which one is run.
    """
    line = Line("note", f"{event['tool']} {_HOW.get(event['how'], event['how'])}")
    if not event["undo"]:
        return [line]
    undo = f"daruma undo {event.get('thread') or 'THREAD'} --to {event['undo']}"
    return [line, Line("note", f"what was there is kept: {undo}")]
