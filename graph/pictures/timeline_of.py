"""Making a timeline of what is on record."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import StateSnapshot

from daruma.graph.pictures.record import Record
from daruma.graph.pictures.telling import moments_of
from daruma.graph.pictures.timeline import Timeline
from daruma.state.channels import State
from daruma.state.spending import standing


def timeline_of(
    record: Record, snapshot: StateSnapshot, members: Sequence[Record] = ()
) -> Timeline:
    """Return the timeline of a record; the snapshot is the one that its state is from."""
    state, moments = record.state, moments_of(record, members)
    task, times = state.task, [each.at for each in moments if each.timed]
    prices = [each.usd for each in moments if each.usd is not None]
    return Timeline(
        thread=record.thread,
        status=_status(state, snapshot),
        goal=task.goal if task else "",
        mode=task.mode if task else "",
        workspace=task.workspace if task else None,
        started_at=min(times, default=0.0),
        updated_at=max(times, default=0.0),
        tokens=sum(each.tokens for each in moments),
        usd=sum(prices) if prices else None,
        spent=standing(state),
        moments=moments,
        path=_path(record, members),
        plan=state.plan,
        result=state.result,
        savepoints=tuple(state.savepoints),
        questions=tuple({"id": each.id, "value": each.value} for each in snapshot.interrupts),
        whole=record.walk.whole,
    )


def _path(record: Record, members: Sequence[Record]) -> tuple[Any, ...]:
    visits = [*record.walk.path, *(visit for each in members for visit in each.walk.path)]
    return tuple(sorted(visits, key=lambda each: each.at))


def _status(state: State, snapshot: StateSnapshot) -> str:
    if any(_is_held(each.value) for each in snapshot.interrupts):
        return "held"
    if state.result:
        return state.result.status
    return "waiting" if snapshot.interrupts else "unfinished"


def _is_held(value: Any) -> bool:
    return isinstance(value, Mapping) and {"retry", "keep"} <= {*value.get("options", ())}
