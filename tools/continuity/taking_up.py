"""What a new message means for the clarification that is open on the thread (CO-02)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from daruma.state.channels import State, Update
from daruma.state.clarification import (
    Clarification,
    ClarificationStatus,
    each_of,
    joined,
    with_status,
)
from daruma.state.continuity import RESUME, Continuity
from daruma.state.events import ClarificationResolved
from daruma.state.mode import Mode
from daruma.state.old_snapshots import continuity_of
from daruma.state.step import Step
from daruma.tools.context import Context
from daruma.tools.continuity.resuming import LIVE
from daruma.tools.dates.machine_zone import local_time

TAKEN_UP_IN: Mode = "react"
"""The mode of a turn that goes on with a clarification: only there does one end with it."""

OPEN: tuple[ClarificationStatus, ...] = ("open", *LIVE)
"""What a message may answer; a turn that failed may not have come to what it was told."""


@dataclass(frozen=True)
class TakenUp:
    """What a message is: an answer to ``clarification`` (``resumed``), or something new."""

    continuity: Continuity | None = None
    clarification: Clarification | None = None
    steps: tuple[Step, ...] = ()
    resumed: bool = False

    @property
    def update(self) -> Update:
        """What intake writes of it."""
        return {"continuity": self.continuity, "clarification": self.clarification}


async def taken_up(
    state: State, context: Context, task_id: str, message: str, mode: Mode | None
) -> TakenUp:
    """Say whether a message answers what was asked, and note what it plainly says.

    ``mode`` is the one that was asked for with the message; in another than the clarification's it
    is something new. An empty message leaves all as it was.
    """
    continuity, asked = standing(state)
    if asked is None or asked.status not in OPEN or not message.strip():
        return TakenUp(continuity, asked)
    extra = continuity.extra if continuity else {}
    if asked.status != "open" and state.plan:  # its plan is over: nobody waits for an answer
        return _stale(asked, extra)
    from daruma.tools.continuity.judging import judged  # six languages: only where something waits

    steps: list[Step] = []
    resumes = mode in (None, TAKEN_UP_IN)
    if resumes:
        resumes, steps = await judged(message, asked, state, context, task_id)
    if asked.task_id:  # one that was handed over was asked by nobody here
        how = "resumed" if resumes else "stale"
        context.emit(ClarificationResolved(how=how, target_action=asked.target_action))
    if not resumes:
        return _stale(asked, extra, steps)
    now = local_time(context.now(), context.settings.tools.time_zone)
    known = with_said(_named(asked, task_id), message, now)
    fresh = Continuity(mode=RESUME, extra=extra)
    known = with_status(known, "resumed", task_id=task_id)
    return TakenUp(fresh, known, tuple(steps), resumed=True)


def _stale(asked: Clarification, extra: Mapping[str, Any], steps: Sequence[Step] = ()) -> TakenUp:
    continuity = Continuity(status="stale", extra=dict(extra))
    return TakenUp(continuity, with_status(asked, "stale"), tuple(steps))


def standing(state: State) -> tuple[Continuity | None, Clarification | None]:
    """Return what stands on a thread, brought to the form of today."""
    if isinstance(state.continuity, Mapping):
        found, own = continuity_of(state.continuity), state.clarification
        goes_first = own is not None and own.status in OPEN
        return found.continuity, own if goes_first else found.clarification or own
    return state.continuity, state.clarification


def with_said(asked: Clarification, message: str, now: datetime) -> Clarification:
    """Return a clarification with what the message says, where it is the one missing day or time.

    So it holds though the model should forget it, and does not move with the clock.
    """
    from daruma.tools.continuity.continuation import expects
    from daruma.tools.dates.moments import has_day, moment_in

    lacks = [(each, name) for each in each_of(asked) for name in each.missing_fields]
    if len(lacks) != 1 or expects(lacks[0][1]) != "date":
        return asked
    ((lacking, name),) = lacks
    moment = moment_in(message, now)
    if moment is None or not (has_day(moment) or name.endswith("time")):
        return asked
    known = replace(lacking, partial_args=lacking.partial_args | {name: moment})
    parts = (known if each == lacking else each for each in each_of(asked))
    return joined(tuple(parts)) or asked


def _named(asked: Clarification, task_id: str) -> Clarification:
    """Give ids to what was handed over without: calls go on with it by them."""
    parts = each_of(asked)
    first, *also = (
        replace(each, call_id=each.call_id or f"{task_id}:handed:{n}")
        for n, each in enumerate(parts)
    )
    return replace(first, also=tuple(also))
