"""The alarm: a model is about to go on in a way that has led nowhere (RE-01 to RE-03)."""

from collections.abc import Sequence

from daruma.state import budget
from daruma.state.asked import tools_in
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.gathered import NOTHING, Gathered, gathered, holds_any
from daruma.state.growing import growing
from daruma.state.loops import repeating, threshold_of
from daruma.state.observed import FAILED
from daruma.state.rounds import attempt, rounds
from daruma.state.step import Step
from daruma.state.stuckness import without_progress


def alarm(state: State, asked: Step) -> Failure | None:
    """Return the failure that it would be to run the calls of ``asked``, the think step at hand.

    It follows from the record of steps alone, so that a resumed or forked thread is judged alike.
    An answer without calls is never a loop.
    """
    if not asked.signature or state.task is None or _goes_on(state, asked):
        return None
    steps = list(budget.in_scope(state))
    loop = repeating(steps, asked, threshold=threshold_of(state.task.mode))
    if loop:
        return _failure(str(loop), asked.signature)
    if said := without_progress(steps, asked):
        why = "; ".join(asked.blockers) or "what was done had been done before"
        return _failure(f"{said}: {why}", rounds(attempt(steps), asked)[-1].calls)
    return None


def _goes_on(state: State, asked: Step) -> bool:
    """Whether there is plainly no alarm, without a look at all the rounds.

    A loop goes on with calls that were made before. Who is stuck does so too, or has seen nothing
    but failures; slow is who has something in the way.
    """
    made = growing(state.steps).known(_made, NOTHING)
    if holds_any(made, [asked.signature]) or asked.blockers or asked.saw.startswith(FAILED):
        return False
    last = next((step for step in budget.latest_in_scope(state) if step.kind == "think"), None)
    return last is None or last.ok


def _made(known: Gathered[str], steps: Sequence[Step]) -> Gathered[str]:
    return gathered(known, [step.signature for step in steps])


def _failure(message: str, about: str) -> Failure:
    tool = next(iter(tools_in(about)), "")
    return Failure(code="loop_detected", node="main", message=message, tool=tool)
