"""The moments of a record in their order: messages and steps side by side, and what the walk tells.

Messages have no times, steps have; a message stands where its step does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.record import Record
from daruma.graph.pictures.said_and_done import SaidAndDone
from daruma.graph.pictures.told_questions import question_moments
from daruma.graph.pictures.told_walk import (
    check_moments,
    phase_moment,
    result_moment,
    savepoint_moment,
    walk_moments,
)


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
