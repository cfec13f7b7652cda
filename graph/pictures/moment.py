"""One thing that happened in a run."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Kind = Literal[
    "request",
    "plan",
    "review",
    "phase",
    "model",
    "tool",
    "approval",
    "question",
    "check",
    "reflection",
    "failure",
    "recovery",
    "rollback",
    "savepoint",
    "context",
    "note",
    "result",
]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What happened, when, and where in the machine.

    ``at`` is Unix time in seconds; ``timed`` is False where the record has none, then it is that of
    what came before. ``seconds`` is how long it took; for a tool, where its own time is not on
    record, how long all calls of its answer took together; for a question how long the work
    stood still.
    ``title`` is one line, ``detail`` what was asked or said, ``output`` what came of it. ``ok`` is
    None where nothing could fail, or where it is not known yet. ``phase`` and ``task`` are ids,
    ``member`` is the phase whose team member it was. ``tokens`` were read and written by ``model``.
    ``note`` is what else a reader must know, on one line. ``diff`` is a unified diff.
    """

    kind: Kind
    title: str
    at: float = 0.0
    timed: bool = False
    seconds: float | None = None
    detail: str = ""
    output: str = ""
    ok: bool | None = None
    node: str = ""
    task: str = ""
    phase: str = ""
    member: str = ""
    model: str = ""
    tokens: int = 0
    usd: float | None = None
    note: str = ""
    diff: str = ""
