"""Going on with a call that the user was asked about: what it leaves out is known already. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from daruma.state.clarification import Clarification
from daruma.tools.canonical import CanonicalCall, canonical_call
from daruma.tools.offer import Offer


class Filled(NamedTuple):
    """A call in its canonical form, and the id of the call that it goes on with, if it does."""

    call: CanonicalCall
    continues: str = ""


def filled(name: str, args: Mapping[str, Any], offer: Offer, continues: str = "") -> Filled:
    """Bring a call into its canonical form, with what is known of one that the user answered.

    What the call gives wins. A call that says something else than was known is given only what it
    can not do without: it may be another one of the same tool. ``continues`` is the call it was
    found to go on with before.
    """
    own = canonical_call(name, args, offer.tools, offer.now)
    candidates = [each for each in offer.resuming if _is_of(each, own, offer)]
    if not candidates:
        return Filled(own, continues)
    best = min(
        candidates,
        key=lambda each: (each.call_id != continues, -_agreeing(each, own), _differs(each, own)),
    )
    required = _required(best.target_action, offer) if _differs(best, own) else None
    known = {
        key: value
        for key, value in best.partial_args.items()
        if key not in own.args and (required is None or key in required)
    }
    whole = canonical_call(own.name, known | own.args, offer.tools, offer.now)
    changes = tuple(f"{whole.name}: {key} as it was known" for key in known)
    unread = tuple(dict.fromkeys((*own.unread, *whole.unread)))
    return Filled(whole._replace(changes=own.changes + changes, unread=unread), best.call_id)


def _is_of(known: Clarification, call: CanonicalCall, offer: Offer) -> bool:
    """Whether a call is of the action that is known of, also once it has all that is known."""
    if call.name == known.target_action:
        return True
    whole = canonical_call(call.name, known.partial_args | call.args, offer.tools, offer.now)
    return whole.name == known.target_action


def _differs(known: Clarification, call: CanonicalCall) -> bool:
    partial = known.partial_args
    return any(key in partial and partial[key] != value for key, value in call.args.items())


def _agreeing(known: Clarification, call: CanonicalCall) -> int:
    return sum(known.partial_args.get(key, ...) == value for key, value in call.args.items())


def _required(name: str, offer: Offer) -> Sequence[str]:
    tool = offer.find(name)
    return tool.parameters.get("required", ()) if tool else ()
