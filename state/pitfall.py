"""A pitfall: what went wrong in earlier tasks, and what speaks for it (EV-03, EV-04)."""

from typing import Literal

from daruma.state.experience import SetbackKind
from daruma.state.record import record

Level = Literal["low", "medium", "high"]
"""Less sure than it has to be; sure, but it was overcome; sure, and tasks failed by it."""


@record
class Pitfall:
    """One pitfall of an owner's, for one actor. ``text`` and ``advice`` are one line each.

    ``goals`` are the newest different ones of the tasks that it was seen in, ``skills`` what these
    had loaded. ``tasks`` counts the tasks that it was seen in, ``clear`` those alike that went well
    without being told of it, ``avoided``, ``repeated`` and ``in_vain`` those that were told: they
    went well, met it again, or fell to something else. ``confidence`` is
    from 0 to 1, as of ``last_at``, which is when it was last seen: Unix time in seconds.
    """

    id: str
    owner: str
    actor: str
    kind: SetbackKind
    signature: str
    text: str
    advice: str = ""
    goals: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    tasks: int = 1
    clear: int = 0
    avoided: int = 0
    repeated: int = 0
    in_vain: int = 0
    confidence: float = 0.0
    level: Level = "low"
    first_at: float = 0.0
    last_at: float = 0.0
    shared: bool = False
    schema_version: int = 1
