"""What is on record of a run, and what only the walk tells: phases, checks, questions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from daruma.graph.timeline._moments import Kind, Moment, call_title, edit_diff
from daruma.graph.timeline._walk import Superstep, Walk, Walked, walk_of
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.interrupts import notes_on_plan, told_question
from daruma.state.outcome import join_paths
from daruma.state.plan import Phase, Plan
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint
from daruma.state.task import Task
from daruma.state.text import counted
from daruma.state.verification import Check, Verification, title_of

if TYPE_CHECKING:
    from langgraph.types import Interrupt, StateSnapshot

# --- What is on record of a run: a state, the walk that led to it, and those of team members.

MEMBER = "member:"
"""What the namespace of a team member begins with."""


@dataclass(frozen=True)
class Record:
    """A state and the walk to it; ``member`` is the phase of the member whose they are.

    ``opened`` are the ids of the questions that are open.
    """

    thread: str
    state: State
    walk: Walk
    member: str = ""
    opened: frozenset[str] = field(default_factory=frozenset)

    @property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks of the thread by the message that asked for them, as far as they are known."""
        written = (task for each in self.walk.walked for task in each.values("task"))
        known = [*written, self.state.task]
        return {task.request: task for task in known if isinstance(task, Task) and task.request}


def record_of(thread: str, snapshot: "StateSnapshot", supersteps: Iterable[Superstep]) -> Record:
    """Return the record of the task itself."""
    own = [each for each in supersteps if not each.namespace]
    head = snapshot.config["configurable"]["checkpoint_id"]
    opened = frozenset(each.id for each in snapshot.interrupts)
    return Record(thread, State(**snapshot.values), walk_of(own, head), opened=opened)


def member_record(
    task: Record, snapshot: "StateSnapshot", supersteps: Sequence[Superstep]
) -> Record | None:
    """Return the record of a team member; None for one that has not begun."""
    state = State(**snapshot.values)
    if state.plan is None or state.plan.current is None:
        return None
    phase = state.plan.current
    walk = walk_of(supersteps, snapshot.config["configurable"]["checkpoint_id"], phase)
    return Record(task.thread, state, walk, phase, task.opened)


def members_in(supersteps: Iterable[Superstep], walk: Walk) -> dict[str, list[Superstep]]:
    """Return the supersteps of the members that the task's own walk has sent, by namespace."""
    on_walk = {each.superstep.id for each in walk.walked}
    found: dict[str, list[Superstep]] = {}
    for each in supersteps:
        if each.namespace.startswith(MEMBER) and each.root in on_walk:
            found.setdefault(each.namespace, []).append(each)
    return found


# --- What a person was asked on the way, and what they said.

_YES = frozenset({"confirm", "approve", "edit"})
ANSWERS: Final[Mapping[str, str]] = {
    "confirm": "confirmed",
    "reject": "rejected",
    "edit": "edited",
    "park": "parked",
    "timeout": "parked: nobody confirmed it in time",
    "approve": "approved",
    "deny": "denied",
    "void": "void: what it was about has changed",
    "instruct": "other instructions given",
}
"""What was decided, in words."""


def question_moments(
    walked: Walked, opened: frozenset[str], member: str, last: Mapping[str, str]
) -> Iterator[Moment]:
    """Yield the questions that a superstep asked; ``opened`` are the ids of those still open.

    ``last`` has the superstep that asked last about each approval: a yes before it was void.
    """
    replies = _replies(walked)
    nodes = {visit.node for visit in walked.visits}
    for each in walked.superstep.written:
        for asked in each.value if each.channel == "__interrupt__" else ():
            if nodes == {"member"} or not hasattr(asked, "value"):
                continue  # the member's own record tells it
            reply = None if asked.id in opened else replies.get(each.task)
            yield from _asked(asked, reply, walked, member, last)


def asked_last(walk: Walk) -> Mapping[str, str]:
    """Return the superstep that asked last about each call, by the id of its approval."""
    return {
        approval.get("approval_id"): walked.superstep.id
        for walked in walk.walked
        for asked in chain(*walked.values("__interrupt__"))
        if isinstance(value := getattr(asked, "value", None), Mapping)
        for approval in value.get("approvals", ())
    }


def _replies(walked: Walked) -> Mapping[str, Any]:
    """Return the last reply to each task: it is to the last question."""
    found = [each for each in walked.superstep.written if each.channel == "__resume__"]
    lists = {e.task: e.value if isinstance(e.value, list) else [e.value] for e in found}
    return {task: replies[-1] for task, replies in lists.items() if replies}


def _asked(
    asked: "Interrupt", reply: Any, walked: Walked, member: str, last: Mapping[str, str]
) -> Iterator[Moment]:
    until = walked.until if reply is not None else None
    again = [approval for approval, at in last.items() if at > walked.superstep.id]
    for moment in _told(told_question(asked.value), reply, again):
        yield replace(
            moment,
            at=walked.superstep.at,
            timed=True,
            seconds=None if until is None else until - walked.superstep.at,
            node=next((visit.node for visit in walked.visits), ""),
            member=member,
        )


