"""What a run tells while it goes on: one typed event for everything worth showing.

Events are for watching, in ``stream_mode="custom"``; nothing routes on them and nothing is
remembered in them. What opens (``*_started``, ``*_request``) is closed on every path (PL-04).
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, dataclass_transform

from daruma.state.plan import Plan
from daruma.state.task import Task
from daruma.state.verification import Outcome

SCHEMA_VERSION: Final = 1
"""Version of all events; grows when one is renamed, changed or removed, not when one is added."""

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""What is the same once it is copied; to ask each value how takes longer."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Event:
    """The base of all events; ``type`` is the name that observers see.

    Each is a frozen dataclass, whose class gives its ``name``. ``member`` is the id of a team
    member's phase, or of a helper's call; else it is empty.
    """

    type: ClassVar[str]
    member: str = ""

    def __init_subclass__(cls, name: str = "") -> None:
        if name:
            cls.type = name
            dataclass(frozen=True, kw_only=True)(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able values, with its ``type``, and the member if it has one."""
        told = {
            name: value if type(value) in _PLAIN else deepcopy(value)
            for name, value in vars(self).items()
        }
        if not self.member:
            del told["member"]
        return {"type": self.type, **told}


class TaskStarted(Event, name="task_started"):
    """A task begins; again when one that was parked or held is taken up.

    ``schema_version`` is that of all events of the run.
    """

    task_id: str
    mode: str
    goal: str
    workspace: str | None
    schema_version: int = SCHEMA_VERSION


class MemoryRecalled(Event, name="memory_recalled"):
    """The memories that a task begins with, best first; ``note`` says why recalling failed."""

    ids: tuple[str, ...] = ()
    note: str = ""


class LessonsGiven(Event, name="lessons_given"):
    """What a task is given of what earlier ones taught; ``note`` says why looking it up failed.

    ``pitfalls`` are their ids, the most alike first; ``variants`` those of learned instructions.
    """

    pitfalls: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    note: str = ""


class ModelCallStarted(Event, name="model_call_started"):
    """A node asks a model; closed by ``model_call_completed``."""

    node: str
    model: str


class ModelCallCompleted(Event, name="model_call_completed"):
    """A model has answered or failed; closes ``model_call_started``.

    ``error`` is None for an answer; ``seconds`` is how long it took. Tokens that the provider does
    not tell are estimated (BU-05).
    """

    node: str
    model: str
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    error: str | None = None


class ModelText(Event, name="model_text"):
    """Words of an answer as they come: for those who follow a run that was submitted for that.

    They are told and not kept: who comes back hears the rest. Those of an attempt that fails are to
    be dropped, as ``model_attempt_failed`` of the same ``node``, ``call`` and ``attempt`` says.
    """

    node: str
    call: int
    attempt: int
    text: str


class ModelAttemptFailed(Event, name="model_attempt_failed"):
    """A request that brought no answer; what it had begun to say was dropped.

    ``then`` is "again", "next model" or "gave up"; ``wait`` the seconds until the next request.
    Chunks that ``stream_mode="messages"`` has shown of a dropped attempt can be taken back: their
    metadata holds ``daruma_role`` (here ``node``), ``daruma_call`` (``call``) and
    ``daruma_attempt`` (``attempt``), and no two attempts share a message id. The message that is
    recorded comes once more, whole, without these. ``attempt`` counts the requests of one call
    from 1; a model that was not asked at all has the number 0.
    """

    node: str
    model: str
    attempt: int
    error: str
    then: str
    status: int | None = None
    wait: float = 0.0
    call: int = 0


class PlanProposed(Event, name="plan_proposed"):
    """A plan that can be carried out, as the model or a person gave it."""

    plan: dict[str, Any]


class PlanRejected(Event, name="plan_rejected"):
    """A plan that can not be carried out, and why; the model is asked for another."""

    reason: str


class PlanReplaced(Event, name="plan_replaced"):
    """What is left is planned anew, ``why``; ``plan_proposed`` told the new plan just before."""

    plan_id: str
    new_plan_id: str
    why: str


