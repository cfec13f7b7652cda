"""Where a thread stands once nothing runs it, as the event that ends what its followers hear."""

from collections.abc import Collection
from typing import Any

from langgraph.types import StateSnapshot

from daruma.graph.door import open_questions
from daruma.state.events import RunStopped


def stop_of(
    snapshot: StateSnapshot, *, answered: Collection[str] = (), run: str = "", error: str = ""
) -> RunStopped:
    """Return it; ``answered`` are the ids of questions whose replies are on record already."""
    asked = questions_in(snapshot, answered)
    result = snapshot.values.get("result")
    if error:
        outcome = "failed"
    elif asked:
        outcome = "waiting"
    else:
        outcome = "done" if result is not None and not snapshot.tasks else "unfinished"
    told = result.to_dict() if result is not None else None
    return RunStopped(outcome=outcome, result=told, questions=asked, error=error, run=run)


def questions_in(
    snapshot: StateSnapshot, answered: Collection[str] = ()
) -> tuple[dict[str, Any], ...]:
    """Return the open questions of a thread: each ``id`` is what the reply goes by."""
    asked = open_questions(snapshot).items()
    return tuple({"id": id_, "value": value} for id_, value in asked if id_ not in answered)
