"""What is told of the workspace: files that others changed, states that are kept, rollbacks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from daruma.graph.command_line.paper import Line, Mark
from daruma.graph.command_line.printable import one_line

Event = Mapping[str, Any]

DECISIONS: Final[Mapping[str, str]] = {
    "retry": "the rollback is tried again",
    "restore": "all files are put back from the snapshot",
    "keep": "the files stay as they are",
}
"""What comes of each answer to the question after a failed rollback."""

_NAMED = 10
_LEFT = 20


def drift_lines(event: Event) -> list[Line]:
    """Tell what changed behind the thread's back."""
    total = event["total"]
    files = "1 file has" if total == 1 else f"{total} files have"
    head = Line("alarm", f"{files} changed since this thread last looked, and not by its work")
    return [head, *named_lines(event["paths"], total)]


def savepoint_lines(event: Event) -> list[Line]:
    """Tell what is to be known of a state that is kept; mostly that is nothing."""
    if not event["note"]:
        return []
    return [Line("note", f"savepoint {event['savepoint_id']}: {event['note']}")]


def begun_lines(event: Event) -> list[Line]:
    """Tell that a phase is rolled back, and by what."""
    how = "all files as before the phase" if event["command"] == "snapshot" else event["command"]
    return [Line("head", "Rollback", f"{event['phase_id']}: {one_line(how)}")]


def rolled_back_lines(event: Event) -> list[Line]:
    """Tell how a rollback ended, what is not as it was, and how to bring back what was undone."""
    said: Mapping[bool | None, tuple[Mark, str]] = {
        True: ("ok", "rolled back: the files are exactly as before the phase"),
        False: ("bad", "rolled back, but not all files are as before the phase"),
        None: ("ok", "rolled back"),
    }
    mark, text = said[event["exact"]]
    return [Line(mark, text), *left_lines(event["left"]), *_undo_lines(event["undo"])]


def failed_lines(event: Event) -> list[Line]:
    """Tell that a rollback failed, and why."""
    return [Line("bad", f"not rolled back: {event['reason']}"), *_undo_lines(event["undo"])]


def decided_lines(event: Event) -> list[Line]:
    """Tell what a person decided about a failed rollback."""
    decision = event["decision"]
    return [Line("ok", f"{decision}: {DECISIONS.get(decision, 'decided')}")]


def named_lines(paths: Sequence[str], total: int) -> list[Line]:
    """Return the first paths, and how many there are beside them."""
    more = total - min(len(paths), _NAMED)
    rest = [Line("note", f"and {more} more")] if more > 0 else []
    return [*(Line("note", one_line(path)) for path in paths[:_NAMED]), *rest]


def left_lines(left: Sequence[str]) -> list[Line]:
    """Return what is not as it was, each with its reason."""
    more = len(left) - _LEFT
    rest = [Line("note", f"and {more} more")] if more > 0 else []
    return [*(Line("bad", one_line(each, 300)) for each in left[:_LEFT]), *rest]


def _undo_lines(snapshot: str | None) -> list[Line]:
    if snapshot is None:
        return []
    return [Line("note", f"what was rolled back is kept: daruma undo THREAD --to {snapshot}")]
