"""The plan of a task: its phases, how they move, how it is read, and who is given them."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from itertools import chain, count
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ValidationError

from daruma.state.errors import DarumaError
from daruma.state.failure import Failure
from daruma.state.lessons import Instructions, Lessons
from daruma.state.record import record
from daruma.state.steps import Step
from daruma.state.task import Status, Task
from daruma.state.verification import Check, Rubric, Verification

# --- The plan of a task: phases, what they depend on, and how far they came.

Command = Annotated[str | None, AfterValidator(lambda text: (text or "").strip() or None)]
"""A shell line; a blank one is none."""

PhaseStatus = Literal["pending", "running", "completed", "failed"]

MAX_PHASES = 50
"""Phases of one plan: each has a budget of its own, so more would be without a bound."""


class PlanRefused(DarumaError):
    """Raised when a plan can not be carried out; says which phases are the reason."""


class NoPlan(PlanRefused):
    """Raised for an answer that is no plan: a refusal, prose, JSON of another shape (MO-11)."""


@record
class Phase:
    """One part of a plan. ``status`` says how far it came, ``outcome`` how it ended.

    ``rollback`` "snapshot" puts the workspace back as it was before the phase, should it fail.
    ``conflicts`` are the files in which a team member's work met other work; ``settles`` names the
    phase whose conflicts this one is there to settle. ``answer`` is what the model said when it
    was done; ``rubric`` is what a judge holds its work against (VE-11). ``unmerged`` are the
    snapshots that its work began and ended with, if it conflicts.
    ``validation_run`` and ``rollback_run`` are what its commands came to when it had failed, the
    last time that they were run.
    """

    id: str
    title: str
    instructions: str = ""
    depends_on: tuple[str, ...] = ()
    expert: str | None = None
    validation_command: Command = None
    rollback_command: Command = None
    rollback: Literal["snapshot"] | None = None
    rubric: Rubric = ()
    conflicts: tuple[str, ...] = ()
    settles: str | None = None
    unmerged: tuple[str, str] | None = None
    answer: str = ""
    status: PhaseStatus = "pending"
    outcome: Status | None = None
    failure: Failure | None = None
    verification: Verification | None = None
    validation_run: Check | None = None
    rollback_run: Check | None = None
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the phase as JSON-able values; what is not set is left out."""
        found = self.verification
        optional = {
            "expert": self.expert,
            "validation_command": self.validation_command,
            "rollback_command": self.rollback_command,
            "rollback": self.rollback,
            "rubric": list(self.rubric) or None,
            "conflicts": list(self.conflicts) or None,
            "settles": self.settles,
            "answer": self.answer or None,
            "outcome": self.outcome,
            "error": self.failure.message if self.failure else None,
            "verification": found.summary if found else None,
            "checks": [each.to_dict() for each in found.checks] if found else None,
            "validation_run": self.validation_run.to_dict() if self.validation_run else None,
            "rollback_run": self.rollback_run.to_dict() if self.rollback_run else None,
        }
        return {
            "id": self.id,
            "title": self.title,
            "instructions": self.instructions,
            "depends_on": list(self.depends_on),
            "status": self.status,
            **{key: value for key, value in optional.items() if value is not None},
        }


