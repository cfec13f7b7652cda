"""Work that a newer request takes the place of, as the server's clients have it do.

Our own door refuses a request on a thread with unfinished work, so that nothing is lost. A person
in a chat who writes on means to be heard: what has come of the work is kept, the rest is told.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from langchain_core.messages import AnyMessage
from langgraph.types import StateSnapshot

from daruma.graph.door import open_questions
from daruma.tools.calls.results import unanswered

CUT: Final = (
    "Cut short by a newer request: it may have run in part. Look before you rely on it, or do it "
    "again."
)


def is_superseded(snapshot: StateSnapshot) -> bool:
    """Whether a thread has work that nobody is asked about, which a request would put aside."""
    return bool(snapshot.tasks) and not open_questions(snapshot) and not snapshot.interrupts


def what_stays(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return what is written when work is put aside: each call gets its result, or is told cut."""
    done = [*_results(snapshot)]
    history = [*snapshot.values.get("messages", ()), *done]
    cut = [each.model_copy(update={"content": CUT}) for each in unanswered(history)]
    return {"messages": [*done, *cut], "calls": ()}


def _results(snapshot: StateSnapshot) -> Iterable[AnyMessage]:
    for task in snapshot.tasks:
        if task.name == "tool" and isinstance(task.result, Mapping):
            yield from task.result.get("messages", ())
