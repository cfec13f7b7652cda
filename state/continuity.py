"""Whether a message goes on with what came before it (CO-02)."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from daruma.state.record import record

RESUME: Literal["resume_after_clarification"] = "resume_after_clarification"


@record
class Continuity:
    """``fresh`` with the mode: a clarification is open, or was just answered. ``stale``: it is not
    gone on with. ``extra`` is what a snapshot of an older kind held beside this."""

    status: Literal["fresh", "stale"] = "fresh"
    mode: Literal["", "resume_after_clarification"] = ""
    extra: dict[str, Any] = field(default_factory=dict)
    schema_version: int = 1


def reduce_continuity(
    known: Continuity | Mapping[str, Any] | None, write: Continuity | Mapping[str, Any] | None
) -> Continuity | Mapping[str, Any] | None:
    """Reduce the ``continuity`` channel: what is handed over does not replace a thread's own."""
    own = known if isinstance(known, Mapping) else known is not None and _waits(known)
    return known if own and isinstance(write, Mapping) else write


def _waits(known: Continuity) -> bool:
    return known.status == "fresh" and known.mode == RESUME
