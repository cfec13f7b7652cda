"""Whether a thread has something to go on with that needs nobody's answer."""

from langgraph.types import StateSnapshot

from daruma.graph.parking import overdue


def is_unfinished(snapshot: StateSnapshot, now: float) -> bool:
    """Tell whether ``invoke(None)`` would go on with a thread.

    There is work that was interrupted, a denied call to ask for again, or a review whose deadline
    has passed, which is parked. ``now`` is Unix time in seconds.
    """
    if overdue(snapshot, now):
        return True
    result = snapshot.values.get("result")
    if result is not None and result.status == "blocked":
        return True  # what was denied is asked for again
    # `next` is empty too where every node has run and only the step itself was not closed.
    return bool(snapshot.tasks and not snapshot.interrupts)
