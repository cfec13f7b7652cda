"""The alarm: a model is about to go on in a way that has led nowhere (RE-01 to RE-03)."""

from daruma.state import budget
from daruma.state.asked import tools_in
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.loops import repeating, threshold_of
from daruma.state.rounds import attempt, rounds
from daruma.state.step import Step
from daruma.state.stuckness import without_progress


def alarm(state: State, asked: Step) -> Failure | None:
    """Return the failure that it would be to run the calls of ``asked``, the think step at hand.

    It follows from the record of steps alone, so that a resumed or forked thread is judged alike.
    An answer without calls is never a loop.
    """
    if not asked.signature or state.task is None:
        return None
    steps = list(budget.in_scope(state))
    loop = repeating(steps, asked, threshold=threshold_of(state.task.mode))
    if loop:
        return _failure(str(loop), asked.signature)
    if said := without_progress(steps, asked):
        why = "; ".join(asked.blockers) or "what was done had been done before"
        return _failure(f"{said}: {why}", rounds(attempt(steps), asked)[-1].calls)
    return None


def _failure(message: str, about: str) -> Failure:
    tool = next(iter(tools_in(about)), "")
    return Failure(code="loop_detected", node="main", message=message, tool=tool)
