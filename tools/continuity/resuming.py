"""What a turn has of a clarification that the user answered: for its calls, and for the model."""

from dataclasses import replace
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state.channels import State, Update
from daruma.state.clarification import ClarificationStatus, each_of, joined, with_status
from daruma.state.continuity import Continuity
from daruma.state.copied import copied
from daruma.state.ending import waits
from daruma.tools.offer import Offer

LIVE: tuple[ClarificationStatus, ...] = ("resumed", "tried")
"""What calls of this turn may go on with."""


def asking(offer: Offer, state: State) -> Offer:
    """Return what a model is offered that may leave out what the user has to say."""
    known = tuple(each for each in each_of(state.clarification) if each.status in LIVE)
    return copied(offer, asks=True, resuming=known)


def after_calls(state: State) -> State:
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
        return replace(state, clarification=joined(kept))
    done = with_status(state.clarification, "completed")
    return replace(state, clarification=done, continuity=Continuity(extra=kept_beside(state)))


def kept_beside(state: State) -> dict[str, Any]:
    """Return what a snapshot of an older kind held beside a conversation (CO-03)."""
    known = _own(state)
    return known.extra if known else {}


def settled(state: State) -> Update:
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
