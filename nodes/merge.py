"""Bring together what members and helpers did: into the plan, the record, and the workspace."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from langchain_core.messages import AIMessage

from daruma.state import plan as phases
from daruma.state.calls import ToolTask, calls_to_run, set_status
from daruma.state.channels import State, Update
from daruma.state.errors import CutOff, DarumaError
from daruma.state.events import (
    MergeCompleted,
    PhaseCompleted,
    ToolCompleted,
    VerificationCompleted,
    VerificationStarted,
    phase_failed,
    place_in,
)
from daruma.state.failure import Failure
from daruma.state.messages import Messages
from daruma.state.outcome import join_paths
from daruma.state.plan import Phase, Plan, Report, with_conflicts, with_red_checks
from daruma.state.savepoint import Savepoint
from daruma.state.spending import spending
from daruma.state.steps import Step
from daruma.state.verification import Verification, excerpt
from daruma.tools.calls import tool_result
from daruma.tools.context import Context, begin_step
from daruma.tools.errors import ToolError
from daruma.tools.judge import NotJudged, with_judgement
from daruma.tools.rollback import write_savepoint
from daruma.tools.team import (
    JoinOutcome,
    check_settled,
    clear_away,
    describe_report,
    join_work,
    patch_of,
)
from daruma.tools.threads import in_thread
from daruma.tools.verification import run_all_checks, verification_completed


@dataclass(frozen=True)
class Round:
    """What members did at the same time: the plan after it, whose work met, what is left to say."""

    plan: Plan
    met: tuple[str, ...] = ()
    savepoints: tuple[Savepoint, ...] = ()
    verification: Verification | None = None
    failure: Failure | None = None


async def merge(state: State, context: Context) -> Update:
    """Close each phase as its member did; merge the work of those that completed theirs.

    Work in conflict stays out, and a phase that settles it comes into the plan. Where work of
    several met without a conflict, the checks are run on the whole. When all is done, a judge is
    asked about the whole where the task has a rubric (VE-11). Calls that helpers carried out get
    their results instead (PL-08).
    """
    if calls := calls_to_run(state.calls, delegated=True):
        return await _answer_calls(calls, state, context)
    if state.plan is None:
        raise LookupError("there is no plan to merge work into")
    order = [phase.id for phase in state.plan.phases]
    reports = sorted(state.reports, key=lambda report: order.index(report.phase.id))
    round_ = Round(state.plan)
    for report in reports:
        round_ = await _join_report(round_, report, state, context)
    steps = [step for report in reports for step in report.steps]
    all_done = all(phase.status == "completed" for phase in round_.plan.phases)
    rubric = state.task.rubric if state.task and all_done else ()  # the whole is judged then
    if (len(round_.met) > 1 or rubric) and state.task and state.task.verify:
        record = begin_step(state, "verify", context)
        round_ = await _check_whole(round_, state, context, rubric, steps)
        passed = round_.verification is not None and round_.verification.passed
        judged = round_.verification if rubric else None
        steps += record(ok=passed and round_.failure is None, verification=judged)
    done = [r.phase for r in reports if r.phase.status == "completed" and r.phase.answer]
    said = "\n\n".join(f"{phase.title}: {phase.answer}" for phase in done)
    names = "+".join(report.phase.id for report in reports)
    return {
        "plan": round_.plan,
        "reports": (),
        "steps": steps,
        "savepoints": list(round_.savepoints),
        "messages": [AIMessage(said, id=f"{state.plan.id}:merge:{names}")] if said else [],
        "verification": round_.verification,
        "failure": round_.failure,
        "origin": None,
    }


async def _join_report(round_: Round, report: Report, state: State, context: Context) -> Round:
    """Merge one member's work, and close its phase."""
    phase = report.phase
    failure, joined = phase.failure, JoinOutcome()
    if phase.status == "completed":
        try:
            joined = await _merge_work(report, state, context)
        except (ToolError, DarumaError) as error:
            failure = Failure(code="workspace_conflict", node="merge", message=str(error))
    if joined.conflicts and phase.settles:
        message = f"what was settled conflicts with other work: {', '.join(joined.conflicts)}"
        failure = Failure(code="workspace_conflict", node="merge", message=message)
    plan = _close_phase(round_.plan, phase, failure, context)
    if failure is None and joined.conflicts and report.drawn_from and report.snapshot:
        unmerged = (report.drawn_from, report.snapshot)
        plan = with_conflicts(plan, phase.id, joined.conflicts, unmerged)
    left = await clear_away(report, state.task, plan.id, context) if failure is None else ""
    written = await write_savepoint(
        state.task,
        "done",
        context,
        phase_id=phase.id,
        by="others",  # the member worked elsewhere, and what was merged is on record
        note="; ".join((*report.notes, *([f"phase {phase.id}: {left}"] if left else ()))),
    )
    return Round(
        plan=plan,
        met=(*round_.met, phase.id) if joined.paths else round_.met,
        savepoints=(*round_.savepoints, *written.savepoints),
        verification=phase.verification if failure is None else round_.verification,
    )


