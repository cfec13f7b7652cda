"""Messages and steps side by side: each step with the message that it left in the history."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.record import Record
from daruma.graph.pictures.told_messages import (
    asked_for,
    call_moments,
    first_line,
    is_request,
    request_moment,
    results_in,
)
from daruma.graph.pictures.told_questions import plan_text
from daruma.graph.pictures.told_steps import message_ids, step_moment
from daruma.graph.pictures.told_walk import check_moments, plan_title
from daruma.graph.pictures.visit import Visit
from daruma.state.steps import Step


class SaidAndDone:
    """Tells one record's messages and steps; ``elsewhere`` are phases that their members tell."""

    def __init__(self, record: Record, elsewhere: frozenset[tuple[str, str]] = frozenset()) -> None:
        walked = record.walk.walked
        self._record = record
        self._elsewhere = elsewhere
        self._tasks = record.tasks
        self._results = results_in(record.state.messages)
        self._steps_at = [each.superstep.at for each in walked]
        self._tools = [visit for visit in record.walk.path if visit.node == "tool"]
        self._began = [visit.at for visit in self._tools]
        self._timed = [step for step in record.state.steps if step.kind == "tool"]
        self._thought = [step.at for step in record.state.steps if step.kind == "think"]

    def moments(self) -> Iterator[Moment]:
        """Yield them in the order of the record."""
        steps = self._record.state.steps
        numbers = {id_: number for number, id_ in enumerate(message_ids(steps)) if id_}
        done = 0
        for message in self._record.state.messages:
            number = numbers.get(str(message.id))
            if number is None:
                yield from self._alone(message)
                continue
            for step in steps[done:number]:
                yield from self._step(step)
            yield from self._step(steps[number], message)
            done = number + 1
        for step in steps[done:]:
            yield from self._step(step)

    def _alone(self, message: AnyMessage) -> Iterator[Moment]:
        """Yield a message that no step has left; results stand with their calls."""
        if is_request(message, self._record.thread):
            yield request_moment(message, self._tasks)
        elif isinstance(message, AIMessage) and message.tool_calls:
            yield from self._calls(message, Moment(kind="note", title=""))
        elif not isinstance(message, ToolMessage) and _worth_a_note(message):
            yield Moment(kind="note", title=first_line(message.text), detail=message.text)

    def _step(self, step: Step, message: AnyMessage | None = None) -> Iterator[Moment]:
        if step.kind == "tool" or (step.task_id, step.phase_id) in self._elsewhere:
            return  # a call stands with the answer that asked for it
        member = self._record.member
        said = message.text if message else ""
        moment = replace(step_moment(step, said), member=member)
        if step.kind == "verify" and (found := self._during(step.at, "verification")):
            for each in check_moments(found, step.at):
                phase = step.phase_id or ""
                yield replace(each, task=step.task_id, phase=phase, member=member)
        elif step.kind == "plan" and step.ok and (plan := self._during(step.at, "plan")):
            yield replace(
                moment, title=plan_title(plan), detail=plan_text(plan.to_dict()["phases"])
            )
        elif isinstance(message, AIMessage):
            asked = replace(moment, title=moment.title if said else asked_for(message))
            yield asked
            yield from self._calls(message, asked)
        else:
            yield moment

    def _calls(self, message: AIMessage, asked: Moment) -> Iterator[Moment]:
        ran = self._ran_after(asked.at) if asked.timed else None
        for call, name in call_moments(message, self._results):
            took = self._took(name, asked.at)
            yield replace(
                call,
                at=took.at if took else ran.at if ran else asked.at + (asked.seconds or 0.0),
                timed=asked.timed,
                seconds=took.seconds if took else ran.seconds if ran else None,
                task=asked.task,
                phase=asked.phase,
                member=asked.member,
            )

    def _took(self, name: str, after: float) -> Step | None:
        """Take the record of a call of that name from those that began after its answer."""
        found = next((s for s in self._timed if s.signature == name and s.at >= after), None)
        if found and not bisect_right(self._thought, found.at) > bisect_right(self._thought, after):
            self._timed.remove(found)
            return found
        return None

    def _ran_after(self, at: float) -> Visit | None:
        """Return the visit of the tools between a model call and the next one, if there was one."""
        number, following = bisect_right(self._began, at), bisect_right(self._thought, at)
        if number == len(self._tools):
            return None
        until = self._thought[following] if following < len(self._thought) else inf
        return self._tools[number] if self._began[number] < until else None

    def _during(self, at: float, channel: str) -> Any:
        """Return what was last written into a channel by what ran at a time."""
        number = bisect_right(self._steps_at, at) - 1
        values = self._record.walk.walked[number].values(channel) if number >= 0 else ()
        return values[-1] if values else None


def _worth_a_note(message: AnyMessage) -> bool:
    """Whether a message says more than a review, a phase or a result does in its own place."""
    told = (":feedback", ":end")  # a review and a result tell these
    id_ = str(message.id)
    return (
        bool(message.text.strip())
        and not id_.endswith(told)
        and not re.search(r":(begin|merge):", id_)
    )