@record
class Plan:
    """The *spec* of a task. ``current`` is the id of the phase that is running or ended last.

    ``first_failed`` is the one that failed first of its own, not with another. ``parked`` says that
    nobody confirmed it in time: it waits, without a deadline. ``before`` is the plan that this one
    took the place of, as it then stood; ``why`` says why another took the place of this one.
    """

    id: str
    goal: str
    phases: tuple[Phase, ...]
    current: str | None = None
    first_failed: str | None = None
    parked: bool = False
    before: "Plan | None" = None
    why: str = ""
    schema_version: int = 1

    def __post_init__(self) -> None:
        check_phases(self.phases)

    def phase(self, phase_id: str | None) -> Phase | None:
        return next((phase for phase in self.phases if phase.id == phase_id), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-able values."""
        phases = [phase.to_dict() for phase in self.phases]
        told: dict[str, Any] = {"id": self.id, "goal": self.goal, "phases": phases}
        if self.why:
            told["why"] = self.why
        if self.before:
            told["replaced"] = [plan.to_dict() for plan in replaced_plans(self)]
        return told


def check_phases(phases: Iterable[Phase]) -> None:
    """Refuse a plan without phases, with an id twice, an unknown dependency or a cycle (PL-01).

    Raises :class:`PlanRefused` with the ids in question.
    """
    phases = tuple(phases)
    if not phases:
        raise PlanRefused("the plan has no phases")
    if twice := sorted(id_ for id_, n in Counter(phase.id for phase in phases).items() if n > 1):
        raise PlanRefused(f"phase ids are used more than once: {', '.join(twice)}")
    proposed = sum(phase.settles is None for phase in phases)
    if proposed > MAX_PHASES:
        raise PlanRefused(f"the plan has {proposed} phases; {MAX_PHASES} is the most")
    for phase in phases:
        if unknown := sorted(set(phase.depends_on) - {other.id for other in phases}):
            raise PlanRefused(f"phase {phase.id!r} depends on unknown phases: {', '.join(unknown)}")
    try:
        TopologicalSorter({phase.id: phase.depends_on for phase in phases}).prepare()
    except CycleError as error:
        raise PlanRefused(f"phases depend on each other: {' -> '.join(error.args[1])}") from None


# --- How a plan moves: which phase is next, and what the end of one means for the others.


def ready(plan: Plan) -> tuple[Phase, ...]:
    """Return the pending phases whose dependencies are all completed, in the plan's order."""
    completed = {phase.id for phase in plan.phases if phase.status == "completed"}
    return tuple(
        phase
        for phase in plan.phases
        if phase.status == "pending" and completed.issuperset(phase.depends_on)
    )


def for_members(plan: Plan, most: int) -> tuple[Phase, ...]:
    """Return the ready phases that members take up now, at most so many.

    What settles a conflict is done alone, so that it meets no other work.
    """
    now = ready(plan)
    settling = [phase for phase in now if phase.settles]
    return tuple(settling[:1]) or now[:most]


def start(plan: Plan, phase_id: str) -> Plan:
    """Mark a phase as running; it is the current one from now on."""
    return replace(_change(plan, phase_id, status="running"), current=phase_id)


def message_id(plan_id: str, phase_id: str) -> str:
    """Return the id of the message that says what a phase is about."""
    return f"{plan_id}:begin:{phase_id}"


def close(
    plan: Plan,
    phase_id: str,
    outcome: Status,
    failure: Failure | None = None,
    verification: Verification | None = None,
    answer: str = "",
) -> Plan:
    """Mark a phase as ended. One that did not complete fails all that depend on it (PL-05)."""
    plan = _change(plan, phase_id, verification=verification, answer=answer)
    if outcome == "completed":
        return _change(plan, phase_id, status="completed", outcome=outcome)
    plan = _change(plan, phase_id, status="failed", outcome=outcome, failure=failure)
    unfit = failure is not None and failure.code == "script_mismatch"  # it has to be mended first
    plan = replace(plan, first_failed=phase_id if unfit else plan.first_failed or phase_id)
    for phase in dependents(plan, phase_id):
        if phase.status == "pending":
            plan = _change(plan, phase.id, status="failed", outcome="failed")
    return plan


def dependents(plan: Plan, phase_id: str) -> tuple[Phase, ...]:
    """Return the phases that depend on a phase, directly or through others, in the plan's order."""
    reached = {phase_id}
    grown = True
    while grown:
        more = {phase.id for phase in plan.phases if reached.intersection(phase.depends_on)}
        grown = not more <= reached
        reached |= more
    return tuple(phase for phase in plan.phases if phase.id in reached - {phase_id})


def reopen_failed(plan: Plan) -> Plan:
    """Return a plan whose failed phases are to be done again; what is completed stays so."""
    gone = dict.fromkeys(("outcome", "failure", "verification", "validation_run", "rollback_run"))
    for phase in plan.phases:
        if phase.status == "failed":
            plan = _change(plan, phase.id, status="pending", **gone)
    return replace(plan, current=None, first_failed=None)


def to_undo(phase: Phase) -> bool:
    """Whether an ended phase has to go through validation and rollback (RO-01, RO-02).

    One that never began has nothing to undo; one that is blocked, or that a person stopped, stays
    as it stands.
    """
    began = phase.failure is None or phase.failure.node != "begin"
    asks = phase.rollback_command or phase.rollback or phase.validation_command
    failed = phase.status == "failed" and phase.outcome not in ("blocked", "cancelled")
    return failed and began and bool(asks)


def with_runs(plan: Plan, phase_id: str, validation: Check | None, rollback: Check | None) -> Plan:
    """Put on record what the commands of a failed phase came to (VE-10)."""
    return _change(plan, phase_id, validation_run=validation, rollback_run=rollback)


def first_failed(plan: Plan) -> Phase | None:
    """Return the phase that failed first by itself, or by a script that did not fit the run."""
    return plan.phase(plan.first_failed)


def _change(plan: Plan, phase_id: str, **changes: Any) -> Plan:
    phases = tuple(
        replace(phase, **changes) if phase.id == phase_id else phase for phase in plan.phases
    )
    return replace(plan, phases=phases)


# --- Planning what is left anew, behind what is completed (PL-01b).


def replaced_plans(plan: Plan) -> tuple[Plan, ...]:
    """Return the plans that a plan took the place of, each as it then stood, the oldest first."""
    return (*replaced_plans(plan.before), replace(plan.before, before=None)) if plan.before else ()


def is_contradicted(plan: Plan) -> bool:
    """Whether what was found contradicts the plan, as the model said in one of its phases."""
    own = (phase.failure for phase in plan.phases if phase.failure)
    return any(failure.code == "plan_contradicted" for failure in own)


def replacement_reason(plan: Plan) -> str:
    """Say in one line why what is left of a plan is planned anew."""
    fallen = first_failed(plan)
    said = " ".join(fallen.failure.message.split()) if fallen and fallen.failure else ""
    return f"phase {fallen.id!r} failed: {said}"[:500] if fallen else ""


def kept_phases(plan: Plan) -> tuple[Phase, ...]:
    """Return what stays of a plan when the rest is planned anew: what is completed, and merged."""
    done = [phase for phase in plan.phases if phase.status == "completed"]
    settled = {phase.settles for phase in done}
    return tuple(phase for phase in done if not phase.conflicts or phase.id in settled)


def with_free_ids(phases: Iterable[Phase], before: Plan) -> tuple[Phase, ...]:
    """Return new phases with ids of their own: what others of that id have spent is not theirs.

    Those of the phases that stay can not be given once more: who gives them is refused.
    """
    phases, kept = tuple(phases), {phase.id for phase in kept_phases(before)}
    used = {phase.id for plan in (*replaced_plans(before), before) for phase in plan.phases} - kept
    taken, names = {*used, *kept, *(phase.id for phase in phases)}, dict[str, str]()
    for id_ in sorted(used.intersection(phase.id for phase in phases)):
        names[id_] = _free_id(taken, id_)
        taken.add(names[id_])
    return tuple(
        replace(
            p,
            id=names.get(p.id, p.id),
            depends_on=tuple(names.get(id_, id_) for id_ in p.depends_on),
        )
        for p in phases
    )


# --- Putting a phase into a plan that settles what members' work can not agree on (PL-06).

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
        id=_free_id({each.id for each in plan.phases}, f"{phase.id}-merge"),
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


def _free_id(taken: Collection[str], id_: str) -> str:
    names = chain([id_], (f"{id_}-{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


# --- Reading a plan out of what a model or a person gave.

_DECODER = json.JSONDecoder()

FORM = '{"phases": [{"id", "title", "instructions"}, ...]}'
"""The shape of a plan, as it is told to whoever gave something else."""

FIELDS = frozenset(
    {"id", "title", "instructions", "depends_on", "expert", "rubric"}
    | {"validation_command", "rollback_command", "rollback"}
)
"""What a phase is made of, as models and people write it."""

_WORD = re.compile(r"\w")
"""What a title needs: the "..." of the form that a model quotes says nothing."""

_MOST_TRIED = 100
"""Brackets that begin nothing readable; a text with more is no plan (SE-07)."""

_LONGEST = 20_000
"""Characters that are repaired: the library takes quadratic time for some texts."""

_SHOWN = frozenset(
    {"status", "outcome", "error", "verification", "conflicts", "settles", "answer"}
    | {"checks", "validation_run", "rollback_run"}
)
"""What a plan under review shows beside; an edit may give it back, and it changes nothing."""


def plan_from(
    content: Mapping[str, Any],
    *,
    plan_id: str,
    goal: str,
    experts: Sequence[str] = (),
    strict: bool = False,
    before: Plan | None = None,
) -> Plan:
    """Build a plan from ``{"goal"?, "phases": [{"id"?, "title", "instructions", ...}]}``.

    Models add keys of their own, which are left out; ``strict`` refuses them, for a person's typo.
    In a team each phase goes to one of its ``experts``: the first, where it names none.
    What is completed of the plan ``before`` stands before the phases, which are what is left.
    Raises :class:`PlanRefused` for a plan that can not be carried out, and its kind
    :class:`NoPlan` for what has another shape.
    """
    phases = content.get("phases")
    if not isinstance(phases, Sequence) or isinstance(phases, str):
        raise NoPlan(f"a plan has the form {FORM}")
    if not phases:
        raise NoPlan("the plan has no phases")
    if strict:
        _refuse_unknown(phases)
    own_goal = content.get("goal")
    earlier = (*replaced_plans(before), before) if before else ()
    first = 1 + len({phase.id for plan in earlier for phase in plan.phases})
    read = _given_out((_read_phase(n, phase) for n, phase in enumerate(phases, first)), experts)
    return Plan(
        id=plan_id,
        goal=own_goal if isinstance(own_goal, str) and own_goal.strip() else goal,
        phases=(*kept_phases(before), *with_free_ids(read, before)) if before else read,
        before=before and replace(before, current=None, why=replacement_reason(before)),
    )


def plan_in(
    text: str, *, plan_id: str, goal: str, experts: Sequence[str] = (), before: Plan | None = None
) -> Plan:
    """Find the plan in a model's answer: a JSON object, bare, fenced or between words (MO-11).

    A list of phases stands for such an object, unless it is a part of another one.
    Raises what :func:`plan_from` does, and :class:`NoPlan` for an answer without
    a plan in it.
    """
    content = _object_in(text)
    if content is not None:
        return plan_from(content, plan_id=plan_id, goal=goal, experts=experts, before=before)
    if not text.strip():
        raise NoPlan("the answer was empty")
    raise NoPlan(f"there is no JSON object of the form {FORM} in the answer")


def _object_in(text: str) -> Mapping[str, Any] | None:
    """Find the object with ``phases``, or a list of phases: as it stands first, repaired last."""
    read = 0  # a list within what was read so far, such as {"options": [...]}, is no list of phases
    failed = 0
    for start in (found.start() for found in re.finditer(r"[{[]", text)):
        if text[start] == "[" and start < read:
            continue
        try:
            content, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            failed += 1
            if failed > _MOST_TRIED:
                return None
            continue
        if (plan := _as_plan(content)) is not None:
            return plan
        read = max(read, end)
    start, end = text.find("{"), text.rfind("}")
    unclosed = text.count("{") > text.count("}") or text.count("[") > text.count("]")
    if '"phases"' not in text or not 0 <= start < end < start + _LONGEST or unclosed:
        return None  # what was cut off is not repaired into a shorter plan
    import json_repair  # rarely needed

    try:
        return _as_plan(json_repair.loads(text[start : end + 1]))
    except (ValueError, RecursionError):  # nested too deep
        return None


def _as_plan(content: object) -> Mapping[str, Any] | None:
    if isinstance(content, Mapping):
        return content if "phases" in content else None
    phases = content if isinstance(content, list) else []
    titled = phases and all(isinstance(each, Mapping) and "title" in each for each in phases)
    return {"phases": phases} if titled else None


def _refuse_unknown(phases: Sequence[Any]) -> None:
    for phase in phases:
        for key in phase if isinstance(phase, Mapping) else ():
            if key not in FIELDS | _SHOWN:
                close = get_close_matches(str(key), FIELDS, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise PlanRefused(f"a phase has no {key!r}{hint}")


def _read_phase(number: int, content: object) -> Phase:
    if isinstance(content, str):
        content = {"title": content}
    if not isinstance(content, Mapping):
        raise NoPlan(f"phase {number} is not an object")
    given = {key: value for key, value in content.items() if key in FIELDS and value is not None}
    # What a phase without a title says in unknown keys is not known.
    default = f"Phase {number}" if content and content.keys() <= FIELDS - {"title"} else ""
    title = given.get("title") or given.get("instructions") or default
    if not _WORD.search(str(title)):
        raise NoPlan(f"phase {number} does not say what to do")
    given |= {"id": str(given.get("id", f"p{number}"))}
    given |= {"title": str(title).strip().splitlines()[0][:120]}
    if "depends_on" in given:
        named = given["depends_on"]
        several = isinstance(named, Sequence) and not isinstance(named, str)
        given["depends_on"] = tuple(map(str, named if several else [named]))
    try:
        return Phase(**given)
    except ValidationError as error:
        where = ", ".join(str(problem["loc"][-1]) for problem in error.errors())
        raise NoPlan(f"phase {number} has a wrong value for: {where}") from None


def _given_out(phases: Iterable[Phase], experts: Sequence[str]) -> tuple[Phase, ...]:
    """Give each phase to the expert that it names, or to the first one if it names none."""
    if not experts:
        return tuple(phases)
    given = tuple(replace(phase, expert=phase.expert or experts[0]) for phase in phases)
    for phase in given:
        if phase.expert not in experts:
            raise PlanRefused(
                f"phase {phase.id!r} has an unknown expert {phase.expert!r}; there are: "
                f"{', '.join(experts)}"
            )
    return given


# --- What a team member is given, and what it brings back (PL-06).


@record
class Assignment:
    """One phase for one member. ``known`` says what the phases before it came to.

    ``snapshot`` is the state of the task's workspace that the member's worktree is made from,
    ``unmerged`` the work that it is to settle, if any: its first and its last snapshot.
    ``lessons`` holds the instructions that were learned for the member's expert, ``instructions``
    what the repository says.
    """

    task: Task
    phase: Phase
    plan_id: str
    number: int
    of: int
    known: str = ""
    snapshot: str | None = None
    unmerged: tuple[str, str] | None = None
    lessons: Lessons | None = None
    instructions: Instructions | None = None
    schema_version: int = 1


@record
class Report:
    """What became of a phase. ``phase`` is closed, ``steps`` are those that its member spent.

    ``snapshot`` is the state that the member left its worktree in, ``drawn_from`` the one that it
    was made from; None where there is no workspace. ``reference`` is the id that a helper's whole
    answer is kept under, if the phase has but its ends.
    """

    phase: Phase
    steps: tuple[Step, ...] = ()
    snapshot: str | None = None
    drawn_from: str | None = None
    notes: tuple[str, ...] = ()
    reference: str = ""
    schema_version: int = 1


def reduce_reports(
    reports: tuple[Report, ...], write: tuple[Report, ...] | Report
) -> tuple[Report, ...]:
    """Reduce the ``reports`` channel: one report joins the others, a tuple takes their place."""
    if not isinstance(write, Report):
        return tuple(write)
    others = (report for report in reports if report.phase.id != write.phase.id)
    return (*others, write)
