"""What a worker says of its jobs: a line each."""

from langgraph.types import StateSnapshot

from daruma.tools.text.secrets import without_keys


def ended(thread_id: str, snapshot: StateSnapshot) -> str:
    """Say where a thread stands after its job."""
    result = snapshot.values.get("result")
    if result is not None:
        return f"thread {thread_id!r}: {result.status}"
    return f"thread {thread_id!r}: {'waits for an answer' if snapshot.interrupts else 'unfinished'}"


def put_off(thread_id: str, error: BaseException) -> str:
    """Say that a job goes back into the queue."""
    return f"thread {thread_id!r}: put off: {reason_of(error) or 'this worker is stopped'}"


def failed(thread_id: str, error: BaseException) -> str:
    """Say that a job ended with an error, and how it can be taken up."""
    return f"thread {thread_id!r}: could not be run: {type(error).__name__}: {reason_of(error)}"


def parked(thread_id: str) -> str:
    """Say that nobody confirmed a plan in time."""
    return f"thread {thread_id!r}: parked, as nobody confirmed its plan in time"


def learned_from(task_id: str) -> str:
    """Say that an ended task was learned from."""
    return f"task {task_id!r}: learned from"


def not_learned(owner: str, error: BaseException) -> str:
    """Say that nothing could be learned from a task; it is on record all the same."""
    reason = f"{type(error).__name__}: {reason_of(error)}"
    return f"a task of {owner!r} could not be learned from: {reason}"


def reason_of(error: BaseException) -> str:
    """Return an error's text in one line, without any key."""
    return " ".join(without_keys(str(error)).split())