class TodoChanged(Event, name="todo_changed"):
    """The model's short list of its own steps, whole: each has a ``text`` and a ``status``."""

    items: tuple[dict[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class _Request:
    """A question to a person that opens; the run stops there (PL-04).

    ``interrupt_id`` is what its reply goes by. It comes once, but after a kill; what closes it is
    ``question_closed`` with its ``id``.
    """

    id: str
    interrupt_id: str
    kind: str
    question: dict[str, Any]


class SpecReviewRequested(_Request, Event, name="spec_review_request"):
    """A plan waits for a person (PL-02); closed by ``question_closed``."""


class ApprovalRequested(_Request, Event, name="approval_request"):
    """Calls wait for a person; closed by ``question_closed``."""


class QuestionRequested(_Request, Event, name="question_request"):
    """Anything else that waits for a person; closed by ``question_closed``."""


class QuestionClosed(Event, name="question_closed"):
    """Closes the request of that ``id``, whatever was decided (PL-04).

    An approval that is voided, or not decided on, opens another request.
    """

    id: str
    kind: str
    decision: str


class SpecReviewCompleted(Event, name="spec_review_completed"):
    """What was decided on a plan; ``decision`` is confirm, reject, edit or timeout."""

    spec_review_id: str
    decision: str


class ApprovalCompleted(Event, name="approval_completed"):
    """What was decided on one call of an ``approval_request``.

    ``decision`` is approve, deny or edit; void for one that was made about what has changed since.
    ``by`` is the id of the yes that a person gave before, if nobody was asked this time.
    """

    approval_id: str
    decision: str
    by: str = ""


class AnswerAudited(Event, name="answer_audited"):
    """What was changed, repaired or left out of an answer's calls: ``state/steps.py``."""

    audit: dict[str, Any]


class ClarificationRequested(Event, name="clarification_request"):
    """The user is asked for what a call lacks; closed when they have said something."""

    question: str
    target_action: str
    missing_fields: tuple[str, ...]


class ClarificationResolved(Event, name="clarification_resolved"):
    """Closes a ``clarification_request``.

    ``how`` is resumed or stale, the latter for a message about something else.
    """

    how: str
    target_action: str


@dataclass(frozen=True, kw_only=True)
class _OfPhase:
    """What is told of a phase, which is the ``number``-th of so many in its plan."""

    phase_id: str
    title: str = ""
    number: int = 0
    of: int = 0


class PhaseStarted(_OfPhase, Event, name="phase_started"):
    """A phase of the plan begins; closed by ``phase_completed`` or ``phase_failed``."""


class PhaseCompleted(_OfPhase, Event, name="phase_completed"):
    """A phase went well; closes its ``phase_started``."""


class PhaseFailed(_OfPhase, Event, name="phase_failed"):
    """A phase did not go well; closes its ``phase_started``.

    ``fallen`` names the phases that depend on this one and fail with it.
    """

    outcome: str
    reason: str
    fallen: tuple[str, ...] = ()


class PhaseRollbackStarted(Event, name="phase_rollback_started"):
    """What a phase did is undone, after the phase was told to have failed (RO-05).

    ``command`` is the phase's own, or the word snapshot.
    """

    phase_id: str
    command: str


class PhaseRollbackCompleted(Event, name="phase_rollback_completed"):
    """What a phase did was undone; closes ``phase_rollback_started``.

    ``exact`` says whether the files are as they were before the phase, None if nobody can tell.

    ``left`` names those that are not; ``undo`` is the snapshot that holds what was rolled back.
    """

    phase_id: str
    exact: bool | None = None
    left: tuple[str, ...] = ()
    undo: str | None = None


class PhaseRollbackFailed(Event, name="phase_rollback_failed"):
    """Nothing is built on what it left: a person is asked."""

    phase_id: str
    reason: str
    undo: str | None = None


class RollbackDecided(Event, name="rollback_decided"):
    """Closes the question after a failed rollback; ``decision`` is retry, restore or keep."""

    phase_id: str
    decision: str


class SavepointWritten(Event, name="savepoint_written"):
    """A state of the workspace that can be gone back to; ``note`` says why it has no snapshot."""

    savepoint_id: str
    snapshot: str | None
    note: str = ""


class WorkspaceDrifted(Event, name="workspace_drifted"):
    """Files that changed behind the thread's back; ``paths`` are the first of ``total``."""

    paths: tuple[str, ...]
    total: int


class ContextCompacted(Event, name="context_compacted"):
    """The request of ``node`` was brought under its budget: ``state/steps.py`` as a dict."""

    node: str
    cost: dict[str, Any]


class MemberStarted(Event, name="member_started"):
    """A member takes up a phase, or a helper a call: in a worktree of its own if it may write."""

    phase_id: str
    expert: str
    workspace: str | None


class MemberCompleted(Event, name="member_completed"):
    """Closes a ``member_started``."""

    phase_id: str
    expert: str
    outcome: str


class MergeCompleted(Event, name="merge_completed"):
    """A member's or a helper's work came in, but for files in conflict: then none of it did."""

    phase_id: str
    paths: tuple[str, ...]
    conflicts: tuple[str, ...] = ()


class ToolStarted(Event, name="tool_started"):
    """A call of a tool begins; closed by ``tool_completed``."""

    call_id: str
    tool: str
    summary: str


class ToolCompleted(Event, name="tool_completed"):
    """Closes a ``tool_started``; ``ok`` is False for a call whose result is an error."""

    call_id: str
    tool: str
    ok: bool
    seconds: float
    output: str = ""


class CallRefused(Event, name="call_refused"):
    """A call does not run, as its model is told: it is not allowed or broken, say (TL-03)."""

    call_id: str
    tool: str
    args: dict[str, Any]
    reason: str


class HookApplied(Event, name="hook_applied"):
    """A hook changed something, denied it, or failed; one that let it pass is not told of.

    ``did`` is changed, denied or failed, ``call_id`` the call that it was about, if any.
    """

    hook: str
    point: str
    did: str
    reason: str = ""
    call_id: str = ""


class CallSettled(Event, name="call_settled"):
    """A call that an earlier run made, or was killed in the middle of; ``how`` it is settled.

    reused: what came of it is on record. restore: the files were put back to before it, and it is
    made again; ``undo`` is the snapshot of what was there. again: it is made again. happened,
    unknown: a person said so. tell: the model is told that it is unknown.
    """

    call_id: str
    tool: str
    how: str
    undo: str | None = None


class CommandRun(Event, name="command_run"):
    """One command: a check, a validation, a rollback, or a tool's; ``purpose`` says which.

    ``sandbox`` is its level, ``not_covered`` what that leaves open, ``stopped_by`` the limit
    (memory or processes) that it was killed for. ``passed`` says how its exit code is taken, and
    ``note`` why, where the code alone does not tell. ``output`` is bounded, its keys are masked;
    that of a tool's command stands in ``tool_completed`` (VE-10). ``violation`` says what the
    sandbox stopped, as far as that is known (SA-02).
    """

    purpose: str
    command: str
    exit_code: int | None
    timed_out: bool
    seconds: float
    sandbox: str
    not_covered: tuple[str, ...] = ()
    stopped_by: str = ""
    passed: bool = False
    note: str = ""
    output: str = ""
    violation: str = ""


class CommandOutput(Event, name="command_output"):
    """The last lines that a running command wrote, keys masked: twice in a second at most.

    ``purpose`` is that of its ``command_run``; ``call_id`` is the tool call that it runs for.
    """

    purpose: str
    command: str
    lines: tuple[str, ...]
    call_id: str = ""


class VerificationStarted(Event, name="verification_started"):
    """The checks begin; closed by ``verification_completed``."""

    commands: tuple[str, ...]


class VerificationCompleted(Event, name="verification_completed"):
    """The checks have ended; closes ``verification_started``. ``passed`` is None: none was made.

    ``changed_tests`` are test files, and what configures tests, that the task has changed (VE-08).
    """

    passed: bool | None
    summary: str
    outcome: Outcome = "failed"
    changed_tests: tuple[str, ...] = ()


class WorkJudged(Event, name="work_judged"):
    """A judge was asked about the work (VE-11): ``text`` names what is not met, line by line."""

    passed: bool
    summary: str
    text: str = ""
    verdicts: tuple[dict[str, Any], ...] = ()


class Reflected(Event, name="reflected"):
    """What the model makes of a red result, before it goes on."""

    text: str


class RecoveryStarted(Event, name="recovery_started"):
    """Something failed, and what to do about it is being found out (RE-09).

    ``progress`` is how far the work had come: the fields of ``state/progress.py``.
    """

    code: str
    message: str
    progress: dict[str, Any] = field(default_factory=dict)


class RecoveryChosen(Event, name="recovery_action"):
    """What is done against a failure.

    ``by`` says who chose the action: model, rule or learned.
    """

    strategy: str
    reasoning: str
    confidence: float = 0.0
    by: str = "rule"
    tool_name: str | None = None
    parameters: dict[str, Any] | None = None


class RecoveryCompleted(Event, name="recovery_completed"):
    """Closes a ``recovery_started``, and a question of its own.

    ``carried`` says what became of the action: ``state/failure.py``.
    """

    strategy: str
    carried: str = "executed"


class MessageReceived(Event, name="message_received"):
    """A task at work is told what a person sent to it, by its ``id``; ``goal`` is its new goal.

    Told again by a run that goes on after one that was killed before it was stored.
    """

    id: str
    text: str
    stop: bool = False
    goal: str = ""
    sent_at: float = 0.0


class BudgetSpent(Event, name="budget_spent"):
    """A limit is reached, before ``node`` would spend more; a question may follow.

    ``scope`` is task or phase, ``measure`` tokens, usd, seconds or steps.
    """

    node: str
    scope: str
    measure: str
    spent: float
    limit: float


class BudgetSettled(Event, name="budget_settled"):
    """Closes a ``budget_spent``: so much ``more`` was granted, or the work stops there.

    Of steps, every quota is granted once more; ``more`` is that of model calls.
    """

    node: str
    scope: str
    measure: str
    more: float = 0.0
    stopped: bool = False


class TaskCompleted(Event, name="task_completed"):
    """The end of a task, whatever its status; closes ``task_started``.

    ``checked`` is what became of its checks: passed, failed or none; ``headline`` is the status as
    people read it: a success that nothing checked says so (MO-10).
    """

    task_id: str
    status: str
    output: str
    checked: str = "none"
    headline: str = ""


class RunStopped(Event, name="run_stopped"):
    """The last event of a run for those who follow its thread: nothing is done until somebody acts.

    ``outcome`` is done, with the ``result``; waiting, with the open ``questions`` by their ids;
    failed, with the ``error`` that the run raised; unfinished, for one that can be resumed.
    ``run`` is the name of what was submitted; empty where the run was not a worker's.
    """

    outcome: str
    result: dict[str, Any] | None = None
    questions: tuple[dict[str, Any], ...] = ()
    error: str = ""
    run: str = ""


def unheard(_: Event) -> None:
    """Take an event where nobody listens."""


EVENTS: dict[str, type[Event]] = {event.type: event for event in Event.__subclasses__()}
"""All events there are, by the name that observers see."""


# --- Building the events of a task and of its phases.


def task_started(task: Task) -> TaskStarted:
    """Build the event for a task that begins, or is taken up again."""
    return TaskStarted(task_id=task.id, mode=task.mode, goal=task.goal, workspace=task.workspace)


def place_in(plan: Plan) -> dict[str, Any]:
    """Return the fields that say which phase is the current one."""
    number, phase = next((n, p) for n, p in enumerate(plan.phases, 1) if p.id == plan.current)
    return {"phase_id": phase.id, "title": phase.title, "number": number, "of": len(plan.phases)}


def phase_failed(before: Plan, after: Plan) -> PhaseFailed:
    """Build the event for the current phase, which ``after`` shows as failed, and what fell."""
    phase = after.phase(after.current)
    pending = {other.id for other in before.phases if other.status == "pending"}
    return PhaseFailed(
        **place_in(after),
        outcome=phase.outcome or "failed" if phase else "failed",
        reason=phase.failure.message if phase and phase.failure else "",
        fallen=tuple(p.id for p in after.phases if p.id in pending and p.status == "failed"),
    )
