"""Messages of people to a task at work, and what its state becomes once one is told (FA-14)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state import budget
from daruma.state.messages import NOTHING, Gathered, extend_known, growing, holds_any
from daruma.state.spending import overrun
from daruma.state.steps import Overrun

if TYPE_CHECKING:  # readers of threads import no LangGraph with it (FA-13)
    from daruma.state.channels import State, Update

_ID: Final = re.compile(r"/\d+:steering:([0-9a-f]{32})")
"""How the id of a message ends: its task's number, and the id that it was given when sent."""

SENT_AT: Final = "sent_at"
"""Where a message of the history holds when it was sent, in Unix seconds."""
GOAL: Final = "goal"
"""Where it holds the goal that it gave its task."""


@dataclass(frozen=True, kw_only=True)
class SteeringMessage:
    """What a person says to a task at work; ``id`` is its own, ``at`` when it was sent (Unix time).

    With ``stop`` the task asks what to do before it goes on; ``goal`` takes the place of its goal.
    Both hold for the task ``task_id`` alone; empty where that had not begun.
    """

    id: str
    text: str
    at: float
    stop: bool = False
    goal: str = ""
    task_id: str = ""


class Steering(Protocol):
    """What people send to threads at work, until it is stored with their histories."""

    def waits(self, thread_id: str) -> bool:
        """Whether something may wait, as far as the run knows: nothing is asked."""

    async def read(self, thread_id: str) -> Sequence[SteeringMessage]:
        """Return what waits, in the order that it was sent in."""

    def forget(self, thread_id: str, ids: Collection[str]) -> None:
        """Take note that the thread's history holds what was sent with these ids."""


class NoSteering:
    """Stands for it where nobody can send anything."""

    def waits(self, thread_id: str) -> bool:  # noqa: ARG002 - a Steering
        return False

    async def read(self, thread_id: str) -> Sequence[SteeringMessage]:  # noqa: ARG002 - a Steering
        return ()

    def forget(self, thread_id: str, ids: Collection[str]) -> None:
        """Have nothing to forget."""


def steering_id(message: Any) -> str:
    """Return the id that a message of the history was sent with; empty for any other message."""
    if not isinstance(message, HumanMessage):
        return ""
    at = str(message.id).rfind("/")
    found = _ID.fullmatch(str(message.id), at) if at >= 0 else None
    return found[1] if found else ""


def was_told(messages: Sequence[AnyMessage], id_: str) -> bool:
    """Whether a history holds what was sent with an id."""
    return holds_any(growing(messages).known(_ids, NOTHING), [id_])


def _ids(known: Gathered[str], messages: Sequence[AnyMessage]) -> Gathered[str]:
    found = [id_ for each in messages if (id_ := steering_id(each))]
    return extend_known(known, found) if found else known


def told_since(earlier: Sequence[AnyMessage], state: State) -> list[SteeringMessage]:
    """Return what a task was told since its history was ``earlier``, to be told once more.

    It stops nothing again: who said so was asked, or is asked anew.
    """
    known = {each.id for each in earlier}
    own = (m for m in state.messages if steering_id(m) and m.id not in known)
    return [_as_sent(each, state.task_id) for each in own]


def _as_sent(told: AnyMessage, task_id: str) -> SteeringMessage:
    kept = told.additional_kwargs
    goal, at = str(kept.get(GOAL, "")), float(kept.get(SENT_AT, 0.0))
    text = told.text.removesuffix(f"\n\n{_describe_goal(goal)}")
    return SteeringMessage(id=steering_id(told), text=text, at=at, goal=goal, task_id=task_id)


def deliver(state: State, sent: Sequence[SteeringMessage]) -> Update:
    """Return the update that tells a task what was sent, in its order.

    What was sent to the task before this one is told as words: it stops nothing, changes no goal.
    """
    own = [each for each in sent if each.task_id in ("", state.task_id)]
    update: Update = {"messages": [_message(state, each, late=each not in own) for each in sent]}
    goal = next((each.goal for each in reversed(own) if each.goal), "")
    if goal and state.task:
        update["task"] = replace(state.task, goal=goal)
        if state.plan:
            update["plan"] = replace(state.plan, goal=goal)
    if any(each.stop for each in own):
        update["overrun"] = Overrun(node="main", scope="task", measure="stop", spent=0, limit=0)
    return update


def _message(state: State, sent: SteeringMessage, *, late: bool) -> HumanMessage:
    head = "Said to the task before this one, when it had asked for the last time:" if late else ""
    goal = "" if late else sent.goal
    parts = (head, sent.text, _describe_goal(sent.goal) if sent.goal else "")
    text = "\n\n".join(each for each in parts if each)
    own = {SENT_AT: sent.at} | ({GOAL: goal} if goal else {})
    return HumanMessage(text, id=f"{state.task_id}:steering:{sent.id}", additional_kwargs=own)


def _describe_goal(goal: str) -> str:
    return f"The goal of the task is now: {goal}"


def can_be_steered(state: State) -> bool:
    """Whether the task can still ask the model: nothing has failed, and the budget has room."""
    return state.failure is None and budget.can_think(state) and overrun(state, "main") is None


def goes_on(state: State) -> bool:
    """Whether the task was told something in the place of its end, so that the model is asked."""
    told = bool(state.messages) and bool(steering_id(state.messages[-1]))
    return told and state.verification is None and can_be_steered(state)