async def _answer_calls(calls: Sequence[ToolTask], state: State, context: Context) -> Update:
    """Answer what helpers carried out, each call with what came of it, in the order of the calls.

    In that order their work is merged, all of a helper's or none: a conflict is an outcome that the
    caller is told, with what was kept out. What they spent is the caller's, on record as theirs.
    """
    reports = {report.phase.id: report for report in state.reports}
    current = state.plan.current if state.plan else None
    ended, steps, told = dict[str, ToolTask](), list[Step](), list[ToolCompleted]()
    results: Messages = []
    for call in calls:
        report = reports[call.id]
        text, patch, ok = await _settle_help(report, call, state, context)
        ended[call.id] = set_status(call, "done" if ok else "failed")
        results.append(tool_result(call, text, ok=ok, reference=report.reference or patch))
        told.append(
            ToolCompleted(
                call_id=call.id,
                tool=call.name,
                ok=ok,
                seconds=spending(report.steps).seconds,
                output=text[:2000],
            )
        )
        steps += [replace(each, phase_id=current, helper=call.id) for each in report.steps]
    for event in told:
        context.emit(event)
    return {
        "calls": tuple(ended.get(call.id, call) for call in state.calls),
        "messages": results,
        "steps": steps,
        "reports": (),
    }


async def _settle_help(
    report: Report, call: ToolTask, state: State, context: Context
) -> tuple[str, str, bool]:
    """Merge a helper's work, if it is done; return its call's result, and whether all is well.

    Between them stands the id that work is kept under which did not come in.
    """
    phase, joined, why, patch = report.phase, JoinOutcome(), "", ""
    try:
        if phase.outcome == "completed":
            joined = await _merge_work(report, state, context)
            if joined.conflicts:
                why = f"what it changed conflicts with other work in {join_paths(joined.conflicts)}"
        else:
            why = (
                f"{phase.outcome}: {phase.failure.message if phase.failure else 'no reason given'}"
            )
        snapshots = context.snapshots(state.task.workspace if state.task else None)
        if why and snapshots and report.drawn_from and report.snapshot:
            kept = await in_thread(patch_of, snapshots, report.drawn_from, report.snapshot)
            patch = await context.outputs.keep(kept) if kept else ""
    except CutOff:  # nothing of it can be written down
        raise
    except (ToolError, DarumaError) as error:
        why = f"{why}; {error}" if why else str(error)
    left = await clear_away(report, state.task, call.message_id, context)
    joined = replace(joined, left=left)
    return describe_report(report, joined, why, patch), patch, not why


async def _merge_work(report: Report, state: State, context: Context) -> JoinOutcome:
    snapshots = context.snapshots(state.task.workspace if state.task else None)
    if snapshots is None or report.drawn_from is None or report.snapshot is None:
        return JoinOutcome()
    if report.phase.settles:
        await in_thread(check_settled, snapshots, report.drawn_from, report.snapshot)
    label = f"merging {report.phase.id}"
    joined = await in_thread(join_work, snapshots, report.drawn_from, report.snapshot, label)
    context.emit(
        MergeCompleted(phase_id=report.phase.id, paths=joined.paths, conflicts=joined.conflicts)
    )
    return joined


def _close_phase(plan: Plan, phase: Phase, failure: Failure | None, context: Context) -> Plan:
    outcome = phase.outcome or "failed"
    if failure and outcome == "completed":
        outcome = "failed"
    current = replace(plan, current=phase.id)
    closed = phases.close(current, phase.id, outcome, failure, phase.verification, phase.answer)
    if outcome == "completed":
        context.emit(PhaseCompleted(**place_in(closed)))
    else:
        context.emit(phase_failed(current, closed))
    return closed


async def _check_whole(
    round_: Round, state: State, context: Context, rubric: tuple[str, ...], steps: list[Step]
) -> Round:
    """Run the checks on the whole: what is right on each side may be wrong together."""
    plan = replace(round_.plan, current=None) if rubric else round_.plan
    whole = replace(state, plan=plan, steps=[*state.steps, *steps])
    check = partial(run_all_checks, whole, context)
    if len(round_.met) < 2:
        context.emit(VerificationStarted(commands=()))
        check = partial(_known, round_.verification or Verification())
    try:
        found = await with_judgement(whole, context, rubric, check, steps)
    except NotJudged as error:
        context.emit(verification_completed(error.found))
        failure = replace(error.failure, node="merge")
        return replace(round_, verification=error.found, failure=failure)
    except (ToolError, DarumaError, OSError) as error:
        context.emit(VerificationCompleted(passed=False, summary=str(error)))
        found = Verification(note=f"the checks of the whole could not be run: {error}")
        failed = Failure(code="verification_failed", node="merge", message=found.note)
        return replace(round_, verification=found, failure=failed if rubric else None)
    context.emit(verification_completed(found))
    if found.passed:
        return replace(round_, verification=found)
    limits = state.task.limits if state.task else None
    settled = sum(phase.settles is not None for phase in round_.plan.phases)
    if rubric and limits and settled >= limits.reflect:  # else it might be settled for ever
        message = f"verification failed: {found.summary} (the limit is budgets.reflect)"
        failure = Failure(code="verification_failed", node="merge", message=message)
        return replace(round_, verification=found, failure=failure)
    merged = round_.met or tuple(phase.id for phase in round_.plan.phases)
    plan = with_red_checks(round_.plan, merged, excerpt(found))
    return replace(round_, plan=plan, verification=found)


async def _known(found: Verification) -> Verification:
    return found
