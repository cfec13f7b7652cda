"""Asking for what a call lacks, and going on with it once that was said (CO-01, CO-02)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage

from daruma.state import budget
from daruma.state.calls import ToolTask
from daruma.state.calls import with_status as calls_with
from daruma.state.channels import State, Update
from daruma.state.conversation import (
    MOST_ASKED,
    RESUME,
    Clarification,
    ClarificationStatus,
    Continuity,
    continuity_of,
    each_of,
    join_clarifications,
    with_status,
)
from daruma.state.events import ClarificationRequested, ClarificationResolved
from daruma.state.failure import Failure
from daruma.state.messages import Messages
from daruma.state.mode import Mode
from daruma.state.outcome import answer, waits
from daruma.state.record import copy_with
from daruma.state.steps import Step
from daruma.tools.calls import VisibleTools, tool_result
from daruma.tools.context import Context

# --- What a turn has of a clarification that the user answered: for its calls, and for the model.

LIVE: tuple[ClarificationStatus, ...] = ("resumed", "tried")
"""What calls of this turn may go on with."""


def offer_leaving_out(offer: VisibleTools, state: State) -> VisibleTools:
    """Return what a model is offered that may leave out what the user has to say."""
    known = tuple(each for each in each_of(state.clarification) if each.status in LIVE)
    return copy_with(offer, asks=True, resuming=known)


def advance(state: State) -> State:
    """Return the state with what the calls that were just answered mean for the clarification."""
    tried = {call.continues: call.status for call in state.calls if call.continues}
    if not tried or state.clarification is None:
        return state
    kept = tuple(
        replace(each, status="tried" if each.call_id in tried else each.status)
        for each in each_of(state.clarification)
        if tried.get(each.call_id) not in ("done", "unknown", "rejected")
    )
    if kept:
        return replace(state, clarification=join_clarifications(kept))
    done = with_status(state.clarification, "completed")
    return replace(state, clarification=done, continuity=Continuity(extra=kept_beside(state)))


def kept_beside(state: State) -> dict[str, Any]:
    """Return what a snapshot of an older kind held beside a conversation (CO-03)."""
    known = _own(state)
    return known.extra if known else {}


def clarification_update(state: State) -> Update:
    """Return what a clarification was changed to, for the update of whoever comes upon it."""
    return {"clarification": state.clarification, "continuity": _own(state)}


def _own(state: State) -> Continuity | None:
    return state.continuity if isinstance(state.continuity, Continuity) else None


def clarification_note(state: State) -> list[AnyMessage]:
    """Return what a model is told of the question that the user's message answers."""
    known = [each for each in each_of(state.clarification) if each.status in LIVE]
    if state.clarification is None or not known or waits(state):
        return []
    lines = [f"Note: the user was asked: {state.clarification.question}", "They have answered."]
    lines += [
        f"A call of {each.target_action} was meant. Known already, and filled in where you leave "
        f"it out: {each.partial_args}. Asked for: {', '.join(each.missing_fields)}."
        for each in known
    ]
    return [HumanMessage("\n".join([*lines, "Make the call once you know what is missing."]))]


# --- Ending a turn with a question for what a call lacks (CO-01).


def ask_for_missing(state: State, context: Context) -> Update | None:
    """Ask the user for what the answered calls lack; None where they lack nothing.

    In a plan the question is put as an interrupt by the node that comes next. What was asked for
    ``MOST_ASKED`` times already ends the work.
    """
    lack = calls_with(state.calls, "lacking")
    if not lack:
        return None
    before = {each.call_id: each for each in each_of(state.clarification)}
    new = [_clarification(call, before.get(call.continues), state) for call in lack]
    taken = {call.continues for call in lack}
    kept = [
        each for each in before.values() if each.status == "resumed" and each.call_id not in taken
    ]
    results: Messages = [
        tool_result(call, f"Not run: the user was asked: {call.reason}", ok=False) for call in lack
    ]
    if any(each.asked > MOST_ASKED for each in new):
        return Update(**_given_up(new, state), messages=results)
    question = "\n".join(dict.fromkeys(_told(each, len(new)) for each in new))
    found = join_clarifications(
        (replace(new[0], question=question), *new[1:], *(_open(k, state) for k in kept))
    )
    if state.plan is None:
        id_ = f"{state.task_id}:clarification:{budget.on_thread(state, 'think')}"
        results.append(AIMessage(question, id=id_))
    return Update(**_opened(found, state, context), messages=results)


def note_question(state: State, update: Update, context: Context) -> Update:
    """Return the update of an answer; a clarification that it has not gone on with stays open.

    The model may have asked on in its own words. What was tried and failed is not asked for again.
    """
    live = [each for each in each_of(state.clarification) if each.status in LIVE]
    if not live or state.plan or update.get("failure") or update.get("calls"):
        return update
    new = [m for m in update.get("messages", ()) if not isinstance(m, RemoveMessage)]
    said = answer(replace(state, messages=[*state.messages, *new]))
    if not said:
        return update
    pending = join_clarifications(tuple(each for each in live if each.status == "resumed"))
    if pending is None:
        tried = with_status(live[0], "stale")
        return update | {"clarification": tried, "continuity": _stale_continuity(state)}
    if pending.asked >= MOST_ASKED:
        return update | _given_up([pending], state)
    again = replace(_open(pending, state), question=said, asked=pending.asked + 1)
    return update | _opened(again, state, context)


