"""A trace: what a model asks for, turn by turn, and what comes of it; and who watches it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage
from tests.parts import a_state, a_task

from daruma.state.budget import record_step
from daruma.state.calls import ToolTask
from daruma.state.failure import Failure
from daruma.state.mode import Mode
from daruma.state.progress import alarm, observe_results, signature_of
from daruma.tools.calls import tool_result


class Call(NamedTuple):
    """A call and its result; ``ok`` is false for an error.

    ``unchanged`` marks a command that is known to have changed nothing.
    """

    tool: str
    args: dict[str, Any]
    result: str
    ok: bool = True
    unchanged: bool = False


Turn = Sequence[Call]
Trace = Sequence[Turn]


@dataclass
class Watched:
    """A task that turns are played to; nothing but its state is remembered between them."""

    mode: Mode = "react"

    def __post_init__(self) -> None:
        self.state = a_state(task=a_task(self.mode))
        self.numbers = count()

    def play(self, turn: Turn) -> Failure | None:
        """Ask for the calls of a turn: the alarm that it raises, or its results in the history."""
        message_id = f"t/1:answer:{next(self.numbers)}"
        tasks = [_task(call, f"c{n}", message_id) for n, call in enumerate(turn)]
        made = [{"name": t.name, "args": t.args, "id": t.id} for t in tasks]
        message = AIMessage("", id=message_id, tool_calls=made)
        (step,) = record_step(
            self.state,
            "think",
            at=0.0,
            signature=signature_of(message, tasks),
            **observe_results(self.state)._asdict(),
        )
        raised = alarm(self.state, step)
        told = [
            tool_result(
                task,
                "Not run." if raised else call.result,
                ok=call.ok and not raised,
                unchanged=call.unchanged,
            )
            for task, call in zip(tasks, turn, strict=True)
        ]
        messages: list[AnyMessage] = [*self.state.messages, message, *told]
        steps = [*self.state.steps, replace(step, ok=not raised)]
        self.state = replace(self.state, messages=messages, steps=steps)
        return raised


def runs_before_alarm(trace: Iterable[Turn], mode: Mode = "react") -> int | None:
    """Return how many turns of a trace were run before the alarm; None if there was none."""
    watched = Watched(mode)
    return next((n for n, turn in enumerate(trace) if watched.play(turn)), None)


def _task(call: Call, id_: str, message_id: str) -> ToolTask:
    return ToolTask(
        id=id_, message_id=message_id, name=call.tool, requested_name=call.tool, args=call.args
    )
