"""The record of steps: the one source that spent budget is computed from."""

from collections.abc import Sequence
from typing import Literal

from daruma.state.audit import Audit
from daruma.state.context_cost import ContextCost
from daruma.state.grant import Grant
from daruma.state.growing import growing
from daruma.state.record import record
from daruma.state.recovery import Recovered
from daruma.state.usage import Usage

StepKind = Literal[
    "plan",
    "think",
    "repair",
    "verify",
    "reflect",
    "recover",
    "consult",
    "compress",
    "summarise",
    "intake",
    "tool",
    "pause",
]


@record
class Step:
    """One pass of work: who did what, whether it succeeded, when and for how long.

    ``at`` is Unix time in seconds, ``seconds`` the duration. ``signature`` tells equal failures and
    equal actions apart from others; it is text for comparing, not for showing. For a ``think`` step
    it names the tools and holds a digest of the calls that the model asked for, ``saw`` what its
    calls before had come to: a digest, with ``!`` before it where they all had failed; empty where
    it had made none. ``blockers`` are the errors that it was shown, in short. A think step that is
    not ``ok`` though it asked for calls had them refused, as they would have led no further.
    ``counted`` is our own count of the tokens that its request held, 0 where nobody counted. A
    ``compress`` step brought a request under its budget at the ``context_cost``, a ``summarise``
    step is one model call that was made for it. An ``intake`` step asked whether a message goes on
    with what came before. A ``tool`` step is one call that was run. A ``pause`` step settled, by
    its ``grant``, what becomes of a budget that was spent.
    """

    kind: StepKind
    task_id: str
    phase_id: str | None = None
    ok: bool = True
    at: float = 0.0
    seconds: float = 0.0
    signature: str = ""
    usage: Usage | None = None
    audit: Audit | None = None
    saw: str = ""
    blockers: tuple[str, ...] = ()
    recovery: Recovered | None = None
    counted: int = 0
    context_cost: ContextCost | None = None
    grant: Grant | None = None
    schema_version: int = 1


def append_steps(steps: list[Step], writes: Sequence[list[Step]]) -> list[Step]:
    """Reduce the ``steps`` channel: history only ever grows."""
    return growing(steps).with_more(step for write in writes for step in write)
