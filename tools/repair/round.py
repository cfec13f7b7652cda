"""One model call for repair: which calls it is about, what it is asked, what becomes of them. Pure.

Names come first: without its tool nobody can say what is wrong with a call's arguments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from langchain_core.messages import AIMessage

from daruma.state import budget
from daruma.state.audit import RepairRound
from daruma.state.channels import State
from daruma.state.tool_task import ToolTask, with_status
from daruma.tools.answer_calls import Call, calls_of
from daruma.tools.offer import Offer
from daruma.tools.repair.outcome import Problem
from daruma.tools.repair.payload import keeps_payload
from daruma.tools.repair.replies import argument_repairs, name_repairs
from daruma.tools.repair.requests import (
    MOST_BATCH_BYTES,
    ArgumentCandidate,
    NameCandidate,
    RepairRequest,
    argument_request,
    name_request,
)
from daruma.tools.resolution import NAME_PROBLEMS, failed, tool_task, with_arguments

Kind = Literal["names", "arguments"]


@dataclass(frozen=True)
class Round:
    """The calls of one answer that are broken in one way; ``attempt`` counts from 1.

    ``window`` is the most tokens of a request, None for no limit.
    """

    kind: Kind
    message_id: str
    attempt: int
    broken: tuple[ToolTask, ...]
    sent: Mapping[str, Call]
    offer: Offer
    window: int | None = None

    @property
    def signature(self) -> str:
        """What counts as a try of the same: an answer has its own attempts of either kind."""
        return f"{self.message_id}:{self.kind}"

    @cached_property
    def request(self) -> RepairRequest:
        """What the model is asked, and about which calls; there may be none that can be asked."""
        return self._names() if self.kind == "names" else self._arguments()

    def mended(self, said: str) -> dict[str, ToolTask]:
        """Return the calls that an answer mends, checked like any others, by their ids."""
        broken = {task.id: task for task in self.broken}
        if self.kind == "names":
            names = name_repairs(said, self.request.asked_ids, self.offer.names)
            return {id_: self._renamed(id_, name) for id_, name in names.items()}
        given = argument_repairs(said, self.request.asked_ids)
        tasks = {id_: self._refilled(broken[id_], args) for id_, args in given.items()}
        return {id_: task for id_, task in tasks.items() if task is not None}

    def told(self, mended: Mapping[str, ToolTask]) -> RepairRound:
        """Return what goes on record."""
        ids = tuple(task.id for task in self.broken)
        return RepairRound(
            kind=self.kind,
            attempt=self.attempt,
            candidates=ids,
            repaired=tuple(id_ for id_ in ids if id_ in mended),
            failed=tuple(id_ for id_ in ids if id_ not in mended),
            cut=self.request.cut,
        )

    def closed(self, task: ToolTask) -> ToolTask:
        """Return a call as it leaves this round: still broken, it fails after the last attempt."""
        settings = self.offer.settings
        names, arguments = settings.name_repair_attempts, settings.call_repair_attempts
        left = self.attempt < (names if self.kind == "names" else arguments)
        again = task.status != "repairable" or kind_of(task) != self.kind or left
        return task if again else failed(task, task.reason, task.problem)

    def _renamed(self, id_: str, name: str) -> ToolTask:
        return tool_task(self.sent[id_], self.message_id, self.offer, name=name)

    def _refilled(self, task: ToolTask, args: Mapping[str, Any]) -> ToolTask | None:
        """Return a task with its repaired arguments; None if they do not fit, or were made up."""
        tool = self.offer.find(task.name)
        if tool is None:
            return None
        if not keeps_payload(self.sent[task.id].raw, args, self.offer.cautious(tool)):
            return None
        refilled = with_arguments(task, args, self.offer, by="model")
        return None if refilled.problem else refilled

    def _names(self) -> RepairRequest:
        settings = self.offer.settings
        return name_request(
            [NameCandidate(t.id, t.requested_name, self.sent[t.id].raw) for t in self.broken],
            self.offer.names,
            max_candidates=self._at_most(settings.name_repair_max_candidates, 800),
            max_visible=self._at_most(settings.name_repair_max_visible_names, 90),
        )

    def _arguments(self) -> RepairRequest:
        settings = self.offer.settings
        tools = {tool.name: tool for tool in self.offer.tools}
        return argument_request(
            [
                ArgumentCandidate(t.id, tools[t.name], self.sent[t.id].raw, _problem(t), t.reason)
                for t in self.broken
                if t.name in tools  # a thread may be resumed with other ones
            ],
            max_candidates=settings.call_repair_max_candidates,
            max_schema_bytes=settings.call_repair_max_schema_bytes,
            max_bytes=self._at_most(MOST_BATCH_BYTES, 2 / 3),
        )

    def _at_most(self, number: int, tokens: float) -> int:
        """Return how many of something go into the window that take so many tokens each, at most.

        Two thirds of a token to a byte is more than JSON takes, by any count.
        """
        return number if self.window is None else min(number, int(0.8 * self.window / tokens))


def next_round(state: State, offer: Offer, window: int | None = None) -> Round:
    """Return the round that comes next for an answer that has ``repairable`` calls."""
    answers = [message for message in state.messages if isinstance(message, AIMessage)]
    first = round_of(state.calls, answers, offer, window=window)
    return replace(first, attempt=1 + budget.repairs(state, first.signature))


def round_of(
    calls: Sequence[ToolTask],
    answers: Sequence[AIMessage],
    offer: Offer,
    *,
    window: int | None = None,
    asked: Sequence[str] = (),
) -> Round:
    """Return a round for calls of which some are ``repairable``; their answer is among ``answers``.

    ``asked`` are the signatures of the rounds before it.
    """
    waiting = with_status(calls, "repairable")
    kind: Kind = "names" if any(kind_of(task) == "names" for task in waiting) else "arguments"
    message_id = waiting[0].message_id
    this = Round(
        kind=kind,
        message_id=message_id,
        attempt=1,
        broken=tuple(task for task in waiting if kind_of(task) == kind),
        sent={call.id: call for m in answers if m.id == message_id for call in calls_of(m)},
        offer=offer,
        window=window,
    )
    return replace(this, attempt=1 + list(asked).count(this.signature))


def kind_of(task: ToolTask) -> Kind:
    """Say what about a broken call is to be repaired."""
    return "names" if task.problem in NAME_PROBLEMS else "arguments"


def _problem(task: ToolTask) -> Problem:
    known: dict[str, Problem] = {"too_large": "too_large", "invalid_args": "invalid_args"}
    return known.get(task.problem, "invalid_json")
