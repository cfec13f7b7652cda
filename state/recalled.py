"""What was recalled for a task when it began: it stays the same until the task ends (CX-05)."""

from daruma.state.record import record


@record
class Remembered:
    """One memory. ``role`` is empty for the common ones; ``at`` is Unix time in seconds."""

    id: str
    text: str
    section: str = ""
    role: str = ""
    at: float = 0.0
    schema_version: int = 1


@record
class Recalled:
    """The memories that fit a task best, best first; ``note`` says why there are none, if any."""

    task_id: str
    memories: tuple[Remembered, ...] = ()
    note: str = ""
    schema_version: int = 1
