"""Where a checkpointer keeps large outputs: its own place, else one in this process."""

from typing import Any

from daruma.tools.calls.results import OutputStore, ProcessOutputs


def outputs_of(checkpointer: Any) -> OutputStore:
    """Return where a checkpointer's outputs are.

    One in this process goes with the object, so that all graphs over it read the same.
    """
    own = getattr(checkpointer, "outputs", None)
    if isinstance(own, OutputStore):
        return own
    made: OutputStore = checkpointer.__dict__.setdefault("outputs", ProcessOutputs())
    return made
