"""What the calls of the last answer came to, read from the history that the next request shows."""

from collections.abc import Iterator
from typing import NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from daruma.state.channels import State
from daruma.state.digest import digest
from daruma.state.noise import without_noise, without_numbers
from daruma.state.reference import without_reference
from daruma.state.tool_task import with_status

FAILED = "!"
MAX_BLOCKERS = 3
_BLOCKER = 200


class Observed(NamedTuple):
    """``saw`` and ``blockers`` of a :class:`~daruma.state.step.Step`."""

    saw: str = ""
    blockers: tuple[str, ...] = ()


def observed(state: State) -> Observed:
    """Read the results of the task's last answer, in the order of its calls.

    Results count as equal without what is noise, errors without numbers as well. What a person
    denied is an error like any other to the model, but no failure that could be the same again:
    denials of different calls are different answers.
    """
    results = list(_results(state))
    if not results:
        return Observed()
    errors = [result for result in results if result.status == "error"]
    denied = {call.result_id for call in with_status(state.calls, "rejected")}
    failed = len(errors) == len(results) and not any(r.id in denied for r in results)
    short = dict.fromkeys(" ".join(error.text.split())[:_BLOCKER] for error in errors)
    return Observed(
        saw=(FAILED if failed else "") + digest([_compared(result) for result in results]),
        blockers=tuple(short)[:MAX_BLOCKERS],
    )


def _compared(result: ToolMessage) -> tuple[str, str]:
    bare = without_numbers if result.status == "error" else without_noise
    said = result.content if isinstance(result.content, str) else result.text
    return result.status, bare(without_reference(said))


def _results(state: State) -> Iterator[ToolMessage]:
    """Yield the results that follow the task's last answer; none where it made no calls."""
    after: dict[str, ToolMessage] = {}
    for message in reversed(state.messages):
        if isinstance(message, ToolMessage):
            after[str(message.id)] = message
        elif isinstance(message, AIMessage):
            if str(message.id).startswith(f"{state.task_id}:answer:"):
                calls = (*message.tool_calls, *message.invalid_tool_calls)
                ids = (f"{message.id}:{call['id']}" for call in calls)
                yield from (after[id_] for id_ in ids if id_ in after)
            return
