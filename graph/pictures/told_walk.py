"""What only the walk tells: phases begun and ended, checks, failures, rollbacks, results."""

from collections.abc import Iterator, Sequence

from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.superstep import Walk, Walked
from daruma.state.failure import Failure
from daruma.state.plan import Phase, Plan
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint
from daruma.state.verification import Check, Verification


def walk_moments(walk: Walk, member: str) -> Iterator[Moment]:
    """Yield what happened at each superstep, beside what messages and steps tell."""
    standing: dict[str, str] = {}
    for walked in walk.walked:
        for plan in () if member else walked.values("plan"):
            yield from _phases(plan, standing, walked)
        for failure in walked.values("failure"):
            yield failure_moment(failure, _until(walked), member)
        yield from _rollbacks(walked, member)
        yield from _results(walked, member)


def _results(walked: Walked, member: str) -> Iterator[Moment]:
    """Yield the results that a task ended with; a member's end is told with its phase."""
    results = () if member else walked.values("result")
    yield from (result_moment(each, _until(walked)) for each in results)


def _until(walked: Walked) -> float:
    return walked.until or walked.superstep.at


def _phases(plan: Plan, standing: dict[str, str], walked: Walked) -> Iterator[Moment]:
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
    return Moment(
        kind="phase",
        title=f"Phase {number} of {len(plan.phases)}{'' if begun else f' {ended}'}: {phase.title}",
        detail=phase.instructions if begun else phase.answer,
        output="" if begun or phase.failure is None else phase.failure.message,
        at=at,
        timed=at > 0,
        ok=None if begun else phase.status == "completed",
        node="begin" if begun else "settle",
        task=plan.id.rpartition("/")[0],
        phase=phase.id,
        note=f"expert {phase.expert}" if phase.expert else "",
    )


def plan_title(plan: Plan) -> str:
    """Say how many phases a plan has, and which."""
    count = len(plan.phases)
    titles = ", ".join(phase.title for phase in plan.phases)
    return f"a plan of {count} phase{'' if count == 1 else 's'}: {titles}"


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
    for visit in walked.visits:
        if visit.node == "rollback":
            failed = walked.values("failure")
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
        title=result.status,
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
    """Return the commands of one verification; what had nothing to run is told in one line."""
    if not verification.checks:
        return [
            Moment(
                kind="check",
                title=verification.note or "nothing to check",
                at=at,
                timed=True,
                ok=True,
                node="verify",
            )
        ]
    return [_check(check, at) for check in verification.checks]


def _check(check: Check, at: float) -> Moment:
    ended = "timed out" if check.timed_out else f"exit {check.exit_code}"
    return Moment(
        kind="check",
        title=f"$ {check.command}",
        detail=check.note,
        output=check.output,
        at=at,
        timed=at > 0,
        seconds=check.seconds,
        ok=check.passed,
        node="verify",
        note="; ".join(
            part for part in (ended, check.stopped_by, f"sandbox {check.sandbox}") if part
        ),
    )