def _told(value: Mapping[str, Any], reply: Any, again: Collection[str]) -> Iterator[Moment]:
    said: Mapping[str, Any] = reply if isinstance(reply, Mapping) else {}
    kind = value.get("type")
    if kind == "approval_request":
        decisions = {each.get("approval_id"): each for each in said.get("decisions", ())}
        for each in value.get("approvals", ()):
            decision = decisions.get(each.get("approval_id"))
            if decision and decision.get("decision") in _YES and each["approval_id"] in again:
                decision = {**decision, "decision": "void"}
            yield _approval(each, decision, answered=bool(said))
    elif kind == "spec_review_request":
        yield _decided("review", "Is this plan right?", review_text(value), said)
    elif kind == "recovery_request":
        action: Mapping[str, Any] = value.get("action", {})
        about = (str(value.get("failure", "")), str(action.get("reasoning", "")))
        detail = "\n".join(each for each in about if each)
        yield _decided("approval", f"May this be done: {action.get('strategy')}?", detail, said)
    else:
        answer = said.get("answer") if said else reply
        yield Moment(
            kind="question",
            title=str(value.get("question", "")),
            detail=str(value.get("context") or ""),
            output="" if answer is None else str(answer),
            note="" if answer is not None else "waits for an answer",
        )


def _approval(
    asked: Mapping[str, Any], decision: Mapping[str, Any] | None, *, answered: bool
) -> Moment:
    """Return the approval of a call; an answer may have left it open, to be asked again."""
    args = asked.get("args", {})
    title = f"May this run: {call_title(asked.get('tool', ''), args)}"
    detail = "\n".join(str(part) for part in (asked.get("shown"), asked.get("reason")) if part)
    moment = _decided("approval", title, detail, decision or {})
    if answered and decision is None:
        moment = replace(moment, title=f"{title} left open")
    return replace(moment, note="; ".join(asked.get("warnings", ())), diff=edit_diff(args))


def _decided(kind: Kind, question: str, detail: str, said: Mapping[str, Any]) -> Moment:
    decision = said.get("decision")
    told = ANSWERS.get(str(decision), str(decision)) if decision else "waits for an answer"
    return Moment(
        kind=kind,
        title=f"{question} {told}",
        detail=detail,
        output=str(said.get("feedback") or said.get("reason") or said.get("text") or ""),
        ok=decision in _YES if decision else None,
    )


def review_text(value: Mapping[str, Any]) -> str:
    """Return a plan under review as lines, with what stands beside it."""
    beside = (f"{label}: {text}" for label, text in notes_on_plan(value).items() if text)
    return "\n".join((plan_text(value.get("phases", ())), *beside))


def plan_text(phases: Sequence[Mapping[str, Any]]) -> str:
    """Return the phases of a plan as lines."""
    lines = []
    for number, phase in enumerate(phases, 1):
        after = ", ".join(phase.get("depends_on", ()))
        who = f" ({phase['expert']})" if phase.get("expert") else ""
        order = f", after {after}" if after else ""
        lines.append(f"{number}. {phase.get('title', '')}{who}{order}")
        if phase.get("instructions"):
            lines.append(f"   {phase['instructions']}")
    return "\n".join(lines)


# --- What only the walk tells: phases begun and ended, checks, failures, rollbacks, results.


def walk_moments(walk: Walk, member: str) -> Iterator[Moment]:
    """Yield what happened at each superstep, beside what messages and steps tell."""
    standing: dict[str, str] = {}
    for walked in walk.walked:
        for plan in () if member else walked.values("plan"):
            yield from _phases(plan, standing, walked)
        for failure in walked.values("failure"):
            yield failure_moment(failure, _until(walked), member)
        yield from _rollbacks(walked, member)
        for result in () if member else walked.values("result"):  # a member's: with its phase
            yield result_moment(result, _until(walked))


def _until(walked: Walked) -> float:
    return walked.until or walked.superstep.at


def _phases(plan: Plan, standing: dict[str, str], walked: Walked) -> Iterator[Moment]:
    for phase in plan.before.phases if plan.before else ():  # what is completed stays so
        standing.setdefault(f"{plan.id}:{phase.id}", phase.status)
    for phase in plan.phases:
        key = f"{plan.id}:{phase.id}"
        before, standing[key] = standing.get(key, "pending"), phase.status
        if phase.status not in ("pending", before):
            yield phase_moment(plan, phase, _until(walked))


