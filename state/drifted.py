"""Files of the workspace that somebody else changed behind a task's back."""

from typing import Final

from daruma.state.record import record

MOST: Final = 100
"""Paths that are kept on record; of more, the first."""


@record
class Drifted:
    """What was found changed when a task began or was taken up again: at most ``MOST`` paths."""

    task_id: str
    paths: tuple[str, ...]
    schema_version: int = 1


def reduce_drifted(known: Drifted | None, write: Drifted | None) -> Drifted | None:
    """Reduce the ``drifted`` channel: paths of one task add up, another task begins anew."""
    if known is None or write is None or known.task_id != write.task_id:
        return write or known
    paths = tuple(dict.fromkeys((*known.paths, *write.paths)))
    return Drifted(task_id=write.task_id, paths=paths[:MOST])
