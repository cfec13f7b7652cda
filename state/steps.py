"""The record of steps, and what was done in each: the one source of spent budget."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from daruma.state.failure import Recovered
from daruma.state.messages import growing
from daruma.state.record import plain_values, record
from daruma.state.task import Amounts, Measure, Scope
from daruma.state.usage import Failover, Usage
from daruma.state.verification import Verification

# --- How a history that has outgrown the context is shown: what is left out of it, and through
# where.
#
# The history itself keeps everything. Places are named by the ids of messages, so that they mean
# the same however the history grows.

Asking = Literal["main", "plan", "reflect"]
"""The nodes whose requests hold the history."""


@record
class Compaction:
    """What has been done so far, and for which node the last time.

    ``memory`` is the task whose recalled memory is no longer sent. Each ``*_through`` is the id of
    the last message that a measure is for: ``pruned`` tool outputs are placeholders, ``shrunk``
    texts are their two ends; ``summary`` stands in the place of all messages through
    ``summarised_through`` but those that are ``kept``, ``summarised`` counts them. ``cut`` is how
    many characters of a text are sent through ``cut_through``: the last resort. ``limit`` is a
    budget in tokens that was learnt from a refusal, in the task ``limit_of``.
    """

    asked_by: Asking = "main"
    memory: str = ""
    pruned_through: str = ""
    shrunk_through: str = ""
    summary: str = ""
    summarised_through: str = ""
    summarised: int = 0
    kept: tuple[str, ...] = ()
    cut: int = 0
    cut_through: str = ""
    limit: int = 0
    limit_of: str = ""
    schema_version: int = 1


@record
class Crowded:
    """A request that is over its budget, in tokens by our own count, and was not answered.

    ``fixed`` is what can not be left out: the prompt, notes, and the schemas of ``tools`` tools;
    ``memory`` is what was recalled. ``factor`` is by how much a provider was seen to count more.
    ``refused`` is what a provider said that had been sent it, ``failover`` what it took to hear it.
    """

    node: Asking
    budget: int
    fixed: int
    memory: int = 0
    tools: int = 0
    factor: float = 1.0
    refused: str = ""
    failover: Failover | None = None
    schema_version: int = 1


# --- What it took to bring one request under its budget, and what that saved (CX-01).

ContextMeasure = Literal["memory", "prune", "shrink", "summarise", "cut"]
"""What can be done about a request that is too large, in this order."""

By = Literal["", "auxiliary", "main", "rules"]
"""Who made a summary; nobody where there was no need of one."""


@record
class ContextCost:
    """One compaction. ``before`` and ``after`` are tokens of the request that ``node`` makes.

    ``saved`` holds tokens by measure, ``messages`` how many were replaced by a summary, made ``by``
    whom. ``exact`` says that a tokenizer counted, else it is an estimate; ``refused`` that a
    provider had found the request too long.
    """

    node: Asking
    budget: int
    before: int
    after: int
    saved: dict[ContextMeasure, int]
    messages: int = 0
    by: By = ""
    exact: bool = False
    refused: bool = False
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return plain_values(self)


@record
class ContextUsage:
    """What the window is spent on as a thread stands: tokens by part of a request (CX-08).

    ``limit`` is the budget of a request, None where there is none; ``saved`` what compaction leaves
    out. ``exact`` says that a tokenizer counted, else it is an estimate. ``told`` are the tokens of
    the last request by its provider, ``cached`` those of them that it had kept.
    """

    parts: dict[str, int]
    limit: int | None = None
    saved: int = 0
    exact: bool = False
    told: int = 0
    cached: int = 0
    schema_version: int = 1

    @property
    def tokens(self) -> int:
        """The sum of all parts."""
        return sum(self.parts.values())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {"tokens": self.tokens, **plain_values(self)}


# --- What was changed or left out between what the model said and what was run, on record.

MAX_NAMES: Final = 20
"""Changed names of one answer that are kept (TL-04)."""
SAMPLE: Final = 10
"""Names of left-out calls that are kept, each at most ``SAMPLE_BYTES`` of UTF-8 (TL-16)."""
SAMPLE_BYTES: Final = 200


@record
class NameChange:
    """One call whose tool was found under another name than the one requested."""

    tool_call_id: str
    requested_name: str
    name: str
    how: str
    schema_version: int = 1


@record
class ArgumentRepair:
    """One call whose arguments were repaired, by rules or by a model; ``rungs`` says how."""

    tool_call_id: str
    name: str
    repaired_by: Literal["rules", "model"]
    rungs: tuple[str, ...] = ()
    schema_version: int = 1


@record
class LeftOut:
    """Calls beyond the limit of one answer: none of them ran, and the history has none of them."""

    total: int
    executed: int
    omitted: int
    limit: int
    names: tuple[str, ...]
    schema_version: int = 1


@record
class RepairRound:
    """One model call for repair: which calls it was asked about, and what came of them.

    ``attempt`` counts from 1. ``cut`` says that there were more names or calls than fit the limits.
    """

    kind: Literal["names", "arguments"]
    attempt: int
    candidates: tuple[str, ...]
    repaired: tuple[str, ...]
    failed: tuple[str, ...]
    cut: bool = False
    schema_version: int = 1


@record
class HookNote:
    """What a hook did at a point: changed, denied, or failed; ``call_id`` is the call, if any."""

    hook: str
    point: str
    did: Literal["changed", "denied", "failed"]
    reason: str = ""
    call_id: str = ""
    schema_version: int = 1


@record
class Audit:
    """All of that for one answer of the model; ``message_id`` is that answer, empty if none came.

    ``failover`` is there for a call that did not go through at once, ``hooks`` for what hooks did.
    """

    message_id: str
    names: tuple[NameChange, ...] = ()
    names_cut: bool = False
    arguments: tuple[ArgumentRepair, ...] = ()
    left_out: LeftOut | None = None
    round: RepairRound | None = None
    failover: Failover | None = None
    hooks: tuple[HookNote, ...] = ()
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return plain_values(self)


# --- A budget that was spent: which one, who was held up by it, and what became of that.

Paying = Literal["plan", "main", "verify", "reflect", "recovery", "structure"]
"""The nodes that look at the budget before they spend of it."""


@record
class Overrun:
    """A limit that is reached: of what, of the task or of its phase, and before which node.

    ``steps`` are the quotas of steps, of which ``spent`` and ``limit`` count those of ``node``. A
    ``stop`` is no limit: a person wants the task to stand still, and to be asked.
    """

    node: Paying
    scope: Scope
    measure: Measure | Literal["steps", "stop"]
    spent: float
    limit: float
    schema_version: int = 1


@record
class Grant:
    """What was said about an overrun: so much ``more``, or that it stops there.

    ``steps`` says that it was about the quotas of steps: each is there once more, unless stopped.
    """

    node: Paying
    scope: Scope
    more: Amounts
    stopped: bool = False
    steps: bool = False
    schema_version: int = 1


# --- The record of steps: the one source that spent budget is computed from.

StepKind = Literal[
    "plan",
    "look",
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
    "structure",
    "judge",
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
    with what came before. A ``tool`` step is one call that was run, for the ``seconds``
    that it was at work. A ``pause`` step settled, by its ``grant``, what becomes of a budget that
    was spent. ``helper`` is the id of the call that a helper took the step for (PL-08), empty for
    any other. A ``structure`` step asked for the answer in another form. A ``verify`` step holds
    what the checks said, so that all verifications of a task stay on record (VE-09); a ``judge``
    step is one request to the judge. In a ``look`` step the planner called what reads; one that is
    not ``ok`` was refused for offering tools.
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
    verification: Verification | None = None
    helper: str = ""
    schema_version: int = 1


def append_steps(steps: list[Step], writes: Sequence[list[Step]]) -> list[Step]:
    """Reduce the ``steps`` channel: history only ever grows."""
    return growing(steps).with_more(step for write in writes for step in write)
