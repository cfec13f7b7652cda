"""The moments of a record in their order: messages, steps, and what the walk tells."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.graph.timeline._moments import (
    Moment,
    asked_for,
    call_moments,
    first_line,
    message_ids,
    request_moment,
    results_in,
    step_moment,
)
from daruma.graph.timeline._record import (
    Record,
    check_moments,
    phase_moment,
    plan_text,
    plan_title,
    question_moments,
    result_moment,
    savepoint_moment,
    walk_moments,
)
from daruma.graph.timeline._walk import Visit
from daruma.state.messages import is_request
from daruma.state.steps import Step

# --- Messages and steps side by side: each step with the message that it left in the history.


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
            told = replace(
                call,
                at=asked.at + (asked.seconds or 0.0),
                timed=asked.timed,
                task=asked.task,
                phase=asked.phase,
                member=asked.member,
            )
            if call.ok is not None:  # else it has not run: it may wait for a person
                took = self._took(name, asked.at) or ran
                told = replace(told, at=took.at, seconds=took.seconds) if took else told
            yield told

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


# --- The moments of a record in their order: messages and steps side by side, and what the walk
# tells.
#
# Messages have no times, steps have; a message stands where its step does.


def moments_of(record: Record, members: Sequence[Record] = ()) -> tuple[Moment, ...]:
    """Return all that is on record of a task and of its team, oldest first.

    What has no time of its own takes that of what stands before it.
    """
    elsewhere = frozenset((each.state.task_id, each.member) for each in members)
    told = _timed([*SaidAndDone(record, elsewhere).moments()])
    told += sorted(_walked(record), key=_at)
    for each in members:
        told += _timed([*SaidAndDone(each).moments()])
        told += sorted(_walked(each), key=_at)
    return tuple(_placed(sorted(told, key=_at)))


def _placed(moments: Sequence[Moment]) -> Iterator[Moment]:
    """Yield each with the task and phase it belongs to: those that it happened in."""
    place: dict[str, tuple[str, str]] = {}
    for each in moments:
        if each.task:
            place[each.member] = each.task, "" if each.kind == "result" else each.phase
            yield each
        else:
            task, phase = place.get(each.member) or (place.get("", ("", ""))[0], each.member)
            yield replace(each, task=task, phase=phase)


def _at(moment: Moment) -> float:
    return moment.at


def _timed(moments: list[Moment]) -> list[Moment]:
    at = next((each.at for each in moments if each.timed), 0.0)
    filled = list[Moment]()
    for each in moments:
        at = each.at if each.timed else at
        filled.append(each if each.timed else replace(each, at=at))
    return filled


def _walked(record: Record) -> Iterator[Moment]:
    state, walk = record.state, record.walk
    told = [*walk_moments(walk, record.member)]
    yield from told
    for walked in walk.walked:
        yield from question_moments(walked, record.opened, record.member)
        if any(visit.node == "merge" for visit in walked.visits):
            for each in walked.values("verification"):
                yield from check_moments(each, walked.until or walked.superstep.at)
    if not record.member:  # a member's phase and its worktree are told of by the task
        yield from map(savepoint_moment, state.savepoints)
        if not walk.whole:
            yield from _last(record, told)


def _last(record: Record, told: Sequence[Moment]) -> Iterator[Moment]:
    """Yield how phases and the task ended, where what led there is thinned away."""
    state = record.state
    times = (*(s.at + s.seconds for s in state.steps), *(s.at for s in state.savepoints))
    at = max(times, default=0.0)
    if state.plan and not any(each.kind == "phase" for each in told):
        ended = (phase for phase in state.plan.phases if phase.status != "pending")
        yield from (phase_moment(state.plan, phase, at) for phase in ended)
    if state.result and not any(each.kind == "result" for each in told):
        yield result_moment(state.result, at)