def phase_moment(plan: Plan, phase: Phase, at: float) -> Moment:
    """Return the beginning or the end of a phase, by how it stands."""
    number = plan.phases.index(phase) + 1
    begun = phase.status == "running"
    ended = f"{phase.outcome or phase.status}"
    unmerged = "not merged: it met other work" if phase.conflicts else ""  # PL-06
    return Moment(
        kind="phase",
        title=phase_title(number, len(plan.phases), phase.title, "" if begun else ended),
        detail=phase.instructions if begun else phase.answer,
        output="" if begun or phase.failure is None else phase.failure.message,
        at=at,
        timed=at > 0,
        ok=None if begun else phase.status == "completed" and not phase.conflicts,
        node="begin" if begun else "settle",
        task=plan.id.rpartition("/")[0],
        phase=phase.id,
        note="; ".join(filter(None, (phase.expert and f"expert {phase.expert}", unmerged))),
        lines=phase.conflicts,
        begins=begun,
    )


def phase_title(number: int, of: int, title: str, ended: str = "") -> str:
    """Say which phase begins, or how it ``ended``."""
    return f"Phase {number} of {of}{ended and f' {ended}'}: {title}"


def plan_title(phases: Sized) -> str:
    """Say how many phases a plan has."""
    return f"a plan of {counted(len(phases), 'phase')}"


def failure_moment(failure: Failure, at: float, member: str = "") -> Moment:
    """Return a failure, with its traceback or excerpt."""
    return Moment(
        kind="failure",
        title=f"{failure.code}: {failure.message}",
        output=failure.detail,
        at=at,
        timed=True,
        ok=False,
        node=failure.node,
        member=member,
    )


def _rollbacks(walked: Walked, member: str) -> Iterator[Moment]:
    """Yield the rollbacks, each after the commands that it ran (VE-10).

    Of a phase that had nothing to undo, or was found valid, its validation is all there is to tell.
    """
    for visit in walked.visits:
        if visit.node == "rollback":
            failed, undone = walked.values("failure"), True
            for plan in walked.values("plan"):
                phase = plan.phase(plan.current)
                runs = (phase.validation_run, phase.rollback_run) if phase else ()
                for run in filter(None, runs):
                    moment = _check(run, visit.at)
                    yield replace(moment, node="rollback", phase=phase.id, member=member)
                undone = bool(phase and (phase.rollback or phase.rollback_command))
                undone &= not (runs and runs[0] and runs[0].passed)
            if not (undone or failed):
                continue
            yield Moment(
                kind="rollback",
                title="rollback failed" if failed else "rollback",
                detail=failed[0].message if failed else "",
                at=visit.at,
                timed=True,
                seconds=visit.seconds,
                ok=None if visit.seconds is None else not failed,
                node="rollback",
                member=member,
            )


def result_moment(result: TaskResult, at: float) -> Moment:
    """Return the end of a task."""
    return Moment(
        kind="result",
        title=result.headline,
        detail=result.output,
        output=result.error_message or "",
        at=at,
        timed=at > 0,
        seconds=result.timings.get("total"),
        ok=result.completed,
        node="finish",
        task=result.task_id,
        note="; ".join(result.notes),
    )


def savepoint_moment(savepoint: Savepoint) -> Moment:
    """Return a state of the files that can be gone back to."""
    undone = f"; what was rolled back is kept as {savepoint.undo}" if savepoint.undo else ""
    return Moment(
        kind="savepoint",
        title=f"savepoint {savepoint.id}",
        at=savepoint.at,
        timed=True,
        ok=None if savepoint.snapshot else False,
        node={"task": "intake", "phase": "begin", "done": "settle"}[savepoint.when],
        task=savepoint.task_id,
        phase=savepoint.phase_id or "",
        note=(savepoint.note or ("" if savepoint.snapshot else "no snapshot")) + undone,
    )


def check_moments(verification: Verification, at: float) -> Sequence[Moment]:
    """Return the commands of one verification, and the test files that were changed (VE-08).

    What had nothing to run is told in one line.
    """
    if not verification.checks:
        note = verification.note or "nothing to check"
        return [Moment(kind="check", title=note, at=at, timed=True, node="verify")]
    told = f"tests changed: {join_paths(verification.changed_tests)}"
    changed = Moment(kind="check", title=told, at=at, timed=at > 0, node="verify")
    checks = [_check(check, at) for check in verification.checks]
    return [*checks, changed] if verification.changed_tests else checks


def _check(check: Check, at: float) -> Moment:
    note = check.note if check.by_judge else check_note(asdict(check))
    return Moment(
        kind="check",
        title=title_of(check),
        output=check.output,
        at=at,
        timed=at > 0,
        seconds=check.seconds,
        ok={"passed": True, "failed": False, "none": None}[check.outcome],
        node="verify",
        note=note,
    )


def check_note(ran: Mapping[str, Any]) -> str:
    """Say how a command ended, why that is taken as it is, and what it was confined by.

    ``ran`` has the fields of a ``Check``, as the event ``command_run`` has them.
    """
    killed = f"killed: too much of {ran['stopped_by']}" if ran["stopped_by"] else ""
    ended = killed or ("timed out" if ran["timed_out"] else f"exit {ran['exit_code']}")
    parts = (ended, "" if killed else ran["note"], f"sandbox {ran['sandbox']}")
    return "; ".join(part for part in parts if part)