def _clarification(call: ToolTask, before: Clarification | None, state: State) -> Clarification:
    task = state.task
    return Clarification(
        task_id=state.task_id,
        call_id=call.result_id,
        owning_agent=(task and task.expert) or "main",
        owning_sub_commander=(task and task.template) or "",
        target_action=call.name,
        question=call.reason,
        partial_args=call.args,
        missing_fields=call.missing,
        goal=(before.goal if before else "") or (task.goal if task else ""),
        asked=before.asked + 1 if before else 1,
        extra=before.extra if before else {},
    )


def _told(each: Clarification, of: int) -> str:
    """Return a question, with what it is about where there are several."""
    shown = [str(value) for value in each.partial_args.values() if isinstance(value, str)]
    return f"{shown[0]:.80}: {each.question}" if of > 1 and shown else each.question


def _open(known: Clarification, state: State) -> Clarification:
    return with_status(known, "open", task_id=state.task_id)


def _opened(found: Clarification | None, state: State, context: Context) -> Update:
    if found is None:
        return {}
    fields = tuple(dict.fromkeys(name for each in each_of(found) for name in each.missing_fields))
    context.emit(
        ClarificationRequested(
            question=found.question, target_action=found.target_action, missing_fields=fields
        )
    )
    continuity = Continuity(mode=RESUME, extra=kept_beside(state))
    return {"clarification": found, "continuity": continuity, "calls": (), "failure": None}


def _given_up(parts: Sequence[Clarification], state: State) -> Update:
    worn = max(parts, key=lambda each: each.asked)
    message = (
        f"{worn.target_action} was not run: the user was asked {MOST_ASKED} times for "
        f"{', '.join(worn.missing_fields) or 'what it needs'}, and it is still missing"
    )
    return {
        "clarification": with_status(worn, "given_up", task_id=state.task_id),
        "continuity": _stale_continuity(state),
        "calls": (),
        "failure": Failure(code="bad_request", node="main", message=message),
    }


def _stale_continuity(state: State) -> Continuity:
    return Continuity(status="stale", extra=kept_beside(state))


# --- What a new message means for the clarification that is open on the thread (CO-02).

TAKE_UP_MODE: Mode = "react"
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


async def take_up(
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
        return _taken_up_stale(asked, extra)
    from daruma.tools.continuity._continuation import judge_answer  # only where something waits

    steps: list[Step] = []
    resumes = mode in (None, TAKE_UP_MODE)
    if resumes:
        resumes, steps = await judge_answer(message, asked, state, context, task_id)
    if asked.task_id:  # one that was handed over was asked by nobody here
        how = "resumed" if resumes else "stale"
        context.emit(ClarificationResolved(how=how, target_action=asked.target_action))
    if not resumes:
        return _taken_up_stale(asked, extra, steps)
    now = context.local_now()
    known = fill_in(_named(asked, task_id), message, now)
    fresh = Continuity(mode=RESUME, extra=extra)
    known = with_status(known, "resumed", task_id=task_id)
    return TakenUp(fresh, known, tuple(steps), resumed=True)


def _taken_up_stale(
    asked: Clarification, extra: Mapping[str, Any], steps: Sequence[Step] = ()
) -> TakenUp:
    continuity = Continuity(status="stale", extra=dict(extra))
    return TakenUp(continuity, with_status(asked, "stale"), tuple(steps))


def standing(state: State) -> tuple[Continuity | None, Clarification | None]:
    """Return what stands on a thread, brought to the form of today."""
    if isinstance(state.continuity, Mapping):
        found, own = continuity_of(state.continuity), state.clarification
        goes_first = own is not None and own.status in OPEN
        return found.continuity, own if goes_first else found.clarification or own
    return state.continuity, state.clarification


def fill_in(asked: Clarification, message: str, now: datetime) -> Clarification:
    """Return a clarification with what the message says, where it is the one missing day or time.

    So it holds though the model should forget it, and does not move with the clock.
    """
    from daruma.tools.continuity._continuation import expects
    from daruma.tools.dates import has_day, moment_in

    lacks = [(each, name) for each in each_of(asked) for name in each.missing_fields]
    if len(lacks) != 1 or expects(lacks[0][1]) != "date":
        return asked
    ((lacking, name),) = lacks
    moment = moment_in(message, now)
    if moment is None or not (has_day(moment) or name.endswith("time")):
        return asked
    known = replace(lacking, partial_args=lacking.partial_args | {name: moment})
    parts = (known if each == lacking else each for each in each_of(asked))
    return join_clarifications(tuple(parts)) or asked


def _named(asked: Clarification, task_id: str) -> Clarification:
    """Give ids to what was handed over without: calls go on with it by them."""
    parts = each_of(asked)
    first, *also = (
        replace(each, call_id=each.call_id or f"{task_id}:handed:{n}")
        for n, each in enumerate(parts)
    )
    return replace(first, also=tuple(also))
