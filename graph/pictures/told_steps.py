"""What the record of steps tells: model calls, checks, reflections, recoveries, compactions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

from daruma.graph.pictures.moment import Kind, Moment
from daruma.graph.pictures.told_messages import first_line
from daruma.state.recovery import Recovered
from daruma.state.spending import shown, usages_of
from daruma.state.steps import Audit, ContextCost, Grant, Step, StepKind
from daruma.state.task import Measure

_NODES: dict[StepKind, str] = {
    "plan": "plan",
    "think": "main",
    "repair": "repair",
    "verify": "verify",
    "reflect": "reflect",
    "recover": "recovery",
    "consult": "consult",
    "compress": "compress",
    "summarise": "compress",
    "intake": "intake",
    "tool": "tool",
    "pause": "pause",
}
_KINDS: dict[StepKind, Kind] = {
    "plan": "plan",
    "verify": "check",
    "reflect": "reflection",
    "recover": "recovery",
    "consult": "recovery",
    "compress": "context",
    "summarise": "context",
    "pause": "note",
}
_FAILED: dict[StepKind, str] = {
    "think": "no usable answer",
    "plan": "no usable plan",
    "reflect": "no reflection",
    "repair": "nothing repaired",
    "verify": "verification failed",
}
_DONE: dict[StepKind, str] = {
    "repair": "asked to repair calls",
    "intake": "asked whether the message goes on with what came before",
    "summarise": "history summarised",
    "verify": "verification passed",
    "plan": "a plan was made",
    "think": "answered",
}


def message_ids(steps: Sequence[Step]) -> Iterator[str]:
    """Yield for each step the id of the message that it left in the history, if it left one."""
    of_thread, of_task = Counter[str](), Counter[tuple[str, str]]()
    for step in steps:
        number, own = of_thread[step.kind], of_task[step.task_id, step.kind]
        numbered = {
            "think": f"answer:{number}",
            "plan": f"plan:{own + 1}",
            "verify": f"verification:{number}",
            "reflect": f"reflection:{number}",
            "recover": f"recovery:{own}",
        }
        ending = numbered.get(step.kind)
        yield f"{step.task_id}:{ending}" if ending else ""
        of_thread[step.kind] += 1
        of_task[step.task_id, step.kind] += 1


def step_moment(step: Step, said: str = "") -> Moment:
    """Return a step; ``said`` is the text of its message."""
    usage, moment, used = step.usage, _titled(step, said), [*usages_of(step)]
    prices = [each.usd for each in used if each.usd is not None]
    asker = " for ".join(each for each in (usage.agent, usage.task) if each) if usage else ""
    notes = (asker, moment.note, *audit_notes(step.audit))
    return replace(
        moment,
        at=step.at,
        timed=step.at > 0,
        seconds=step.seconds,
        node=_NODES[step.kind],
        task=step.task_id,
        phase=step.phase_id or "",
        model=usage.model if usage else "",
        tokens=sum(each.input_tokens + each.output_tokens for each in used),
        usd=sum(prices) if prices else None,
        note="; ".join(each for each in notes if each),
    )


def _titled(step: Step, said: str) -> Moment:
    kind = _KINDS.get(step.kind, "model")
    if step.recovery:
        return _recovery(step.recovery)
    if step.context_cost:
        return _compaction(step.context_cost)
    if step.grant:
        return _grant(step.grant)
    title = first_line(said) or (_DONE if step.ok else _FAILED).get(step.kind, step.kind)
    return Moment(kind=kind, title=title, detail=said, ok=step.ok)


def _recovery(done: Recovered) -> Moment:
    about = f"{done.code} of {done.tool}" if done.tool else done.code
    instead = f", {done.instead} instead" if done.instead else ""
    helped = {None: "", True: "it helped", False: "to no avail"}[done.worked]
    return Moment(
        kind="recovery",
        title=f"{about}: {done.strategy}, {done.carried}{instead}",
        detail=done.reasoning,
        ok=done.worked,
        note="; ".join(filter(None, (helped, f"by {done.by}, confidence {done.confidence:.2f}"))),
    )


def _compaction(cost: ContextCost) -> Moment:
    saved = ", ".join(f"{measure} {tokens:,}" for measure, tokens in cost.saved.items())
    return Moment(
        kind="context",
        title=f"request of {cost.node} brought from {cost.before:,} to {cost.after:,} tokens",
        detail=f"budget {cost.budget:,} tokens; saved: {saved or 'nothing'}",
        ok=cost.after <= cost.budget,
    )


def _grant(grant: Grant) -> Moment:
    if grant.stopped:
        return Moment(kind="note", title=f"the {grant.scope}'s budget is spent: the work stops")
    more = ", ".join(
        shown(measure, amount)
        for measure in get_args(Measure)
        if (amount := grant.more.of(measure)) is not None
    )
    return Moment(kind="note", title=f"the {grant.scope}'s budget was spent: {more} more granted")


def audit_notes(audit: Audit | None) -> Iterator[str]:
    """Yield what was changed of an answer, and what it took to get it, in words."""
    if audit is None:
        return
    for name in audit.names:
        yield f"{name.requested_name} is {name.name} ({name.how})"
    for repair in audit.arguments:
        yield f"arguments of {repair.name} repaired by {repair.repaired_by}"
    if audit.left_out:
        yield f"{audit.left_out.omitted} of {audit.left_out.total} calls left out"
    if failover := audit.failover:
        tries = ", ".join(f"{a.model}: {a.error}" for a in failover.attempts)
        end = f"{failover.used} answered" if failover.used else "no model answered"
        yield f"{end} after {tries}" if tries else end
