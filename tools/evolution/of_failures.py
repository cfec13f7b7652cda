"""Setbacks that are failures of the machine: those a task or a phase ended with. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from daruma.state.channels import State
from daruma.state.ending import work_failure
from daruma.state.experience import Setback, SetbackKind
from daruma.state.failure import Failure
from daruma.state.plan import Phase
from daruma.state.status import Status
from daruma.state.step import Step
from daruma.tools.evolution.failing_lines import checks_in, signed, telling_line
from daruma.tools.evolution.kept_text import kept_line

PASSING: Final = ("storage_unavailable", "sandbox_violation", "approval_denied")
"""Codes of what passes, or says nothing of the work; why a person denied is a setback of its own.
"""
NOT_RUN: Final = "Not run"
"""How the result of a call begins that was not run: it says nothing of the tool."""
_FULL: Final = ("No space left on device", "Disk quota exceeded", "DiskFull")


def actor_of(state: State, phase: Phase | None) -> str:
    """Return who works on a phase: in a team its expert, else main."""
    shared = state.task is not None and state.task.mode == "team_collab"
    return (phase.expert if phase and shared else None) or "main"


def endings(state: State, status: Status) -> Iterator[Setback]:
    """Yield what the phases of a task, or the task itself, failed by."""
    phases = state.plan.phases if state.plan else ()
    for phase in phases:
        if phase.failure:
            yield from _of(phase.failure, actor_of(state, phase), _steps(state, phase.id))
    if status in ("completed", "cancelled", "parked"):
        return
    found = work_failure(state, status) if state.plan is None else state.origin or state.failure
    if found:
        current = state.plan.phase(state.plan.current) if state.plan else None
        yield from _of(found, actor_of(state, current), _steps(state, None))


def passing(failure: Failure) -> bool:
    """Whether a failure says nothing of how the work was done."""
    full = any(each in f"{failure.original_error} {failure.message}" for each in _FULL)
    return failure.unanswered or failure.code in PASSING or full or failure.node == "intake"


def kind_of(code: str) -> SetbackKind:
    """Return the kind of setback that a failure of a code is."""
    return "loop" if code == "loop_detected" else "failure"


def _of(failure: Failure, actor: str, steps: Sequence[Step]) -> Iterator[Setback]:
    """Yield one for each red check, or one for the failure."""
    checks = list(checks_in(failure.detail)) if failure.code == "verification_failed" else []
    for check in checks:
        yield Setback(
            kind="check", actor=actor, signature=check.signature, text=check.text, ended=True
        )
    if not checks:
        said = in_the_way(failure.code, steps)
        yield Setback(
            kind=kind_of(failure.code),
            actor="plan" if failure.node in ("plan", "spec_review") else actor,
            signature=signed(failure.signature, *said),
            text=kept_line(
                ": ".join((f"{failure.code} in {failure.node}", failure.message, *said))
            ),
            tool=failure.tool,
            ended=True,
            passing=passing(failure),
        )


def in_the_way(code: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the error that stood in the way when the steps ran out, or led no further."""
    if code not in ("max_steps_exceeded", "loop_detected"):
        return ()
    told = (text for step in reversed(steps) for text in step.blockers)
    errors = [text for text in told if not text.startswith(NOT_RUN)]
    return (telling_line(errors[0]),) if errors else ()


def _steps(state: State, phase_id: str | None) -> list[Step]:
    of_task = [step for step in state.steps if step.task_id == state.task_id]
    return [step for step in of_task if phase_id is None or step.phase_id == phase_id]
