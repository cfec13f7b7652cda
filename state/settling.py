"""Putting a phase into a plan that settles what members' work can not agree on (PL-06)."""

from collections.abc import Collection
from dataclasses import replace

from daruma.state.plan import Phase, Plan

MOST_CONFLICTS = 100
"""Conflicts of one phase that the plan names: it is stored whole with each step."""


def with_conflicts(
    plan: Plan, phase_id: str, conflicts: tuple[str, ...], unmerged: tuple[str, str]
) -> Plan:
    """Note that a phase's work is not merged, and put in a phase that settles it.

    ``unmerged`` are the snapshots that the work began and ended with. All that depends on the phase
    waits for the settling one too. Of many conflicts the first ``MOST_CONFLICTS`` are named.
    """
    more = len(conflicts) - MOST_CONFLICTS
    conflicts = conflicts[:MOST_CONFLICTS] + ((f"and {more} more",) if more > 0 else ())
    done = _phase(plan, phase_id)
    noted = replace(done, conflicts=conflicts, unmerged=unmerged)
    instructions = (
        f"The work of phase {phase_id!r} ({done.title}) could not be merged: it conflicts with "
        f"other work in {', '.join(conflicts)}. The workspace here holds that work; texts in "
        "conflict have both versions between <<<<<<< and >>>>>>>, of other files the phase's own "
        "version lies beside it. Settle each conflict so that both aims are met, leave no marker "
        "and no second version behind, and see that the checks pass."
    )
    return _settled_by(plan, noted, f"Settle what {phase_id} conflicts with", instructions)


def with_red_checks(plan: Plan, merged: Collection[str], excerpt: str) -> Plan:
    """Put in a phase for work that was merged without a conflict, and whose checks fail together.

    ``merged`` are the phases whose work met, in the plan's order.
    """
    *others, last = merged
    instructions = (
        f"The work of phases {', '.join((*others, last))} was merged without a conflict, but the "
        f"checks of the whole fail:\n\n{excerpt}\n\nMake them pass without undoing either's aim."
    )
    title = f"Make {' and '.join((*others, last))} work together"
    return _settled_by(plan, _phase(plan, last), title, instructions, also=others)


def _settled_by(
    plan: Plan, phase: Phase, title: str, instructions: str, also: Collection[str] = ()
) -> Plan:
    settling = Phase(
        id=_free(plan, f"{phase.id}-merge"),
        title=title[:120],
        instructions=instructions,
        depends_on=(phase.id,),
        expert=phase.expert,
        settles=phase.id,
    )
    waits = {phase.id, *also}
    phases = [
        replace(each, depends_on=(*each.depends_on, settling.id))
        if waits.intersection(each.depends_on) and each.status == "pending"
        else each
        for each in (phase if each.id == phase.id else each for each in plan.phases)
    ]
    return replace(plan, phases=(*phases, settling))


def _phase(plan: Plan, phase_id: str) -> Phase:
    phase = plan.phase(phase_id)
    if phase is None:
        raise LookupError(f"the plan has no phase {phase_id!r}")
    return phase


def _free(plan: Plan, id_: str) -> str:
    taken = {phase.id for phase in plan.phases}
    number, free = 1, id_
    while free in taken:
        number += 1
        free = f"{id_}-{number}"
    return free
